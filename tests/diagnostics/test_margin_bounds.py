"""Bounds on margins and by margins, curves, and the game that they are the value of (SPEC B15)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from ensemble_gpu import AdaBoostClassifier, BoostingRegressor
from ensemble_gpu.diagnostics import (
    after,
    generalisation_bound,
    margin_bound,
    margin_bracket,
    margin_curves,
    margins,
    staged_errors,
    stump_complexity,
    stump_dimension,
    training_error_bound,
    vc_complexity,
)
from ensemble_gpu.learners import HalfSpaces, Pool
from tests.places import DEVICE

THETA = np.array([0.0, 0.05, 0.2, 0.5, 1.0])


@pytest.fixture(scope="module")
def rows():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :5], y


@pytest.fixture(scope="module")
def discrete(rows):
    return AdaBoostClassifier(variant="discrete", n_estimators=40).fit(*rows)


@pytest.mark.parametrize("rate", [1.0, 0.4])
@pytest.mark.parametrize("variant", ["real", "discrete", "gentle"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_share_below_a_margin_is_at_most_its_bound(variant, rate, n_classes, rows):
    X, y = rows if n_classes == 2 else load_wine(return_X_y=True)
    model = AdaBoostClassifier(variant=variant, n_estimators=9, learning_rate=rate).fit(X, y)
    when = [1, 4, 9]
    bound, found = margin_bound(model, THETA, when), margins(model, X, y, when)
    assert bound.shape == (3, 5)
    for t in range(3):
        shares = (found[t][:, None] <= THETA + 1e-12).mean(axis=0)
        assert (shares <= bound[t] * (1.0 + 1e-7)).all()
    np.testing.assert_allclose(bound[:, 0], training_error_bound(model)[[0, 3, 8]], rtol=1e-12)
    assert margin_bound(model, 0.2) == bound[2, 2]


def test_the_bound_is_the_textbooks_product(discrete):
    e = discrete.errors_
    for theta in (0.0, 0.1, 0.7):
        product = np.prod(2.0 * np.sqrt(e ** (1.0 - theta) * (1.0 - e) ** (1.0 + theta)))
        assert margin_bound(discrete, theta) == pytest.approx(product, rel=1e-10)


def test_curves_are_statistics_of_the_margins(discrete, rows):
    X, y = rows
    curves = margin_curves(discrete, X, y, [3, 40], quantiles=[0.1, 0.5])
    found = margins(discrete, X, y, [3, 40])
    np.testing.assert_allclose(curves.mean, found.mean(axis=1))
    np.testing.assert_array_equal(curves.minimum, found.min(axis=1))
    for share in (0.1, 0.5):
        expected = np.quantile(found, share, axis=1, method="inverted_cdf")
        np.testing.assert_array_equal(curves.quantiles[share], expected)
    np.testing.assert_allclose(curves.error, staged_errors(discrete, X, y)[[2, 39]], atol=1e-12)
    pytest.importorskip("pandas")
    frame = margin_curves(discrete, X, y).to_frame()
    assert frame.index[0] == 1
    assert frame.index[-1] == 40


def test_weights_of_rows_are_repeated_rows(discrete, rows):
    X, y = rows
    w = np.random.default_rng(0).integers(0, 4, size=len(y))
    weighted = margin_curves(discrete, X, y, [10], sample_weight=w)
    repeated = margin_curves(discrete, np.repeat(X, w, axis=0), np.repeat(y, w), [10])
    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.minimum, repeated.minimum)
    np.testing.assert_allclose(weighted.error, repeated.error)
    for share, values in weighted.quantiles.items():
        np.testing.assert_array_equal(values, repeated.quantiles[share])


def best_minimum(answers: np.ndarray, y: np.ndarray) -> float:
    """rho* of a small game, by linear programming."""
    from scipy.optimize import linprog

    n, k = answers.shape
    cost = np.r_[np.zeros(k), -1.0]
    above = np.c_[-(y[:, None] * answers), np.ones(n)]
    solved = linprog(
        cost, A_ub=above, b_ub=np.zeros(n), A_eq=[[*[1.0] * k, 0.0]], b_eq=[1.0],
        bounds=[*[(0.0, None)] * k, (None, None)],
    )  # fmt: skip
    return float(solved.x[-1])


def test_the_bracket_holds_the_value_of_the_game_for_a_pool():
    rng = np.random.default_rng(5)
    answers = np.where(rng.random((24, 40)) < 0.65, 1, -1)
    y = np.where(rng.random(24) < 0.5, 1, -1)
    answers = answers * y[:, None]
    members = [lambda X, k=k: answers[X[:, 0].astype(int), k] for k in range(40)]
    X = np.arange(24.0)[:, None]
    model = AdaBoostClassifier(Pool(members), variant="discrete", n_estimators=150).fit(X, y)
    bracket = margin_bracket(model, X, y)
    value = best_minimum(answers, y)
    assert bracket.low <= value + 1e-9
    assert value <= bracket.high + 1e-6
    assert bracket.high - bracket.low < 0.25


def test_every_edge_is_at_least_the_minimum_margin_of_every_stage(discrete, rows):
    X, y = rows
    _, right, wrong, _ = discrete.history_.weights.T
    lowest = [margins(after(discrete, t), X, y).min() for t in (1, 10, 40)]
    assert (right - wrong).min() >= max(lowest)
    bracket = margin_bracket(discrete, X, y)
    assert (bracket.low, bracket.high) == (lowest[-1], (right - wrong).min())
    assert (right - wrong)[bracket.round - 1] == bracket.high


def test_the_bound_for_new_rows_is_the_sum_of_its_terms(discrete, rows):
    X, y = rows
    m, complexity = len(y), stump_complexity(5, len(y))
    found = generalisation_bound(discrete, X, y, theta=0.25, delta=0.1)
    assert found.share == np.mean(margins(discrete, X, y) <= 0.25)
    assert found.complexity_term == pytest.approx(16.0 * complexity)
    assert found.theta_term == pytest.approx(math.sqrt(math.log(3.0) / m))
    assert found.confidence_term == pytest.approx(math.sqrt(math.log(20.0) / (2.0 * m)))
    assert found.bound == pytest.approx(
        found.share + found.complexity_term + found.theta_term + found.confidence_term
    )
    best = generalisation_bound(discrete, X, y, complexity=1e-3)
    others = [generalisation_bound(discrete, X, y, complexity=1e-3, theta=t) for t in (0.05, 0.5)]
    assert best.bound <= min(other.bound for other in others)
    assert not best.vacuous
    assert generalisation_bound(discrete, X, y).vacuous


@pytest.mark.slow
def test_the_bound_for_new_rows_holds_on_new_rows():
    """Of 30 samples none is above it: the true error is estimated on 20,000 rows."""
    rng = np.random.default_rng(2)

    def sample(n):
        X = rng.uniform(-1.0, 1.0, size=(n, 2))
        y = (X[:, 0] > 0.0) ^ (rng.random(n) < 0.1)
        return X, y.astype(int)

    X_test, y_test = sample(20_000)
    for _ in range(30):
        X, y = sample(400)
        model = AdaBoostClassifier(variant="discrete", n_estimators=5).fit(X, y)
        bound = generalisation_bound(model, X, y, complexity=stump_complexity(2, 400) / 8.0)
        assert np.mean(model.predict(X_test) != y_test) <= bound.bound


@pytest.mark.parametrize("p", [1, 2, 3])
def test_stumps_shatter_no_more_rows_than_their_dimension(p):
    d = stump_dimension(p)
    m = d + 1
    X = np.random.default_rng(0).normal(size=(40, m, p))
    for rows in X:
        seen = {
            tuple(np.where(rows[:, f] <= cut, sign, -sign).tolist())
            for f, cut, sign in itertools.product(range(p), [-np.inf, *rows.ravel()], (1, -1))
        }
        assert len(seen) < 2**m
        assert len(seen) <= 4 * p * m


def test_complexities_fall_with_rows_and_rise_with_dimension():
    assert vc_complexity(3, 1000) == pytest.approx(
        math.sqrt(6 * math.log(math.e * 1000 / 3) / 1000)
    )
    assert vc_complexity(3, 1000) > vc_complexity(3, 10_000)
    assert vc_complexity(5, 1000) > vc_complexity(3, 1000)
    assert vc_complexity(5, 4) == 1.0
    assert stump_complexity(5, 1000) > stump_complexity(5, 10_000)


def test_margins_are_arrays_of_the_library_of_X(discrete, rows):
    X, y = rows
    found = margins(discrete, DEVICE.put(X), DEVICE.put(y), [1, 40])
    DEVICE.check(found, "float64")
    np.testing.assert_array_equal(DEVICE.host(found), margins(discrete, X, y, [1, 40]))


def test_bad_input_is_refused_in_words(discrete, rows):
    X, y = rows
    for theta in (-0.1, 1.5, [0.5, float("nan")]):
        with pytest.raises(ValueError, match=r"theta must be in \[0, 1\]; got"):
            margin_bound(discrete, theta)
    for theta in (0.0, -0.5, 1.1):
        with pytest.raises(ValueError, match=r"theta must be .*in \(0, 1\]; got"):
            generalisation_bound(discrete, X, y, theta=theta)
    with pytest.raises(ValueError, match=r"delta must be .*in \(0, 1\]; got 0"):
        generalisation_bound(discrete, X, y, delta=0.0)
    with pytest.raises(ValueError, match=r"quantiles must be in \(0, 1\); got 1"):
        margin_curves(discrete, X, y, quantiles=[1.0])
    regressor = BoostingRegressor(n_estimators=2, max_depth=1).fit(X, y)
    for ask in (margin_curves, margin_bracket, generalisation_bound):
        with pytest.raises(TypeError, match=r"boosted classifier .*; got BoostingRegressor"):
            ask(regressor, X, y)
    real = AdaBoostClassifier(n_estimators=2).fit(X, y)
    redrawn = AdaBoostClassifier(
        HalfSpaces(20, redraw="round"), variant="discrete", n_estimators=2, random_state=0
    ).fit(X, y)
    for model in (real, redrawn):
        with pytest.raises(
            ValueError, match="bracket needs AdaBoostClassifier with variant='discr"
        ):
            margin_bracket(model, X, y)
    with pytest.raises(ValueError, match="complexity must be given for learners other than stumps"):
        generalisation_bound(redrawn, X, y)
    three = AdaBoostClassifier(n_estimators=2).fit(*load_wine(return_X_y=True))
    with pytest.raises(ValueError, match="for two classes; got 3"):
        generalisation_bound(three, *load_wine(return_X_y=True))
