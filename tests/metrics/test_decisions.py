"""Metrics of labels and of probabilities are scikit-learn's, on every library."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as peer
from sklearn.calibration import calibration_curve as their_calibration

from ensemble_gpu import metrics
from tests.metrics.places import WHERE
from tests.metrics.test_ranking import KINDS, RNG, SCORES, WEIGHTS, N, P, Y

TAKEN = {2: (Y, (SCORES[0] > 0.5).astype(int)), 3: (KINDS, P.argmax(axis=1))}
THEIRS = {
    "accuracy": peer.accuracy_score, "balanced_accuracy": peer.balanced_accuracy_score,
    "matthews": peer.matthews_corrcoef, "error": peer.zero_one_loss,
    "precision": peer.precision_score, "recall": peer.recall_score, "f_score": peer.f1_score,
}  # fmt: skip
AVERAGED = ("precision", "recall", "f_score")


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("place", WHERE)
def test_metrics_of_labels_are_those_of_scikit_learn(place, n_classes, weights):
    w, (y, taken) = WEIGHTS[weights], TAKEN[n_classes]
    given = (place.put(y), place.put(taken))
    for name, theirs in THEIRS.items():
        more = {"average": "binary" if n_classes == 2 else "macro"} if name in AVERAGED else {}
        found = getattr(metrics, name)(*given, sample_weight=place.put(w))
        assert type(found) is float
        assert found == pytest.approx(theirs(y, taken, sample_weight=w, **more), rel=1e-12)
    table = metrics.confusion_matrix(*given, sample_weight=place.put(w))
    place.check(table, "int64" if w is None else "float64")
    expected = peer.confusion_matrix(y, taken, sample_weight=w)
    np.testing.assert_allclose(place.host(table), expected, rtol=1e-12)


@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "each"])
def test_averages_over_labels_are_those_of_scikit_learn(average):
    y, taken = TAKEN[3]
    theirs = None if average == "each" else average
    for name in AVERAGED:
        found = getattr(metrics, name)(y, taken, average=average)
        np.testing.assert_allclose(found, THEIRS[name](y, taken, average=theirs), rtol=1e-12)
    found = metrics.f_score(y, taken, 2.5, average=average)
    expected = peer.fbeta_score(y, taken, beta=2.5, average=theirs)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_labels_of_any_kind_and_order():
    names = np.array(["low", "middle", "high"])
    y, taken = (names[part] for part in TAKEN[3])
    found = metrics.confusion_matrix(y, taken, labels=list(names))
    np.testing.assert_array_equal(found, peer.confusion_matrix(y, taken, labels=names))
    expected = peer.precision_score(y, taken, average=None, labels=["high"])[0]
    assert metrics.precision(y, taken, pos_label="high") == pytest.approx(expected, rel=1e-12)
    assert metrics.accuracy(["a", "b"], ["a", "z"]) == 0.5


def test_nothing_predicted_is_zero_and_not_an_error():
    y, none = [0, 1, 1, 0], [0, 0, 0, 0]
    assert metrics.precision(y, none) == metrics.f_score(y, none) == metrics.matthews(y, none) == 0


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("place", WHERE)
def test_metrics_of_probabilities_are_those_of_scikit_learn(place, weights):
    w = WEIGHTS[weights]
    p = 1.0 / (1.0 + np.exp(-SCORES[0]))
    for y, q, theirs in ((Y, p, p), (KINDS, P, P)):
        given = (place.put(y), place.put(q))
        for name, f in (("log_loss", peer.log_loss), ("brier", peer.brier_score_loss)):
            found = getattr(metrics, name)(*given, sample_weight=place.put(w))
            assert type(found) is float
            assert found == pytest.approx(f(y, theirs, sample_weight=w), rel=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("n_bins", [1, 2, 7])
@pytest.mark.parametrize("place", WHERE)
def test_calibration_curves_are_those_of_scikit_learn(place, n_bins, strategy):
    stack = 1.0 / (1.0 + np.exp(-SCORES))
    stack[0] = RNG.random(N)
    found = metrics.calibration_curve(
        place.put(Y), place.put(stack), n_bins=n_bins, strategy=strategy
    )
    for p, curve in zip(stack, found, strict=True):
        expected = their_calibration(Y, p, n_bins=n_bins, strategy=strategy)
        for values, theirs in zip(curve, expected, strict=False):
            place.check(values, "float64")
            np.testing.assert_allclose(place.host(values), theirs, rtol=1e-12)
        assert place.host(curve.weight).sum() == pytest.approx(N)


def test_weights_of_a_calibration_curve_are_repeated_rows():
    times, p = RNG.integers(3, size=N), 1.0 / (1.0 + np.exp(-SCORES[0]))
    found = metrics.calibration_curve(Y, p, sample_weight=times)
    repeated = metrics.calibration_curve(np.repeat(Y, times), np.repeat(p, times))
    for one, other in zip(found, repeated, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


BAD = {
    "predicted holds strings, y holds numbers": lambda: metrics.accuracy([0, 1], ["a", "b"]),
    "y has 300 rows, predicted has 2": lambda: metrics.accuracy(Y, [0, 1]),
    "average must be one of 'auto'": lambda: metrics.recall(Y, Y, average="mean"),
    "pos_label is for average='auto'": lambda: metrics.recall(Y, Y, average="micro", pos_label=1),
    "pos_label must be one of": lambda: metrics.recall(Y, Y, pos_label=5),
    "beta must be finite and > 0": lambda: metrics.f_score(Y, Y, 0.0),
    "labels must be a list": lambda: metrics.confusion_matrix(Y, Y, labels=[1]),
    "p must hold probabilities, 0 to 1; got -1": lambda: metrics.log_loss(Y, Y - 1.0),
    "p has a column for each of 3 labels": lambda: metrics.brier(Y, P),
    "p has a column for each of 2 labels, but y holds 1": lambda: metrics.log_loss([1, 1], [1, 1]),
    "p contains NaN": lambda: metrics.log_loss(Y, np.full(N, np.nan)),
    "n_bins must be an integer >= 1": lambda: metrics.calibration_curve(Y, Y, n_bins=0),
    "strategy must be one of": lambda: metrics.calibration_curve(Y, Y, strategy="equal"),
    "p must hold probabilities": lambda: metrics.calibration_curve(Y, Y + 1.0),
    "calibration_curve needs rows of two": lambda: metrics.calibration_curve([1, 1], [0.5, 1]),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_named(message):
    with pytest.raises(ValueError, match=message):
        BAD[message]()


def test_absent_labels_can_be_named():
    found = metrics.log_loss([1, 1], [[0.2, 0.8], [0.4, 0.6]], labels=[0, 1])
    assert found == pytest.approx(-np.log([0.8, 0.6]).mean(), rel=1e-14)
