"""L2Boost: iterated fits of scikit-learn and scipy, and explicit operators, are the oracles."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.interpolate import make_smoothing_spline
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge as TheirKernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.neighbors import KNeighborsRegressor

from ensemble_gpu import L2BoostRegressor, learners
from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.smoothers import (
    KernelRidge,
    Linear,
    Neighbours,
    Precomputed,
    Ridge,
    Spline,
    another_fit_helps,
    best_rounds,
)
from ensemble_gpu.smoothers.kernel import _exact, _low_rank, median_distance
from ensemble_gpu.smoothers.protocol import SmootherRows
from tests.estimators.checks import assert_checks_pass
from tests.products import every_pair

pytestmark = pytest.mark.filterwarnings("ignore:criterion=:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = np.sin(6.0 * X[:, 0]) + X[:, 1] + 2.0 + 0.3 * RNG.normal(size=60)
NEW = RNG.uniform(-0.1, 1.1, size=(25, 2))
W = RNG.integers(1, 4, size=60).astype(float)
ROUNDS = 30


class SmoothingSpline:
    """scipy's, as an estimator of one feature."""

    def __init__(self, lam: float) -> None:
        self.lam = lam

    def fit(self, X, y, sample_weight=None):
        order = np.argsort(X[:, 0])
        w = None if sample_weight is None else sample_weight[order]
        self.spline = make_smoothing_spline(X[order, 0], y[order], w, self.lam)
        return self

    def predict(self, X):
        inside = np.clip(X[:, 0], *self.spline.t[[0, -1]])
        slope = self.spline.derivative()(inside)  # natural: a line beyond the knots
        return self.spline(inside) + slope * (X[:, 0] - inside)


PAIRS = {
    "kernel": (KernelRidge(0.3, 2.0), TheirKernelRidge(alpha=2.0, kernel="rbf", gamma=0.5 / 0.09)),
    "ridge": (Ridge(1.5), TheirRidge(1.5)),
    "linear": (Linear(), LinearRegression()),
    "linear with ones": (Linear(center=False), LinearRegression()),
    "spline": (Spline(penalty=1e-3), SmoothingSpline(1e-3)),
}


def fitted(smoother, X=X, y=Y, weights=None, **given):
    given = {"learning_rate": 0.4, "n_estimators": ROUNDS, "criterion": None} | given
    return L2BoostRegressor(smoother, **given).fit(X, y, weights)


def iterated(theirs, X, y, weights, new, start, rate, rounds):
    """Predictions of new rows after each round, by fits to residuals."""
    F, out, found = np.full(len(y), start), np.full(len(new), start), []
    for _ in range(rounds):
        fit = theirs.fit(X, y - F, sample_weight=weights)
        F, out = F + rate * fit.predict(X), out + rate * fit.predict(new)
        found.append(out)
    return np.array(found)


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", list(PAIRS))
def test_all_rounds_are_those_of_iterated_fits(name, weights):
    ours, theirs = PAIRS[name]
    columns = slice(0, 1) if name == "spline" else slice(0, 2)
    x, new = X[:, columns], NEW[:, columns]
    model = fitted(ours, x, weights=weights)
    start = np.average(Y, weights=weights)
    expected = iterated(theirs, x, Y, weights, new, start, 0.4, ROUNDS)
    np.testing.assert_allclose(np.array(list(model.staged_predict(new))), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict(new), expected[-1], atol=1e-9)
    w = np.ones(60) if weights is None else weights
    np.testing.assert_allclose((w * (Y - model.predict(x)) ** 2).sum(), model.rss_[-1], rtol=1e-9)


def test_neighbours_are_iterated():
    model = fitted(Neighbours(4), n_estimators=5, init="zero")
    expected = iterated(_Unweighted(KNeighborsRegressor(4)), X, Y, None, NEW, 0.0, 0.4, 5)
    np.testing.assert_allclose(np.array(list(model.staged_predict(NEW))), expected, atol=1e-12)


class _Unweighted:
    def __init__(self, theirs):
        self.theirs = theirs

    def fit(self, X, y, sample_weight):
        return self.theirs.fit(X, y)


