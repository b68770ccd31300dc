"""Metrics of rankings against scikit-learn, and against loops over pairs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

from ensemble_gpu import metrics
from tests.places import DEVICE
from tests.ranking import pairs_of, ranking

_, Y, QID = ranking(120, 6)
RNG = np.random.default_rng(0)
SCORES = {"distinct": RNG.normal(size=120), "tied": RNG.integers(0, 4, 120).astype(np.float64)}


def by_query(function):
    return np.mean([function(q == QID) for q in np.unique(QID)])


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("k", [None, 3, 50])
def test_ndcg_and_dcg_equal_those_of_scikit_learn(scores, k):
    expected = by_query(lambda own: ndcg_score([Y[own]], [scores[own]], k=k))
    found = metrics.ndcg(Y, scores, qid=QID, k=k, gains="linear", empty=0.0)
    assert found == pytest.approx(expected, abs=1e-13)
    expected = by_query(lambda own: dcg_score([2.0 ** Y[own] - 1.0], [scores[own]], k=k))
    assert metrics.dcg(Y, scores, qid=QID, k=k) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_average_precision_of_a_query_is_that_of_scikit_learn(scores):
    expected = by_query(lambda own: average_precision_score(Y[own] >= 2, scores[own]))
    found = metrics.average_precision_by_query(Y, scores, qid=QID, relevant=2)
    assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("weights", [None, RNG.random(120)], ids=["even", "weighted"])
def test_pairwise_error_is_the_share_of_pairs_in_the_wrong_order(scores, weights):
    pairs = pairs_of(Y, QID)
    w = np.ones(120) if weights is None else weights
    w = w[pairs].prod(axis=1)
    gap = np.diff(scores[pairs], axis=1)[:, 0]
    expected = np.sum(w * ((gap > 0) + 0.5 * (gap == 0))) / np.sum(w)
    found = metrics.pairwise_error(Y, scores, qid=QID, sample_weight=weights)
    assert found == pytest.approx(expected, abs=1e-13)


def test_pairwise_error_of_one_query_and_two_levels_is_one_minus_the_area():
    for scores in SCORES.values():
        assert metrics.pairwise_error(Y > 1, scores) == 1.0 - roc_auc_score(Y > 1, scores)


def test_reciprocal_rank_takes_the_last_of_equal_scores():
    y, scores, qid = [0, 2, 0, 0, 0, 1], [3, 2, 2, 1, 9, 9], [0, 0, 0, 0, 1, 1]
    assert metrics.reciprocal_rank(y, scores, qid=qid) == (1 / 3 + 1 / 2) / 2
    assert metrics.reciprocal_rank(y, scores, qid=qid, k=2) == (0 + 1 / 2) / 2


def test_ties_are_averaged_or_put_in_the_worst_or_best_order():
    y, scores = [3, 0], [1, 1]
    worst, mean, best = (metrics.ndcg(y, scores, ties=t) for t in ("worst", "average", "best"))
    assert (worst, best) == (pytest.approx(1 / np.log2(3)), 1.0)
    assert mean == pytest.approx((worst + best) / 2)


@pytest.mark.parametrize(("empty", "expected"), [(1.0, 1.0), (0.0, 0.5), (None, 1.0)])
def test_a_query_without_relevant_rows_counts_as_empty_says(empty, expected):
    given = [0, 0, 1, 0], [1, 2, 4, 3]
    for metric in (metrics.ndcg, metrics.average_precision_by_query, metrics.reciprocal_rank):
        assert metric(*given, qid=[5, 5, 7, 7], empty=empty) == expected


def test_weights_are_of_queries_or_of_rows():
    given = {"y": [1, 0, 1, 0], "scores": [2, 1, 1, 2], "qid": ["b", "b", "a", "a"]}
    low = 1 / np.log2(3)
    assert metrics.ndcg(**given, sample_weight=[3, 1]) == pytest.approx((3 * low + 1) / 4)
    assert metrics.ndcg(**given, sample_weight=[1, 1, 3, 3]) == pytest.approx((3 * low + 1) / 4)
    assert metrics.pairwise_error(**given, sample_weight=[3, 1]) == 0.75
    assert metrics.pairwise_error(**given, average="queries") == 0.5


def test_metrics_do_not_depend_on_the_order_of_rows_or_on_the_library():
    scores = SCORES["tied"]
    at = np.random.default_rng(1).permutation(120)
    for name in ("ndcg", "dcg", "average_precision_by_query", "reciprocal_rank", "pairwise_error"):
        metric = getattr(metrics, name)
        found = metric(Y, scores, qid=QID)
        assert metric(Y[at], scores[at], qid=QID[at]) == found
        y, s, q = map(DEVICE.put, (Y, scores, QID))
        assert metric(y, s, qid=q) == found


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": [0, -1]}, "y must be relevance >= 0; the lowest value given is -1"),
        ({"y": [0, 0.5]}, "whole numbers from 0 to 1023 for gains 2.y - 1; got 0.5"),
        ({"y": [0, np.nan]}, "y contains NaN"),
        ({"qid": [1]}, "scores|X has 2 rows, qid has 1"),
        ({"qid": [1, np.nan]}, "qid contains NaN"),
        ({"k": 0}, "k must be an integer >= 1 or None; got 0"),
        ({"gains": "log"}, "gains must be one of 'exponential', 'linear'; got 'log'"),
        ({"ties": "first"}, "ties must be one of"),
        ({"sample_weight": [1, 2, 3]}, "sample_weight has 3"),
    ],
)
def test_bad_input_is_named(given, message):
    with pytest.raises(ValueError, match=message):
        metrics.ndcg(**{"y": [0, 1], "scores": [1, 2], **given})


def test_pairwise_error_without_pairs_raises():
    with pytest.raises(ValueError, match="there are none: y is the same in every query"):
        metrics.pairwise_error([1, 1, 2, 2], [1, 2, 3, 4], qid=[0, 0, 1, 1])
