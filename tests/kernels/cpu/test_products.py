"""Thresholds that cannot tie are told without roots and divisions, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from ensemble_gpu.kernels.cpu.products import SMALLEST, may_tie
from ensemble_gpu.kernels.protocol import CONFIDENCE, GENTLE, MAJORITY, TIE

KINDS = {"confidence": CONFIDENCE, "gentle": GENTLE}


@njit
def ask(kind, left, total, scale, upper):
    return may_tie(kind, left.shape[1], left, total, scale, upper)


def costs(kind: int, left: np.ndarray, total: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """f(left leaf) + f(right leaf) of every threshold, in the order of kernels/cpu/score.py."""
    out = np.zeros(left.shape[1])
    for sums in (left, total[:, None] - left):
        plus, minus = scale[:, None] * sums.astype(np.float64)
        if kind == CONFIDENCE:
            out += np.sqrt(plus * minus)
        else:
            out += plus * minus / np.where(plus + minus > 0.0, plus + minus, 1.0)
    return out


def sums_of(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums left of thresholds, of all rows, and scales; groups may be empty or far lighter."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    cells = (2.0 ** rng.uniform(0, rng.choice([2, 30, 50]), (2, n + 1))).astype(np.int64)
    cells[rng.random(cells.shape) < rng.choice([0.0, 0.3, 0.95])] = 0
    running = cells.cumsum(axis=1)
    return running[:, :-1], running[:, -1], 2.0 ** -rng.choice([0, 0, 3, 60, 400], 2).astype(float)


@pytest.mark.parametrize("name", KINDS)
def test_no_threshold_that_ties_is_passed_over(name):
    passed_over = 0
    for seed in range(3_000):
        left, total, scale = sums_of(seed)
        cost = costs(KINDS[name], left, total, scale)
        rng = np.random.default_rng(seed)
        # at the lowest cost, a few roundings beside it, and anywhere
        for factor in (1.0, 1.0 - 2.0**-52, 1.0 / TIE, 1.0 / TIE - 2.0**-51, rng.uniform(0.5, 1.5)):
            upper = float(cost.min()) * factor
            answer = ask(KINDS[name], left, total, scale, upper)
            assert answer or cost.min() > upper * TIE
            passed_over += not answer
    assert passed_over > 500


@pytest.mark.parametrize("name", KINDS)
def test_a_feature_that_learns_nothing_is_passed_over(name):
    left, total = np.arange(1, 100)[None, :] * np.array([[3], [5]]), np.array([300, 500])
    whole = costs(KINDS[name], left, total, np.ones(2)).min()
    assert not ask(KINDS[name], left, total, np.ones(2), 0.99 * whole)
    assert ask(KINDS[name], left, total, np.ones(2), 1.01 * whole)


@pytest.mark.parametrize(
    ("kind", "groups", "upper"),
    [
        (CONFIDENCE, 4, 1e-9),
        (MAJORITY, 2, 1e-9),
        (CONFIDENCE, 2, np.inf),
        (GENTLE, 2, 0.5 * SMALLEST),
    ],
)
def test_what_is_not_looked_at_is_scored(kind, groups, upper):
    left, total = np.full((groups, 3), 5), np.full(groups, 9)
    assert ask(kind, left, total, np.ones(groups), upper)