def operator(theirs, X, weights=None, center=False):
    """The matrix S of a linear smoother, column by column."""
    columns = [theirs.fit(X, e, sample_weight=weights).predict(X) for e in np.eye(len(X))]
    S = np.array(columns).T
    w = np.ones(len(X)) if weights is None else weights
    return S - np.outer(np.ones(len(X)), w) / w.sum() if center else S


@every_pair(
    "name, weights, init", ["kernel", "ridge", "spline"], [None, W], ["mean", "zero", "offset"]
)
def test_degrees_of_freedom_are_the_trace(name, weights, init):
    ours, theirs = PAIRS[name]
    x = X[:, :1] if name == "spline" else X
    S = operator(theirs, x, weights, center=name == "ridge")
    w = np.ones(60) if weights is None else weights
    J = np.outer(np.ones(60), w) / w.sum()
    rest = np.eye(60)
    model = fitted(ours, x, weights=weights, init=init, n_estimators=6)
    for k in range(6):
        rest = rest - 0.4 * S @ rest
        B = np.eye(60) - rest
        B = J + B @ (np.eye(60) - J) if init == "mean" else B
        assert model.df_[k] == pytest.approx(np.trace(B), abs=1e-8)


def test_degrees_of_freedom_of_neighbours_are_the_trace():
    S = operator(_Unweighted(KNeighborsRegressor(4)), X)
    J, rest = np.full((60, 60), 1.0 / 60), np.eye(60)
    model = fitted(Neighbours(4), n_estimators=4)
    for k in range(4):
        rest = rest - 0.4 * S @ rest
        assert model.df_[k] == pytest.approx(np.trace(J + (np.eye(60) - rest) @ (np.eye(60) - J)))


def test_twicing_is_two_rounds_of_rate_one():
    S = operator(PAIRS["kernel"][1], X)
    twice = fitted(PAIRS["kernel"][0], init="zero", learning_rate=1.0, n_estimators=2)
    np.testing.assert_allclose(twice.predict(X), (2.0 * S - S @ S) @ Y, atol=1e-10)


def test_a_given_matrix_is_a_smoother():
    S = operator(PAIRS["kernel"][1], X)
    S = 0.5 * (S + S.T)
    given, own = fitted(Precomputed(), S), fitted(PAIRS["kernel"][0])
    np.testing.assert_allclose(given.predict(S[:7]), own.predict(X[:7]), atol=1e-9)
    np.testing.assert_allclose(given.df_, own.df_, atol=1e-9)


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_nystroem_with_all_rows_is_exact(weights):
    rows = SmootherRows(X, weights, NUMPY)
    exact = _exact(rows, 0.3, np.array([2.0]))
    low = _low_rank(rows, np.arange(60), 0.3, np.array([2.0]))
    own = [np.sort(parts.eigenvalues[0])[-40:] for parts in (exact, low)]
    np.testing.assert_allclose(own[1], own[0], atol=1e-10)
    t = rows.weighted(Y[:, None])
    found = [p.model((p.U.T @ t).T, 0, 0.0)(NEW) for p in (exact, low)]
    np.testing.assert_allclose(found[1], found[0], atol=1e-8)
    some = fitted(KernelRidge(0.5, 2.0, rank=30)).predict(NEW)
    np.testing.assert_allclose(some, fitted(KernelRidge(0.5, 2.0)).predict(NEW), atol=0.02)


def test_whole_weights_are_repetitions():
    at = np.repeat(np.arange(60), W.astype(int))
    for smoother in (KernelRidge(), Ridge(), Spline()):
        x = X[:, :1] if isinstance(smoother, Spline) else X
        ours = fitted(smoother, x, weights=W, criterion="bic")
        repeated = fitted(smoother, x[at], Y[at], criterion="bic")
        np.testing.assert_allclose(ours.predict(x), repeated.predict(x), atol=1e-8)
        for name, curve in ours.criteria_.items():
            np.testing.assert_allclose(curve, repeated.criteria_[name], atol=1e-8, err_msg=name)


def test_the_median_width_is_the_median_distance():
    apart = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
    own = apart[np.triu_indices(60, 1)]
    assert median_distance(SmootherRows(X, None, NUMPY)) == pytest.approx(np.median(own), rel=5e-3)
    assert median_distance(SmootherRows(np.ones((5, 2)), None, NUMPY)) == 1.0


