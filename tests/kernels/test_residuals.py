"""Residuals by leaf: order statistics and sums along a ruler, on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels.cpu import residuals
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from ensemble_gpu.kernels.residuals import Ruler, Slots

REFERENCE = ReferenceEngine(locate(np.zeros(1)))
KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few values": lambda rng, n: rng.integers(-3, 4, n).astype(np.float64),
    "all equal": lambda rng, n: np.full(n, -2.5),
    "zeros of both signs": lambda rng, n: np.where(rng.random(n) < 0.5, -0.0, 0.0),
    "any scale": lambda rng, n: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n),
    "tiny beside huge": lambda rng, n: np.where(rng.random(n) < 0.1, 1e300, rng.normal(size=n)),
    "nearly equal": lambda rng, n: 1.0 + rng.integers(0, 50, n) * 2.0**-52,
}


def problem(seed: int, kind: str, n: int, n_slots: int, weighted: bool) -> tuple[Any, ...]:
    """Slots (some codes in none), r, weights, and ranks from 1 to a slot's whole weight."""
    rng = np.random.default_rng(seed)
    n_codes = n_slots + rng.integers(0, 20)
    table = rng.permutation(
        np.concatenate([np.arange(n_slots), rng.integers(-1, n_slots, n_codes)])
    )
    index = rng.integers(0, len(table), n)
    index[:n_slots] = [np.flatnonzero(table == s)[0] for s in range(n_slots)]  # none is empty
    weights = rng.integers(0, 5, n) if weighted else None
    if weights is not None:
        weights[:n_slots] += 1
    slot, w = table[index], np.ones(n, dtype=np.int64) if weights is None else weights
    total = np.array([w[slot == s].sum() for s in range(n_slots)])
    ranks = rng.integers(1, total + 1)
    return Slots(index.astype(np.uint8), table), KINDS[kind](rng, n), weights, ranks, slot, w


def brute_force(r: np.ndarray, w: np.ndarray, rank: int) -> float:
    """The lowest value such that all up to it weigh the rank: by the definition."""
    return min(v for v in r[w > 0] if w[r <= v].sum() >= rank)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000), kind=st.sampled_from(sorted(KINDS)), n=st.integers(30, 400),
    n_slots=st.integers(1, 30), weighted=st.booleans(),
)  # fmt: skip
def test_the_order_statistic_is_that_of_the_definition_on_every_engine(
    seed, kind, n, n_slots, weighted
):
    slots, r, weights, ranks, slot, w = problem(seed, kind, n, n_slots, weighted)
    expected = [brute_force(r[slot == s], w[slot == s], ranks[s]) for s in range(n_slots)]
    for engine in (CpuEngine(1), REFERENCE):
        np.testing.assert_array_equal(engine.ranked(slots, r, weights, ranks), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_and_any_number_of_threads_give_the_same_order_statistic(
    kind, weighted, monkeypatch
):
    monkeypatch.setattr(residuals, "ROWS_PER_THREAD", 100)
    slots, r, weights, ranks, _, _ = problem(3, kind, 20_000, 3, weighted)
    expected = REFERENCE.ranked(slots, r, weights, ranks)
    for n_jobs in (1, 2, 3):
        found = CpuEngine(n_jobs).ranked(slots, r, weights, ranks)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("tau", [0.01, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_of_a_share_of_the_weight_give_numpys_weighted_quantile(tau, weighted):
    slots, r, weights, _, slot, w = problem(5, "normal", 999, 4, weighted)
    total = np.array([w[slot == s].sum() for s in range(4)])
    ranks = np.maximum(np.ceil(tau * total), 1).astype(np.int64)
    expected = [
        np.quantile(r[slot == s], tau, weights=w[slot == s], method="inverted_cdf")
        for s in range(4)
    ]
    for engine in (CpuEngine(1), REFERENCE):
        np.testing.assert_array_equal(engine.ranked(slots, r, weights, ranks), expected)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_along_a_ruler_are_those_of_every_engine_and_number_of_threads(
    kind, weighted, monkeypatch
):
    monkeypatch.setattr(residuals, "ROWS_PER_THREAD", 100)
    slots, r, weights, _, slot, w = problem(7, kind, 3000, 5, weighted)
    ruler = Ruler(np.linspace(-3.0, 1.0, 5), 40.0, 3, 20)
    expected = np.zeros((5, 20, 2), dtype=np.int64)
    for i in np.flatnonzero(slot >= 0):
        k = int(np.clip(np.rint((r[i] - ruler.base[slot[i]]) * 40.0), 0, 20 * 8 - 1))
        expected[slot[i], k // 8] += w[i], w[i] * k
    for engine in (CpuEngine(1), CpuEngine(2), CpuEngine(3), REFERENCE):
        np.testing.assert_array_equal(engine.ruled_sums(slots, r, weights, ruler), expected)
