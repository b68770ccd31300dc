"""Where F begins, and the lemma that the steepest direction is the least-squares fit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.losses import Huber, Logistic

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
Y = 5.0 + X[:, 0] + (X[:, 1] > 0.2) + 0.2 * RNG.normal(size=150)


@pytest.mark.parametrize("params", [
    {"max_depth": 1}, {"max_depth": 2}, {"estimator": DecisionTreeRegressor(max_depth=2)},
    {"loss": "huber"}, {"loss": "absolute", "max_depth": 1}, {"loss": "poisson"}, {"n_bags": 2},
], ids=str)  # fmt: skip
def test_outputs_begin_at_zero_where_asked(params):
    zero, constant = (
        BoostingRegressor(init=init, n_estimators=3, **params).fit(X, Y)
        for init in ("zero", "constant")
    )
    np.testing.assert_array_equal(zero.model_.intercept, 0.0)
    np.testing.assert_array_equal(zero.model_.first(0)(X), 0.0)
    assert constant.model_.intercept[0] > 1.0
    assert zero.model_ != constant.model_


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_begin_at_zero_where_asked(loss, n_classes):
    y = np.digitize(Y, [5.0, 6.5][: n_classes - 1])
    zero = BoostingClassifier(loss, init="zero", n_estimators=2, max_depth=1).fit(X, y)
    np.testing.assert_array_equal(zero.model_.intercept, 0.0)
    other = BoostingClassifier(loss, n_estimators=2, max_depth=1).fit(X, y)
    assert np.abs(other.model_.intercept).max() > 0.05


def test_the_first_squared_stump_from_zero_fits_y_itself():
    zero = BoostingRegressor(
        init="zero", n_estimators=1, learning_rate=1.0, max_depth=1, max_bins=None
    ).fit(X, Y)
    best = min(
        (((Y - np.where(x <= t, Y[x <= t].mean(), Y[x > t].mean())) ** 2).sum(), f)
        for f in range(3)
        for x in [X[:, f]]
        for t in np.sort(x)[:-1]
    )
    assert zero.model_.rounds.feature[0] == best[1]
    assert ((zero.predict(X) - Y) ** 2).sum() == pytest.approx(best[0])


def test_an_unknown_start_is_named():
    with pytest.raises(ValueError, match="init must be one of 'constant', 'zero'"):
        BoostingRegressor(init="mean").fit(X, Y)


# --- the lemma ----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [Huber(), Logistic()], ids=lambda loss: loss.name)
def test_the_best_normalised_direction_is_the_least_squares_fit(loss, weighted):
    """With H closed under scaling, argmin_h |h + g|^2 maximises |<h / |h|, g>|: the stump that is
    chosen to fit -g by least squares is the one of steepest descent among all of norm 1.
    """
    w = RNG.gamma(2.0, size=150) if weighted else np.ones(150)
    classes = loss.name == "logistic"
    y = np.where(Y > 6.0, 1.0, -1.0) if classes else Y - 5.5
    g = loss.gradient(y, np.zeros(150))
    found = []
    for f in range(3):
        for t in np.sort(X[:, f])[:-1]:
            left = X[:, f] <= t
            values = [-np.average(g[side], weights=w[side]) for side in (left, ~left)]
            h = np.where(left, *values)  # the best fit of this shape
            slope = -(w * g * h).sum() / np.sqrt((w * h * h).sum())
            residual = (w * (h + g) ** 2).sum()
            found.append((slope, residual, f, t))
    steepest, closest = max(found), min(found, key=lambda one: one[1])
    assert steepest[2:] == closest[2:]
    # Pythagoras: |g|^2 = |h + g|^2 + <h / |h|, g>^2 for every best fit
    slopes, residuals = np.array([one[:2] for one in found]).T
    np.testing.assert_allclose(residuals + slopes**2, (w * g * g).sum())
    kind = BoostingClassifier if classes else BoostingRegressor
    ours = kind(
        loss, init="zero", max_depth=1, n_estimators=1, step="line_search", max_bins=None
    ).fit(X, y, w)
    rounds = ours.model_.rounds
    values = np.sort(X[:, steepest[2]])
    assert rounds.feature[0] == steepest[2]
    at = np.searchsorted(values, steepest[3])
    assert values[at] <= rounds.threshold[0] <= values[at + 1]