def test_criteria_are_their_formulas_and_the_first_minimum_is_taken():
    model = fitted(KernelRidge(0.3, 2.0), criterion="aicc", n_estimators=200)
    k, n = model.n_estimators_, 60
    rss, df = model.rss_, model.df_
    S = rss / (n - df)
    expected = {
        "aic": np.log(rss / n) + 2 * df / n,
        "aicc": np.log(rss / n) + 1 + 2 * (df + 1) / (n - df - 2),
        "bic": np.log(rss / n) + np.log(n) * df / n,
        "gmdl": np.log(S) + df / n * np.log(((Y**2).sum() - rss) / (df * S)),
        "gcv": rss / n / (1 - df / n) ** 2,
    }
    for name, curve in expected.items():
        np.testing.assert_allclose(model.criteria_[name], curve, rtol=1e-10)
    assert k == np.argmin(expected["aicc"]) + 1 < 200
    assert (np.diff(df) > 0.0).all()
    assert (np.diff(rss) < 0.0).all()
    assert len(list(model.staged_predict(X))) == k == len(model.model_)


def test_leave_one_out_is_exact_for_one_round():
    S = operator(PAIRS["kernel"][1], X)
    model = fitted(PAIRS["kernel"][0], init="zero", learning_rate=1.0, n_estimators=1,
                   criterion="cv", n_folds=60)  # fmt: skip
    left = (Y - S @ Y) / (1.0 - np.diag(S))
    assert model.criteria_["cv"][0] == pytest.approx((left**2).mean())


def test_cross_validation_is_that_of_real_folds():
    given = {"criterion": "cv", "n_folds": 3, "random_state": 4, "n_estimators": 20}
    model = fitted(KernelRidge(0.3, [0.5, 2.0]), **given)
    fold = np.random.RandomState(4).permutation(60) % 3
    errors = np.zeros((2, 20))
    for number in range(3):
        part, out = fold != number, fold == number
        for i, ridge in enumerate((0.5, 2.0)):
            alone = fitted(KernelRidge(0.3, ridge), X[part], Y[part], n_estimators=20)
            stages = np.array(list(alone.staged_predict(X[out])))
            errors[i] += ((stages - Y[out]) ** 2).sum(axis=1) / 60
    best = int(np.argmin(errors.min(axis=1)))
    np.testing.assert_allclose(model.criteria_["cv"], errors[best])
    assert model.penalty_ == (0.5, 2.0)[best]
    assert model.n_estimators_ == np.argmin(errors[best]) + 1


def test_the_criterion_chooses_among_penalties():
    several = fitted(KernelRidge(0.3, [0.01, 1.0, 20.0]), criterion="bic", n_estimators=100)
    alone = [
        fitted(KernelRidge(0.3, one), criterion="bic", n_estimators=100)
        for one in (0.01, 1.0, 20.0)
    ]
    best = min(alone, key=lambda one: one.criteria_["bic"].min())
    assert several.penalty_ == best.penalty_
    np.testing.assert_allclose(several.predict(X), best.predict(X))


def test_a_spline_has_the_degrees_of_freedom_asked_for():
    one = fitted(Spline(5.5), X[:, :1], init="zero", learning_rate=1.0, n_estimators=1)
    assert one.df_[0] == pytest.approx(5.5)
    few = fitted(Spline(5.5, n_knots=12), X[:, :1], init="zero", learning_rate=1.0, n_estimators=1)
    assert few.df_[0] == pytest.approx(5.5)
    np.testing.assert_allclose(few.predict(X[:, :1]), one.predict(X[:, :1]), atol=0.15)
    line = fitted(Spline(2), X[:, :1], learning_rate=1.0, n_estimators=1)
    slope = LinearRegression().fit(X[:, :1], Y)
    np.testing.assert_allclose(line.predict(NEW[:, :1]), slope.predict(NEW[:, :1]), atol=1e-7)


