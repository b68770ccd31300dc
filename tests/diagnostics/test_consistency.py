"""Schedules, the deviation bound and the Rademacher complexity of learners (SPEC B11)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    L1BoostingClassifier,
    consistent_radius,
    consistent_rounds,
)
from ensemble_gpu.diagnostics import deviation_bound, rademacher_complexity, vc_complexity
from ensemble_gpu.losses import LogitBoost
from tests.losses.shapes import RAMP
from tests.places import DEVICE

NAMED = ("exponential", "logistic", "hinge", "squared", "truncated_squared")


@pytest.mark.parametrize("loss", NAMED)
def test_radii_grow_while_their_condition_falls_to_zero(loss):
    """lambda |phi'(-lambda)| sqrt(ln m / m), the lecture's condition."""
    m = 10.0 ** np.arange(2, 60, 6)
    radii = np.array([consistent_radius(loss, int(n)) for n in m])
    assert (np.diff(radii) > 0.0).all()
    slopes = np.array([deviation_bound(loss, 10, radius=r, vc_dimension=1).slope for r in radii])
    condition = radii * slopes * np.sqrt(np.log(m) / m)
    assert (np.diff(condition) < 0.0).all()
    assert condition[-1] < 1e-3


def test_rounds_follow_their_schedule():
    assert consistent_rounds(1000) == math.floor(1000**0.9)
    assert consistent_rounds(1000, 0.5) == 31
    assert consistent_rounds(100, 0.5) == 10
    assert consistent_rounds(1) == 1
    for eps in (0.0, 1.0, 2.0):
        with pytest.raises(ValueError, match=r"eps must be .*in \(0, 1"):
            consistent_rounds(10, eps)


def test_consistent_rounds_are_those_of_a_number():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0.0).astype(int)
    w = rng.integers(0, 3, size=60)
    ours = AdaBoostClassifier(n_estimators="consistent", calibrate=False).fit(X, y)
    same = AdaBoostClassifier(n_estimators=consistent_rounds(60), calibrate=False).fit(X, y)
    assert ours.n_estimators_ == consistent_rounds(60) == 39
    assert ours.model_.fingerprint() == same.model_.fingerprint()
    weighted = AdaBoostClassifier(n_estimators="consistent", calibrate=False).fit(X, y, w)
    assert weighted.n_estimators_ == consistent_rounds(int(w.sum()))
    halves = AdaBoostClassifier(n_estimators="consistent", calibrate=False).fit(X, y, w / 2 + 0.25)
    assert halves.n_estimators_ == consistent_rounds(60)
    again = AdaBoostClassifier(n_estimators="consistent", calibrate=False, warm_start=True)
    assert again.fit(X, y).fit(X, y).model_.fingerprint() == ours.model_.fingerprint()
    ball = L1BoostingClassifier("exponential", radius="consistent").fit(X, y)
    assert ball.radius_ == consistent_radius("exponential", 60)


def test_only_adaboost_has_consistent_rounds():
    X, y = np.arange(8.0)[:, None], [0, 1] * 4
    with pytest.raises(TypeError, match=r"n_estimators must be .*'consistent'; got 'const"):
        AdaBoostClassifier(n_estimators="constant").fit(X, y)
    with pytest.raises((TypeError, ValueError), match="n_estimators must be an integer"):
        BoostingClassifier(n_estimators="consistent").fit(X, y)


@pytest.mark.parametrize(
    ("loss", "slope", "top"),
    [
        ("exponential", math.exp(2.0), math.exp(2.0)),
        ("logistic", 1.0 / (1.0 + math.exp(-2.0)), math.log1p(math.exp(2.0))),
        ("hinge", 1.0, 3.0),
        ("squared", 6.0, 9.0),
        ("truncated_squared", 6.0, 9.0),
    ],
)
def test_terms_have_their_formulas(loss, slope, top):
    found = deviation_bound(loss, 500, radius=2.0, vc_dimension=3, delta=0.1)
    rademacher = math.sqrt(2.0 * 3 * math.log(math.e * 500 / 3) / 500)
    assert found.complexity == pytest.approx(rademacher, rel=1e-10)
    assert found.complexity_term == pytest.approx(2.0 * 2.0 * slope * rademacher, rel=1e-10)
    confidence = top * math.sqrt(math.log(10.0) / 1000.0)
    assert found.confidence_term == pytest.approx(confidence, rel=1e-10)
    assert found.bound == found.complexity_term + found.confidence_term
    assert found.vacuous == (found.bound >= found.at_zero)


@pytest.mark.parametrize("loss", NAMED)
def test_the_bound_falls_with_rows_and_rises_with_the_radius(loss):
    def bound(m, radius, delta=0.05):
        return deviation_bound(loss, m, radius=radius, vc_dimension=4, delta=delta)

    by_rows = [bound(m, 1.5).bound for m in (100, 1000, 10_000)]
    by_radius = [bound(1000, radius).bound for radius in (0.5, 1.0, 4.0)]
    assert by_rows == sorted(by_rows, reverse=True)
    assert by_radius == sorted(by_radius)
    one, half = bound(1000, 2.0), bound(1000, 2.0, 0.025)
    assert half.complexity_term == one.complexity_term
    assert half.confidence_term > one.confidence_term


def test_the_bound_holds_for_the_worst_stump_of_the_ball():
    """sup over lambda co(stumps) of R - R_m for the hinge in [-1, 1], where it is linear.

    1 - y f is linear in f, so the supremum is lambda times that of single stumps.
    """
    rng = np.random.default_rng(1)
    m = 200
    for _ in range(20):
        x, y = rng.uniform(size=m), rng.choice([-1.0, 1.0], size=m)  # E y h = 0: R = 1
        ranked = y[np.argsort(x)]
        largest = np.abs(2.0 * np.r_[0.0, np.cumsum(ranked)] - ranked.sum()).max() / m
        bound = deviation_bound("hinge", m, radius=1.0, vc_dimension=2)
        assert largest <= bound.bound


def test_a_report_says_whether_the_bound_is_worth_anything():
    small = str(deviation_bound("exponential", 100, vc_dimension=5))
    large = str(deviation_bound("hinge", 10**8, vc_dimension=5, radius=1.0))
    assert "says nothing" in small
    assert "below the risk of f = 0" in large


def largest_edge(X: np.ndarray, s: np.ndarray) -> float:
    """By trying every threshold of every feature, with NaN abstaining."""
    found = [abs(s.mean())]
    for f, t in itertools.product(range(X.shape[1]), range(len(X))):
        h = np.where(X[:, f] <= X[t, f], 1.0, -1.0)
        found.append(abs(np.mean(s * np.where(np.isnan(X[:, f]), 0.0, h))))
    return max(found)


@pytest.mark.parametrize("place", ["numpy", "strict"])
def test_the_complexity_of_stumps_is_that_of_brute_force(place):
    rng = np.random.default_rng(2)
    X = np.round(rng.normal(size=(30, 3)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    given = X if place == "numpy" else DEVICE.put(X)
    found = rademacher_complexity(given, n_signs=12, random_state=5)
    signs = 2 * np.random.default_rng(5).integers(2, size=(12, 30)) - 1
    expected = [largest_edge(X, s) for s in signs]
    np.testing.assert_allclose(found.samples, expected, atol=1e-15)
    assert found.value == pytest.approx(np.mean(expected))


def test_the_weak_learner_itself_finds_the_same():
    X = np.random.default_rng(3).normal(size=(80, 4))
    exact = rademacher_complexity(X, n_signs=6)
    learnt = rademacher_complexity(X, AdaBoostClassifier(), n_signs=6)
    np.testing.assert_allclose(learnt.samples, exact.samples, atol=1e-6)
    theirs = rademacher_complexity(X, DecisionTreeClassifier(max_depth=1), n_signs=6)
    assert (theirs.samples <= exact.samples + 1e-12).all()
    deep = rademacher_complexity(X, DecisionTreeClassifier(), n_signs=6)
    np.testing.assert_array_equal(deep.samples, np.ones(6))  # it learns any labels by heart


def test_the_complexity_falls_with_rows_and_is_below_its_bound():
    rng = np.random.default_rng(4)
    found = [rademacher_complexity(rng.normal(size=(m, 1)), n_signs=40) for m in (50, 200, 800)]
    values = [one.value for one in found]
    assert values == sorted(values, reverse=True)
    for m, one in zip((50, 200, 800), found, strict=True):
        assert one.value <= vc_complexity(2, m)
        width = math.sqrt(2.0 * math.log(2.0 / 0.1) / m)
        assert one.upper(0.1) == pytest.approx(one.value + width * (1.0 + 1.0 / math.sqrt(40)))
        assert one.standard_error < 0.02


def test_bad_input_is_refused_in_words():
    X = np.zeros((5, 1))
    with pytest.raises(ValueError, match="m must be an integer >= 3; got 2"):
        deviation_bound("hinge", 2, vc_dimension=1)
    with pytest.raises(ValueError, match="Give one of vc_dimension and complexity"):
        deviation_bound("hinge", 10)
    with pytest.raises(ValueError, match="Give one of vc_dimension and complexity"):
        deviation_bound("hinge", 10, vc_dimension=2, complexity=0.1)
    with pytest.raises(ValueError, match=r"delta must be .*in \(0, 1\]; got 0"):
        deviation_bound("hinge", 10, vc_dimension=1, delta=0.0)
    with pytest.raises(ValueError, match=r"radius must be .*> 0; got -1"):
        deviation_bound("hinge", 10, vc_dimension=1, radius=-1.0)
    for loss in (RAMP, LogitBoost()):
        with pytest.raises(ValueError, match="loss must be convex, with its true gradient"):
            deviation_bound(loss, 10, vc_dimension=1, radius=1.0)
    with pytest.raises(ValueError, match="n_signs must be an integer >= 2; got 1"):
        rademacher_complexity(X, n_signs=1)
    with pytest.raises(TypeError, match="estimator must be a classifier or None; got Boosting"):
        rademacher_complexity(X, BoostingRegressor())
    with pytest.raises(ValueError, match="X must have two rows at least; got 1"):
        rademacher_complexity(X[:1])
