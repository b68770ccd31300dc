"""Thresholds are the best of all, by brute force; the classifier's comes from rows out of fold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    DecisionTreeClassifier,
    cross_validate,
)
from ensemble_gpu.selection import ThresholdClassifier, choose_threshold
from tests.metrics.places import WHERE
from tests.metrics.test_ranking import SCORES, WEIGHTS
from tests.metrics.test_ranking import Y as LABELS
from tests.selection.test_cross_validation import ADA, X, Y

RULES = {
    "youden": ({"rule": "youden"}, lambda tp, fp, P, N: tp / P - fp / N),
    "f1": ({"rule": "f1"}, lambda tp, fp, P, N: 2 * tp / (tp + fp + P)),
    "costs": ({"cost_fp": 1.0, "cost_fn": 3.0}, lambda tp, fp, P, N: -(fp + 3.0 * (P - tp))),
    "limit": ({"max_fpr": 0.1}, lambda tp, fp, P, N: tp if fp <= 0.1 * N else -1.0),
}


def gain(of, s: np.ndarray, w: np.ndarray, threshold: float) -> float:
    plus, taken = LABELS == 1, s > threshold
    sums = [w[taken & plus].sum(), w[taken & ~plus].sum(), w[plus].sum(), w[~plus].sum()]
    return of(*sums)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("place", WHERE)
def test_no_threshold_is_better_and_the_highest_of_equals_is_taken(place, rule, weights):
    given, of = RULES[rule]
    w = np.ones(len(LABELS)) if WEIGHTS[weights] is None else WEIGHTS[weights]
    for s in SCORES:
        found = choose_threshold(
            place.put(LABELS), place.put(s), sample_weight=place.put(WEIGHTS[weights]), **given
        )
        assert type(found) is float
        every = [math.inf, *np.unique(s)[::-1], -math.inf]
        gains = [gain(of, s, w, t) for t in every]
        own = gain(of, s, w, found)
        assert own == pytest.approx(max(gains), rel=1e-12)
        higher = [t for t in every if (s > t).sum() < (s > found).sum()]
        assert all(gain(of, s, w, t) < own - 1e-13 * abs(own) for t in higher) or (w == 0).any()


def test_extreme_costs_and_limits_take_all_rows_or_none():
    y, s = [0, 1, 0, 1], [2.0, 1.0, 2.0, 1.0]
    assert choose_threshold(y, s, max_fpr=0.0) == math.inf
    assert choose_threshold(y, s, cost_fp=9.0, cost_fn=1.0) == math.inf
    assert choose_threshold(y, s, cost_fp=1.0, cost_fn=9.0) == -math.inf


def test_neighbouring_floats_are_told_apart():
    low = 1.0
    high = np.nextafter(low, 2.0)
    threshold = choose_threshold([0, 1], [low, high], "youden")
    assert low <= threshold < high


def test_a_given_threshold_moves_the_predictions():
    model = ThresholdClassifier(ADA, 0.3).fit(X, Y)
    p = ADA.__class__(**ADA.get_params()).fit(X, Y).predict_proba(X)[:, 1]
    np.testing.assert_array_equal(model.predict(X), (p > 0.3).astype(int))
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1], p)


@pytest.mark.slow
@pytest.mark.parametrize("place", WHERE)
def test_a_rule_is_applied_to_predictions_out_of_fold(place):
    given = {"cost_fp": 5.0, "cost_fn": 1.0}
    model = ThresholdClassifier(ADA, **given, cv=3).fit(place.put(X), place.put(Y))
    outside = cross_validate(ADA, X, Y, cv=3).out_of_fold
    expected = choose_threshold(Y, outside, **given)
    assert model.threshold_ == pytest.approx(expected, rel=1e-9)
    predicted = model.predict(place.put(X))
    place.check(predicted, "int64")
    p = place.host(model.predict_proba(place.put(X)))[:, 1]
    np.testing.assert_array_equal(place.host(predicted), (p > model.threshold_).astype(int))


def test_labels_of_any_kind():
    names = np.array(["no", "yes"])[Y]
    model = ThresholdClassifier(DecisionTreeClassifier(max_depth=3), rule="f1").fit(X, names)
    assert set(model.predict(X)) == {"no", "yes"}
    assert model.score(X, names) > 0.7


BAD = {
    "give one of rule": lambda: choose_threshold(Y, X[:, 0]),
    "rule must be one of": lambda: choose_threshold(Y, X[:, 0], "best"),
    "cost_fn must be finite and > 0; got None": lambda: choose_threshold(Y, X[:, 0], cost_fp=1),
    "max_fpr must be between 0 and 1": lambda: choose_threshold(Y, X[:, 0], max_fpr=2),
    "takes one vector of scores": lambda: choose_threshold(Y, X.T, "f1"),
    "needs rows of two classes": lambda: choose_threshold(np.ones(240), X[:, 0], "f1"),
    "needs no rule, cost or max_fpr": lambda: ThresholdClassifier(ADA, 0.5, rule="f1").fit(X, Y),
    "random_state must be None, an integer": lambda: ThresholdClassifier(ADA, random_state="a").fit(
        X, Y
    ),
    "threshold must be a number": lambda: ThresholdClassifier(ADA, "half").fit(X, Y),
    "is for two classes; y holds 3": lambda: ThresholdClassifier(
        AdaBoostClassifier(n_estimators=2), 0.5
    ).fit(X, np.arange(240) % 3),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()
