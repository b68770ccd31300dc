"""Ridge regression: scikit-learn's and real leave-one-out fits are the oracles."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, Ridge

from ensemble_gpu import RidgeRegressor
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.learners.ridge import coefficients, decompose, smooth
from tests.estimators.checks import assert_checks_pass

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)) + 3.0
Y = X @ [1.0, -2.0, 0.0, 0.5, 3.0] + 4.0 + RNG.normal(size=60)
W = RNG.gamma(1.0, size=60)
W[::7] = 0.0
PENALTIES = [0.0, 0.1, 1.0, 10.0, 1e6]


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("l2", PENALTIES)
def test_coefficients_are_those_of_scikit_learn(l2, weights):
    ours = RidgeRegressor(l2).fit(X, Y, weights)
    theirs = (Ridge(l2) if l2 else LinearRegression()).fit(X, Y, weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-9, atol=1e-10)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-9)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


def test_more_features_than_rows_and_equal_features_have_a_fit():
    wide = RNG.normal(size=(10, 30))
    for l2 in (0.0, 2.0):
        ours = RidgeRegressor(l2).fit(wide, Y[:10])
        theirs = (Ridge(l2) if l2 else LinearRegression()).fit(wide, Y[:10])
        np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-8)
    double = np.hstack([X, X])
    twice, once = RidgeRegressor(0.0).fit(double, Y), RidgeRegressor(0.0).fit(X, Y)
    np.testing.assert_allclose(twice.predict(double), once.predict(X))


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_all_penalties_come_from_one_decomposition(weights):
    path = RidgeRegressor().path(X, Y, PENALTIES, weights)
    for i, l2 in enumerate(PENALTIES):
        alone = RidgeRegressor(l2).fit(X, Y, weights)
        np.testing.assert_array_equal(path.coef[i], alone.coef_)
        assert path.intercept[i] == alone.intercept_
    assert path.degrees_of_freedom[0] == pytest.approx(6.0)
    assert path.degrees_of_freedom[-1] == pytest.approx(1.0, abs=1e-2)
    assert (np.diff(path.degrees_of_freedom) < 0.0).all()


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
def test_leave_one_out_is_exact(weights):
    (found,) = RidgeRegressor().path(X, Y, [2.0], weights).leave_one_out
    w = np.ones(60) if weights is None else weights
    rows = np.flatnonzero(w)
    errors = []
    for i in rows:
        rest = rows[rows != i]
        alone = RidgeRegressor(2.0).fit(X[rest], Y[rest], w[rest])
        errors.append((alone.predict(X[i : i + 1])[0] - Y[i]) ** 2)
    assert found == pytest.approx(np.average(errors, weights=w[rows]))


def test_a_large_penalty_leaves_the_mean():
    np.testing.assert_allclose(RidgeRegressor(1e15).fit(X, Y).predict(X), Y.mean(), rtol=1e-9)


def test_predictions_are_where_x_is(place):
    ours = RidgeRegressor(1.0).fit(place.put(X), place.put(Y), place.put(W))
    predicted = ours.predict(place.put(X))
    place.check(predicted, "float64")
    np.testing.assert_allclose(
        place.host(predicted), RidgeRegressor(1.0).fit(X, Y, W).predict(X), rtol=1e-9
    )


@pytest.mark.interop
def test_other_libraries_predict_the_same(library):
    there = library.put(X)
    predicted = RidgeRegressor(1.0).fit(there, library.put(Y)).predict(there)
    library.check(predicted, "float64")
    np.testing.assert_allclose(library.host(predicted), RidgeRegressor(1.0).fit(X, Y).predict(X))


@pytest.mark.interop
def test_other_libraries_decompose_the_rows_themselves(library):
    """On the host their arrays are seen as NumPy's; on a device they are not."""
    there, y = library.put(X), library.put(Y[:, None])
    parts = decompose(there, library.put(W + 0.1), locate(there))
    alone = RidgeRegressor(2.0).fit(X, Y, W + 0.1)
    b, _ = coefficients(parts, y, 2.0)
    np.testing.assert_allclose(library.host(b)[0], alone.coef_)
    np.testing.assert_allclose(library.host(smooth(parts, y, 2.0))[:, 0], alone.predict(X))


@pytest.mark.parametrize(
    ("l2", "error", "says"), [(-1.0, ValueError, "l2 must be"), ("1", TypeError, "l2 must be")]
)
def test_bad_penalties_are_named(l2, error, says):
    with pytest.raises(error, match=says):
        RidgeRegressor(l2).fit(X, Y)
    with pytest.raises(ValueError, match="l2 must be a list"):
        RidgeRegressor().path(X, Y, [])


def test_the_checks_of_scikit_learn_pass():
    assert_checks_pass(RidgeRegressor())
