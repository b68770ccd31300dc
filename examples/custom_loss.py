"""A loss of your own: two functions of (y, F), on any array library.

log-cosh, l = ln cosh r with r = F - y, is r^2/2 near zero and |r| - ln 2 far away: smooth, and
indifferent to how far out an outlier is. Its derivative is tanh r, which rises by 1 at most.

    python examples/custom_loss.py [library ...]     # e.g. torch jax.numpy
"""

import importlib
import importlib.util
import sys

import numpy as np
from array_api_compat import array_namespace

from ensemble_gpu import BoostingRegressor
from ensemble_gpu.losses import CustomLoss


def log_cosh(y, F):
    """|r| + ln(1 + e^-2|r|) - ln 2, which does not overflow."""
    xp = array_namespace(F)
    r = xp.abs(F - y)
    return r + xp.log1p(xp.exp(-2.0 * r)) - float(np.log(2.0))


def log_cosh_gradient(y, F):
    return array_namespace(F).tanh(F - y)


LOG_COSH = CustomLoss(log_cosh, log_cosh_gradient, name="log-cosh", convex=True, curvature=1.0)


def gradient_error(loss, step=1e-5):
    """How far the gradient is from the slope of the value, at most."""
    y, F = (a.ravel() for a in np.meshgrid(np.linspace(-3, 3, 7), np.linspace(-20, 20, 81)))
    slope = (loss.value(y, F + step) - loss.value(y, F - step)) / (2.0 * step)
    return np.abs(slope - loss.gradient(y, F)).max()


def wave(n, seed):
    """Rows of four features, of which two matter, and the true mean of y."""
    X = np.random.default_rng(seed).uniform(-3.0, 3.0, size=(n, 4))
    return X, 3.0 * np.sin(X[:, 0]) + np.abs(X[:, 1])


def with_outliers(mean, share=0.05, seed=2):
    """A little noise on every row; on a share of them an error of about a hundred."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(len(mean)) < share
    return mean + 0.3 * rng.normal(size=len(mean)) + wrong * rng.normal(100.0, 50.0, len(mean))


def compare(losses):
    X, mean = wave(4000, seed=0)
    X_test, mean_test = wave(2000, seed=1)
    y = with_outliers(mean)
    print("Mean absolute error of the true mean, 5 % of the training targets spoilt:")
    for loss in losses:
        model = BoostingRegressor(loss, n_estimators=200, learning_rate=0.3, max_depth=1).fit(X, y)
        error = np.abs(model.predict(X_test) - mean_test).mean()
        print(f"  {getattr(loss, 'name', loss):10s} {error:.3f}")


def on_other_libraries(names):
    """The same two functions get arrays of the library that the estimator was given."""
    X, mean = wave(500, seed=0)
    model = BoostingRegressor(LOG_COSH, n_estimators=20, max_depth=1)
    here = model.fit(X, mean).predict(X)
    print("The same functions on other libraries, predictions beside NumPy's:")
    for name in names:
        xp = importlib.import_module(name)
        there = model.fit(xp.asarray(X), xp.asarray(mean)).predict(xp.asarray(X))
        off = np.abs(np.asarray(there) - here).max()
        print(f"  {name}: {type(there).__name__}, off by {off:g}")


def main(libraries):
    print(f"The gradient is the slope of the value up to {gradient_error(LOG_COSH):.0e}.")
    compare(["squared", "huber", LOG_COSH])
    on_other_libraries(libraries)


if __name__ == "__main__":
    installed = [name for name in ["array_api_strict"] if importlib.util.find_spec(name)]
    main(sys.argv[1:] or installed)
