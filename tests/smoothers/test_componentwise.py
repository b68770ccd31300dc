"""Componentwise L2Boost: rounds and operators by explicit matrices, mboost and the lasso."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import lars_path

from ensemble_gpu import L2BoostRegressor
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.smoothers import KernelRidge, Linear, Ridge, Spline, Stumps
from ensemble_gpu.smoothers.dictionary import dictionary_of
from ensemble_gpu.smoothers.protocol import SmootherRows
from tests.estimators.checks import assert_checks_pass

pytestmark = pytest.mark.filterwarnings("ignore:criterion=:sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(1)
X = RNG.normal(size=(50, 4)) + 1.0
Y = 2.0 * X[:, 0] - X[:, 2] + np.sin(2.0 * X[:, 3]) + 0.5 * RNG.normal(size=50)
W = RNG.integers(1, 4, size=50).astype(float)

# R's data set `cars`: stopping distances of 50 cars in the 1920s.
SPEED = np.repeat(
    [4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25],
    [2, 2, 1, 1, 3, 2, 4, 4, 4, 3, 2, 3, 4, 3, 5, 1, 1, 4, 1],
).astype(float)
DISTANCE = np.array([
    2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20,
    26, 54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93,
    120, 85,
], dtype=float)  # fmt: skip


def fitted(smoother, X=X, y=Y, weights=None, **given):
    given = {"learning_rate": 0.3, "n_estimators": 25, "criterion": None} | given
    return L2BoostRegressor(smoother, componentwise=True, **given).fit(X, y, weights)


def smoothers_of(smoother, weights=None):
    """The explicit smoother H_j [n, n] of every group."""
    parts = dictionary_of(smoother, SmootherRows(X, weights, locate(X)))
    root = np.ones(50) if weights is None else np.sqrt(weights)
    found = []
    for a, b in zip(parts.starts[:-1], parts.starts[1:], strict=True):
        U = parts.A[:, a:b]
        found.append((U * parts.shrink[a:b]) @ U.T * root / root[:, None])
    return found


def brute_force(H, w, rate, rounds):
    """Groups, fits, RSS and operators (of y - mean) of each round."""
    F, B = np.full(50, np.average(Y, weights=w)), np.zeros((50, 50))
    found = []
    for _ in range(rounds):
        r = Y - F
        left = [(w * (r - h @ r) ** 2).sum() for h in H]
        j = int(np.argmin(left))
        F, B = F + rate * H[j] @ r, B + rate * H[j] @ (np.eye(50) - B)
        found.append((j, F, (w * (Y - F) ** 2).sum(), B))
    return found


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "smoother",
    [Linear(), Linear(center=False), Linear(groups=[[0, 1], [2], [3, 1]]), Spline(4.0), Stumps(5)],
    ids=lambda one: " ".join(repr(one).split()),
)
def test_rounds_are_those_of_brute_force(smoother, weights):
    model = fitted(smoother, weights=weights)
    w = np.ones(50) if weights is None else weights
    J = np.outer(np.ones(50), w) / w.sum()
    found = brute_force(smoothers_of(smoother, weights), w, 0.3, 25)
    np.testing.assert_array_equal(model.chosen_, [j for j, *_ in found])
    for k, (F, (_, expected, rss, B)) in enumerate(
        zip(model.staged_predict(X), found, strict=True)
    ):
        np.testing.assert_allclose(F, expected, atol=1e-9)
        whole = J + B @ (np.eye(50) - J)
        np.testing.assert_allclose(whole @ Y, expected, atol=1e-8)  # F = B y
        assert model.rss_[k] == pytest.approx(rss)
        assert model.df_[k] == pytest.approx(np.trace(whole))


def test_columns_are_what_they_are_called():
    """Smoothers of single columns from their definitions, not from the dictionary."""
    for H, x in zip(smoothers_of(Linear()), X.T, strict=True):
        x = x - x.mean()
        np.testing.assert_allclose(H, np.outer(x, x) / (x @ x), atol=1e-12)
    splines = smoothers_of(Spline(4.0))
    for f, H in enumerate(splines):
        one = L2BoostRegressor(
            Spline(4.0, n_knots=20), learning_rate=1.0, n_estimators=1, criterion=None
        ).fit(X[:, f : f + 1], Y)  # fmt: skip
        np.testing.assert_allclose(Y.mean() + H @ Y, one.predict(X[:, f : f + 1]), atol=1e-8)
        assert np.trace(H) == pytest.approx(3.0)  # the mean is not among them
    assert len(smoothers_of(Stumps(5))) == 20


def test_the_published_fit_of_mboost_is_reached():
    """glmboost(dist ~ speed, data = cars, center = FALSE), nu = 0.1: AIC(., "corrected")."""
    model = fitted(Linear(center=False), SPEED[:, None], DISTANCE, learning_rate=0.1,
                   n_estimators=2000, init="offset", criterion="aicc")  # fmt: skip
    assert model.n_estimators_ == 1549
    assert model.criteria_["aicc"].min() == pytest.approx(6.555391, abs=5e-7)
    assert model.df_[1548] == pytest.approx(1.986856, abs=5e-7)


def test_rss_falls_by_what_the_formula_says():
    model = fitted(Linear(), learning_rate=0.7)
    A = X - X.mean(axis=0)
    rss = ((Y - Y.mean()) ** 2).sum()
    r = Y - Y.mean()
    for k, j in enumerate(model.chosen_):
        c = A[:, j] @ r
        rss -= 0.7 * 1.3 * c * c / (A[:, j] @ A[:, j])
        assert model.rss_[k] == pytest.approx(rss)
        r = r - 0.7 * c / (A[:, j] @ A[:, j]) * A[:, j]


def test_coefficients_and_their_path():
    model = fitted(Linear(), n_estimators=4000, learning_rate=0.3)
    exact = np.linalg.lstsq(np.column_stack([np.ones(50), X]), Y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_, exact[1:], atol=1e-8)  # least squares in the limit
    assert model.intercept_ == pytest.approx(exact[0])
    assert model.coef_path_.shape == (model.n_estimators_, 4)
    np.testing.assert_array_equal(model.coef_path_[-1], model.coef_)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X))
    assert (np.count_nonzero(np.diff(model.coef_path_, axis=0), axis=1) <= 1).all()
    assert model.n_estimators_ < 4000  # it ends where nothing is left to gain


def test_small_steps_on_orthonormal_columns_are_the_lasso():
    Q = np.linalg.qr(RNG.normal(size=(50, 6)) - 0.0)[0]
    Q = np.linalg.qr(Q - Q.mean(axis=0))[0]
    y = Q @ [3.0, -2.0, 1.0, 0.5, 0.2, 0.1]
    path = fitted(Linear(), Q, y, learning_rate=1e-3, n_estimators=3000).coef_path_
    _, _, coefs = lars_path(Q, y - y.mean(), method="lasso")
    for at in (500, 1500, 2900):
        norm = np.abs(path[at]).sum()
        norms = np.abs(coefs).sum(axis=0)
        lasso = [np.interp(norm, norms, row) for row in coefs]
        np.testing.assert_allclose(path[at], lasso, atol=0.02)


def test_one_column_is_the_smoother_of_all_columns():
    alone = fitted(Linear(), X[:, :1])
    whole = L2BoostRegressor(Linear(), learning_rate=0.3, n_estimators=25, criterion=None)
    whole.fit(X[:, :1], Y)
    np.testing.assert_allclose(alone.df_, whole.df_)
    np.testing.assert_allclose(alone.predict(X[:, :1]), whole.predict(X[:, :1]))


def test_equal_columns_tie_and_the_first_is_taken():
    double = np.hstack([X, X])
    assert set(fitted(Linear(), double).chosen_) <= set(range(4))
    np.testing.assert_allclose(
        fitted(Linear(), double).predict(double), fitted(Linear()).predict(X)
    )


def test_constant_columns_are_left_out():
    padded = np.hstack([np.full((50, 1), 7.0), X])
    for smoother in (Linear(), Spline(), Stumps(5), Linear(groups=[[0], [1, 2], [3], [4]])):
        model = fitted(smoother, padded)
        assert model.feature_importances_[0] == 0.0
        assert model.feature_importances_.sum() == pytest.approx(1.0)
    tiny = fitted(Linear(), X * [1.0, 1e-30, 1e30, 1.0])
    np.testing.assert_array_equal(tiny.chosen_, fitted(Linear()).chosen_)
    nothing = fitted(Linear(), np.full((50, 2), 0.1), criterion="aicc")
    assert nothing.n_estimators_ == 0
    np.testing.assert_allclose(nothing.predict(np.full((3, 2), 0.1)), Y.mean())


def test_cross_validation_chooses_rounds():
    model = fitted(Linear(), criterion="cv", random_state=0, n_estimators=100)
    assert model.n_estimators_ == np.argmin(model.criteria_["cv"]) + 1


@pytest.mark.parametrize("smoother", [Linear(), Spline(), Stumps(5), Linear(groups=[[0, 1], [3]])])
def test_predictions_are_where_x_is(smoother, place):
    here = fitted(smoother, weights=W)
    there = clone(here).fit(place.put(X), place.put(Y), place.put(W))
    np.testing.assert_array_equal(there.chosen_, here.chosen_)
    predicted = there.predict(place.put(X))
    place.check(predicted, "float64")
    np.testing.assert_allclose(place.host(predicted), here.predict(X), atol=1e-10)
    np.testing.assert_allclose(there.df_, here.df_, atol=1e-10)


@pytest.mark.interop
def test_other_libraries_have_the_same_columns(library):
    there = library.put(X)
    rows = SmootherRows(there, None, locate(there))
    own = library.host(dictionary_of(Stumps(5), rows).A)
    expected = dictionary_of(Stumps(5), SmootherRows(X, None, locate(X))).A
    np.testing.assert_allclose(own, expected, atol=1e-12)
    predicted = fitted(Spline(), there, library.put(Y)).predict(there)
    library.check(predicted, "float64")
    np.testing.assert_allclose(library.host(predicted), fitted(Spline()).predict(X))


@pytest.mark.slow
def test_shapes_of_features_can_be_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    from ensemble_gpu.plotting import plot_shape_functions

    for smoother in (Spline(), Stumps(5)):
        model = fitted(smoother)
        figure = plot_shape_functions(model, X=X)
        assert len([ax for ax in figure.axes if ax.get_visible()]) >= 2
        plt.close("all")
    linear = fitted(Linear())
    plt.close(plot_shape_functions(linear, X=X))
    F = linear.intercept_ + sum(linear.model_.shape_function(f)(X[:, f]) for f in range(4))
    np.testing.assert_allclose(F, linear.predict(X))
    spline = fitted(Spline())
    F = spline.model_.intercept[0] + sum(
        spline.model_.shape_function(f)(X[:, f]) for f in range(4)
    )  # fmt: skip
    np.testing.assert_allclose(F, spline.predict(X))


@pytest.mark.parametrize(
    ("smoother", "given", "says"),
    [
        (KernelRidge(), {}, r"Linear\(\), Spline\(\) or Stumps\(\)"),
        (Ridge(), {}, r"Linear\(\), Spline\(\) or Stumps\(\)"),
        (Linear(groups=[[0], [4]]), {}, "groups must be lists of columns from 0 to 3"),
        (Linear(groups=[0, 1]), {}, "groups must be lists of columns from 0 to 3"),
        (Linear(groups=[[0.5]]), {}, "groups must be lists of columns from 0 to 3"),
        (Linear(), {"learning_rate": 2.0}, "learning_rate must be below 2"),
        (Spline([3.0, 4.0]), {}, "takes one df"),
        (Spline(n_knots=2), {}, "n_knots must be"),
        (Stumps(0), {}, "n_thresholds must be"),
    ],
)
def test_bad_input_is_named(smoother, given, says):
    with pytest.raises(ValueError, match=says):
        fitted(smoother, **given)


def test_what_cannot_be_is_said():
    with pytest.raises(ValueError, match="needs componentwise=True"):
        L2BoostRegressor(Stumps()).fit(X, Y)
    with pytest.raises(ValueError, match="the choice of the columns depends on y"):
        fitted(Linear()).bias_variance(X, Y, 1.0)
    with pytest.raises(AttributeError, match="a fitted model that is linear"):
        _ = fitted(Spline()).coef_
    with pytest.raises(ValueError, match="cells, more than"):
        fitted(Linear(), np.ones((2, 17_000)) * [[1.0], [2.0]], Y[:2])


@pytest.mark.slow
@pytest.mark.parametrize("smoother", [Linear(), Spline()])
def test_the_checks_of_scikit_learn_pass(smoother):
    assert_checks_pass(L2BoostRegressor(smoother, componentwise=True, n_estimators=50))