@pytest.mark.parametrize("init", ["zero", "mean"])
@pytest.mark.parametrize("name", ["kernel", "neighbours"])
def test_bias_and_variance_are_those_of_the_operator(name, init):
    f, sigma = np.sin(6.0 * X[:, 0]), 0.3
    ours = PAIRS["kernel"][0] if name == "kernel" else Neighbours(4)
    theirs = PAIRS["kernel"][1] if name == "kernel" else _Unweighted(KNeighborsRegressor(4))
    S, J, rest = operator(theirs, X), np.full((60, 60), 1.0 / 60), np.eye(60)
    found = fitted(ours, init=init, n_estimators=4).bias_variance(X, f, sigma)
    for k in range(4):
        rest = rest - 0.4 * S @ rest
        B = np.eye(60) - rest
        B = J + B @ (np.eye(60) - J) if init == "mean" else B
        assert found.bias2[k] == pytest.approx(((B @ f - f) ** 2).mean())
        assert found.variance[k] == pytest.approx(sigma**2 * (B**2).sum() / 60)
    np.testing.assert_allclose(found.mse, found.bias2 + found.variance)


def test_noise_is_estimated_from_the_fit_unless_given():
    model = fitted(KernelRidge(0.3, 2.0), n_estimators=4)
    sigma = np.sqrt(model.rss_[-1] / (60 - model.df_[-1]))
    f = np.sin(6.0 * X[:, 0])
    np.testing.assert_array_equal(
        model.bias_variance(X, f).mse, model.bias_variance(X, f, float(sigma)).mse
    )


def test_the_settings_of_the_lecture_are_too_strong_too_weak_and_ideal():
    """500 points: (width, ridge, rate); best k is the first, beyond 50, and in between."""
    x = np.linspace(0.0, 1.0, 500)[:, None]
    f = np.sin(12.0 * x[:, 0]) + np.exp(-200.0 * (x[:, 0] - 0.6) ** 2)
    best = []
    for width, ridge, rate in ((0.1, 1.0, 1.0), (0.5, 1.0, 1.0), (0.2, 5.0, 0.8)):
        model = L2BoostRegressor(
            KernelRidge(width, ridge), learning_rate=rate, n_estimators=200, criterion=None,
            init="zero",
        ).fit(x, f)  # fmt: skip
        found = model.bias_variance(x, f, 2.0)
        best.append(int(np.argmin(found.mse)) + 1)
        assert (np.diff(found.bias2) <= 1e-15).all()
        assert (np.diff(found.variance) >= -1e-15).all()
    assert best[0] <= 2
    assert 1 < best[2] < 100
    assert best[1] > best[2]


def test_another_fit_helps_where_the_error_of_the_component_falls():
    lam = np.array([0.05, 0.3, 0.7, 0.95, 0.0])
    signal = np.array([2.0, 0.4, 6.0, 3.0, 5.0])
    for k in (0, 1, 2, 5):
        q = 1.0 - 0.8 * lam
        error = [q ** (2 * j) * signal + (1.0 - q**j) ** 2 for j in (k, k + 1)]
        expected = error[1] < error[0]
        got = another_fit_helps(lam, signal, k=k, learning_rate=0.8)
        np.testing.assert_array_equal(got, expected)
    # the lecture's bound does not suffice beyond 2 - sqrt 2, Buhlmann and Yu's does
    lam = 0.7
    lecture, enough = 1.0 / (1.0 - lam), (1.0 - lam) ** -2 - 1.0
    assert not another_fit_helps([lam], [1.001 * lecture])[0]
    assert another_fit_helps([lam], [1.001 * enough])[0]


@pytest.mark.parametrize(
    ("function", "given", "says"),
    [
        (another_fit_helps, {"signal": [1.0, 2.0]}, "signal must hold a finite number for each"),
        (another_fit_helps, {"signal": [-1.0]}, "signal must hold numbers >= 0"),
        (another_fit_helps, {"signal": [1.0], "k": -1}, "k must be an integer >= 0"),
        (another_fit_helps, {"signal": [1.0], "learning_rate": 4.0}, "must be below 2"),
        (best_rounds, {"mu": [1.0, 2.0], "sigma": 1.0}, "mu must hold a finite number for each"),
        (best_rounds, {"mu": [1.0], "sigma": -1.0}, "sigma must be a finite number >= 0"),
        (best_rounds, {"mu": [1.0], "sigma": 1.0, "most": 0}, "most must be an integer >= 1"),
    ],
)
def test_bad_components_are_named(function, given, says):
    with pytest.raises(ValueError, match=says):
        function([0.5], **given)


