"""Features of kept sums that cannot win a node are told without divisions, and no others."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from ensemble_gpu.kernels.cpu.trees.kept_bounds import may_win
from ensemble_gpu.kernels.cpu.trees.pair_runs import UNCOUNTED, work_for
from ensemble_gpu.kernels.cpu.trees.pair_scores import Judge, PairNode
from ensemble_gpu.kernels.tree_protocol import ENTROPY, GINI, NEVER, VARIANCE

WIDTH = 40
WORK = work_for(np.zeros((1, 8), dtype=np.uint8), WIDTH, 1)


@njit
def ask(judge, count, cells, node, best, work):
    return may_win(judge, count, cells, node, best, work)


def judge_of(kind: int, l2: float, exact: bool = True) -> Judge:
    return Judge(kind, l2, exact, 0, False, 1, 0, np.zeros(0))


def score(kind: int, l2: float, sums: np.ndarray) -> np.ndarray:
    """The share of children with sums [2, cut] in the score."""
    x, y = sums.astype(np.float64)
    if kind == VARIANCE:
        return np.where(x > 0.0, y * y / np.where(x > 0.0, x + l2, 1.0), 0.0)
    return -2.0 * (x * y / np.where(x + y > 0.0, x + y, 1.0))


def best_score(kind: int, l2: float, cells: np.ndarray) -> float:
    """Of the cuts between codes that occur, missing values on either side."""
    whole, missing = cells.sum(axis=1, keepdims=True), cells[:, -1:]
    occurs = np.flatnonzero((cells[:, :-1] != 0).any(axis=0))
    if len(occurs) == 0:
        return NEVER
    left = cells[:, :-1].cumsum(axis=1)[:, occurs]
    cuts = np.concatenate([left[:, :-1], left[:, :-1] + missing], axis=1)
    if missing.any():  # missing values against all others
        cuts = np.concatenate([cuts, left[:, -1:]], axis=1)
    if cuts.shape[1] == 0:
        return NEVER
    return float((score(kind, l2, cuts) + score(kind, l2, whole - cuts)).max())


def cells_of(kind: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 2 ** int(rng.choice([2, 18, 34])), (2, WIDTH))
    if kind == VARIANCE:
        cells[1] = rng.integers(-(2**18), 2**18, WIDTH)
        cells[0, rng.random(WIDTH) < rng.choice([0.0, 0.1])] = 0  # gradients without curvature
    cells[:, rng.random(WIDTH) < rng.choice([0.0, 0.5, 0.95])] = 0
    cells[:, -1] *= rng.random() < 0.5
    return cells


@pytest.mark.parametrize("l2", [0.0, 1.0, 1e9, 1e160])
@pytest.mark.parametrize("kind", [VARIANCE, GINI])
def test_no_feature_that_wins_or_ties_is_passed_over(kind, l2):
    passed_over = 0
    for seed in range(2_000):
        cells = cells_of(kind, seed)
        first, second = cells.sum(axis=1).tolist()
        node, own = PairNode(first, second, 0, -np.inf, np.inf), best_score(kind, l2, cells)
        rng = np.random.default_rng(seed)
        for factor in (1.0, 1.0 - 2.0**-52, 1.0 + 2.0**-52, rng.uniform(0.8, 1.2)):
            best = own * factor
            if np.isfinite(best):
                answer = ask(judge_of(kind, l2), UNCOUNTED, cells, node, best, WORK)
                assert answer or own < best
                passed_over += not answer
    assert passed_over > 500 or l2 > 1e100  # nothing is told of products that may not be finite


def test_a_feature_that_tells_nothing_is_passed_over():
    cells = np.stack([np.full(WIDTH, 100), np.full(WIDTH, 7)])
    node = PairNode(100 * WIDTH, 7 * WIDTH, 0, -np.inf, np.inf)
    whole = 49.0 * WIDTH / 100.0
    assert not ask(judge_of(VARIANCE, 0.0), UNCOUNTED, cells, node, 1.01 * whole, WORK)
    # without a gain over the undivided node everything is scored
    assert ask(judge_of(VARIANCE, 0.0), UNCOUNTED, cells, node, whole, WORK)


@pytest.mark.parametrize(
    ("judge", "best"),
    [
        (judge_of(VARIANCE, 0.0), NEVER),
        (judge_of(VARIANCE, 0.0, exact=False), 1e30),
        (judge_of(ENTROPY, 0.0), 1e30),
    ],
)
def test_what_is_not_looked_at_is_scored(judge, best):
    cells = np.ones((2, WIDTH), dtype=np.int64)
    node = PairNode(WIDTH, WIDTH, 0, -np.inf, np.inf)
    assert ask(judge, UNCOUNTED, cells, node, best, WORK)
