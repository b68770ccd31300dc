"""How often batches are walked, and what a pass makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    Batches,
    BoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from ensemble_gpu.batches.passes import Distinct, Gather, values_of
from ensemble_gpu.kernels.edges import edges_of

FEW = {"n_estimators": 2}
N = 10_000
X = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
# After the first batch, from which columns are known, and the walk for labels.
WALKS = {
    "edges, codes": (AdaBoostClassifier(calibrate=False, **FEW), 2),
    "and codes beside a fold, for the scale of probabilities": (AdaBoostClassifier(**FEW), 3),
    "keys to hold out rows": (BoostingClassifier(early_stopping=True, **FEW), 3),
    "keys along with edges, to draw rows": (
        BoostingClassifier(early_stopping=False, subsample=0.5, **FEW), 2,
    ),
    "to draw bags": (BoostingClassifier(early_stopping=False, subsample=1, n_bags=2, **FEW), 2),
    "and bags of a forest": (RandomForestClassifier(max_depth=2, **FEW), 2),
    "of numbers they are drawn by sums": (RandomForestRegressor(max_depth=2, **FEW), 3),
}  # fmt: skip


@pytest.mark.parametrize("why", WALKS)
def test_walks(why):
    estimator, expected = WALKS[why]
    calls = []

    def batches():
        calls.append(1)
        for start in range(0, N, 4_000):
            yield X[start : start + 4_000], Y[start : start + 4_000]

    estimator.fit(Batches(batches))
    assert len(calls) == 2 + expected


@pytest.mark.parametrize("variant", ["real", "logit"])
def test_rows_without_weight_cost_no_walk(variant):
    calls = []
    w = np.where(np.arange(N) % 50 == 0, 0.0, 1.0 + np.arange(N) % 3)
    more = np.concatenate([X, X + 1]), np.tile(Y, 2), np.tile(w, 2)

    def batches():
        calls.append(1)
        yield tuple(part[:9_999] for part in more)
        yield tuple(part[9_999:] for part in more)

    AdaBoostClassifier(variant=variant, **FEW).fit(Batches(batches))
    assert len(calls) == 2 + 3


def test_rows_are_gathered_in_any_order_and_repeatedly():
    at = np.array([7, 3, 3, 0, 9])
    work = Gather(at, 3, np.dtype(np.float32))
    for first, last in ((0, 4), (4, 4), (4, 10)):
        work(first, X[first:last])
    assert np.array_equal(work.rows, X[at])


def test_distinct_values_are_merged():
    values = np.array([[1.0, np.nan], [-0.0, np.nan], [0.0, 3.0], [1.0, 2.0]])
    work = Distinct(2, np.array([True, True, True, False]))
    work(0, values[:2])
    work(2, values[2:])
    assert [own.tolist() for own in work.values] == [[0.0, 1.0], [3.0]]


def test_a_value_of_each_code_has_that_code():
    rng = np.random.default_rng(1)
    below = np.sort(rng.normal(size=(4, 9)), axis=1)
    gaps = [np.stack([own[:-1], own[1:]]) for own in below] + [np.zeros((2, 0))]
    values = values_of(gaps, 10)
    for own, edges in zip(values, edges_of(gaps), strict=True):
        n = len(edges) + 1
        assert np.searchsorted(edges, own[:n]).tolist() == list(range(n))
        assert np.isnan(own[-1])