def test_bad_eigenvalues_are_named():
    for wrong in ([float("nan")], [], [[0.5]]):
        with pytest.raises(ValueError, match="eigenvalues must be a list of finite numbers"):
            another_fit_helps(wrong, [1.0])


def test_the_optimum_beats_the_limits():
    lam = np.array([0.9, 0.5, 0.1])
    found = best_rounds(lam, [3.0, 1.0, 0.5], 1.0)
    q = 1.0 - lam
    mu2 = np.array([9.0, 1.0, 0.25])
    errors = [(q ** (2 * k) * mu2 + (1.0 - q**k) ** 2).mean() for k in range(1, 300)]
    assert found.k == np.argmin(errors) + 1
    assert found.mse == pytest.approx(min(errors))
    assert found.mse_at_infinity == 1.0
    assert found.beats_limits
    stays = best_rounds([0.9, 0.0], [3.0, 2.0], 1.0)  # a zero eigenvalue keeps its bias
    assert stays.mse_at_infinity == pytest.approx(2.5)


def test_predictions_are_where_x_is(place):
    for smoother in (KernelRidge(), KernelRidge(rank=20), Ridge(), Neighbours(4), Spline()):
        columns = slice(0, 1) if isinstance(smoother, Spline) else slice(0, 2)
        here = fitted(smoother, X[:, columns], n_estimators=6, criterion="bic")
        there = clone(here).fit(place.put(X[:, columns]), place.put(Y))
        predicted = there.predict(place.put(NEW[:, columns]))
        place.check(predicted, "float64")
        expected = here.predict(NEW[:, columns])
        np.testing.assert_allclose(place.host(predicted), expected, atol=1e-10)
        np.testing.assert_allclose(there.df_, here.df_, atol=1e-10)
        (last,) = there.staged_predict(place.put(NEW[:, columns]), [there.n_estimators_])
        place.check(last, "float64")
        f = place.put(Y)
        mse = there.bias_variance(place.put(X[:, columns]), f, 0.3).mse
        np.testing.assert_allclose(mse, here.bias_variance(X[:, columns], Y, 0.3).mse, atol=1e-10)


@pytest.mark.interop
def test_other_libraries_decompose_the_rows_themselves(library):
    there = library.put(X)
    rows = SmootherRows(there, library.put(W), locate(there))
    for smoother in (KernelRidge(0.3), Ridge()):
        parts = smoother.prepared(rows)
        here = smoother.prepared(SmootherRows(X, W, NUMPY))
        own = np.sort(parts.eigenvalues)
        np.testing.assert_allclose(own, np.sort(here.eigenvalues), atol=1e-10)
    predicted = fitted(KernelRidge(), there, library.put(Y)).predict(there)
    library.check(predicted, "float64")
    np.testing.assert_allclose(library.host(predicted), fitted(KernelRidge()).predict(X))


def test_models_are_pickled_and_equal_to_their_copies():
    for smoother in (KernelRidge(), Ridge(), Neighbours(4)):
        model = fitted(smoother, n_estimators=3)
        again = pickle.loads(pickle.dumps(model))
        assert again.model_ == model.model_
        assert again.model_.first(1) == model.model_.first(1) != model.model_
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
    spline = fitted(Spline(), X[:, :1], n_estimators=3).model_
    assert pickle.loads(pickle.dumps(spline)) == spline != spline.first(2)
    assert "SplineModel(3 round(s)" in repr(spline)
    assert "60 centres" in repr(fitted(KernelRidge(), n_estimators=3).model_)


def test_a_constant_target_is_predicted():
    for init in ("mean", "zero"):
        model = fitted(Spline(), X[:, :1], np.full(60, 3.0), init=init, learning_rate=1.0)
        np.testing.assert_allclose(model.predict(NEW[:, :1]), 3.0)
    flat = fitted(KernelRidge(), y=np.full(60, 3.0), criterion="aicc")
    np.testing.assert_array_equal(flat.predict(NEW), 3.0)
    assert flat.n_estimators_ == 1


def test_the_last_round_as_the_best_is_warned_of():
    with pytest.warns(ConvergenceWarning, match="n_estimators = 3, the most rounds"):
        fitted(KernelRidge(0.3), criterion="aic", n_estimators=3)


def test_growing_residuals_are_warned_of():
    with pytest.warns(ConvergenceWarning, match="the residuals grow after"):
        fitted(Neighbours(5), learning_rate=1.0, n_estimators=200)


@pytest.mark.parametrize(
    ("smoother", "given", "error", "says"),
    [
        (KernelRidge(-1.0), {}, ValueError, "width must be a finite number"),
        (KernelRidge(1e-200), {}, ValueError, "width must be a number whose square is > 0"),
        (Linear(groups=[[0]]), {}, ValueError, "need componentwise=True"),
        (KernelRidge(0.3, 0.0), {}, ValueError, "ridge must be"),
        (KernelRidge(0.3, []), {}, ValueError, "ridge must be a number or a list"),
        (KernelRidge(rank=0), {}, ValueError, "rank must be"),
        (Ridge(-1.0), {}, ValueError, "l2 must be"),
        (Spline(), {}, ValueError, "Spline smooths one feature, and X has 2"),
        (Neighbours(61), {}, ValueError, "n_neighbors must be an integer from 1 to 60"),
        ("kernel", {}, TypeError, "smoother must be one of"),
        (None, {"learning_rate": 0.0}, ValueError, "learning_rate must be"),
        (None, {"learning_rate": 2.1}, ValueError, "must be below 2"),
        (None, {"criterion": "cp"}, ValueError, "criterion must be one of"),
        (None, {"init": "median"}, ValueError, "init must be one of"),
        (None, {"n_estimators": 0}, ValueError, "n_estimators must be"),
        (None, {"criterion": "cv", "n_folds": 61}, ValueError, "n_folds = 61"),
        (KernelRidge(0.3, [1.0, 2.0]), {"criterion": None}, ValueError, "cannot choose"),
        (Precomputed(), {}, ValueError, "a square matrix; got shape"),
    ],
)
def test_bad_input_is_named(smoother, given, error, says):
    with pytest.raises(error, match=says):
        fitted(smoother, **given)


@pytest.mark.slow
def test_bad_matrices_and_weights_are_named():
    S = operator(PAIRS["kernel"][1], X)
    with pytest.raises(ValueError, match="needs a symmetric matrix"):
        fitted(Precomputed(), S + np.triu(S, 1))
    with pytest.raises(ValueError, match="an eigenvalue of -"):
        fitted(Precomputed(), np.diag(np.linspace(-0.5, 1.0, 60)))
    with pytest.raises(ValueError, match="largest eigenvalue of the smoother, 6"):
        fitted(Precomputed(), 6.0 * np.eye(60))
    for smoother, x in ((Precomputed(), np.eye(60)), (Neighbours(3), X)):
        with pytest.raises(ValueError, match="takes no sample_weight"):
            fitted(smoother, x, weights=W)
    with pytest.raises(ValueError, match="df must be a number >= 2"):
        fitted(Spline(1.0), X[:, :1])
    with pytest.raises(ValueError, match="2 distinct values"):
        fitted(Spline(), np.ones((60, 1)))
    with pytest.raises(ValueError, match=r"not defined: after one round.*n_samples = 5"):
        fitted(KernelRidge(0.01, 1e-6), X[:5], Y[:5], learning_rate=1.0, criterion="aicc")
    many = np.linspace(0.0, 1.0, 63_245)[:, None]
    for smoother, instead in ((KernelRidge(), "rank=1000"), (Spline(), "n_knots=1000")):
        with pytest.raises(ValueError, match=f"63245 rows needs 119 GiB.*{instead}"):
            fitted(smoother, many, many[:, 0])
    with pytest.raises(ValueError, match="sigma must be"):
        fitted(KernelRidge()).bias_variance(X, Y, -1.0)


@pytest.mark.slow
def test_the_checks_of_scikit_learn_pass():
    assert_checks_pass(L2BoostRegressor())


@pytest.mark.parametrize(
    ("learner", "smoother"),
    [(learners.Neighbours(4), Neighbours(4)), (learners.Ridge(2.0), Ridge(2.0))],
)
def test_a_learner_that_is_a_smoother_serves_as_one(learner, smoother):
    one, other = (fitted(own, n_estimators=4) for own in (learner, smoother))
    assert one.model_.fingerprint() == other.model_.fingerprint()
