"""The search for splits, given the sums per code: against all subsets, and its random choices."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.kernels.host.criteria import gains, scoring_of
from ensemble_gpu.kernels.host.search import choose
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    ERROR,
    GINI,
    LEAF,
    NEVER,
    POISSON,
    VARIANCE,
    Frontier,
    SplitRule,
    Splits,
    subset_words,
    unpacked,
)

WIDTH = 8  # codes 0 ... 6, and the one for missing values
CRITERIA = [GINI, ENTROPY, ERROR, VARIANCE, POISSON]


def rule_of(kind: int, p: int = 1, **params: Any) -> SplitRule:
    options = {
        "min_rows": 1, "signs": np.zeros(p, dtype=np.int64), "categorical": np.zeros(p, dtype=bool),
        "one_category": False, "random": False,
    } | params  # fmt: skip
    return SplitRule(kind, **options)


def frontier_of(sums: np.ndarray, bounds: tuple[float, float], key: int = 0) -> Frontier:
    """One node with these sums [statistic] that tries all features."""
    return Frontier(
        np.zeros(1, dtype=np.int64), sums[None, :], None, np.array([bounds]),
        np.array([key], dtype=np.uint64),
    )  # fmt: skip


def find(rule: SplitRule, sums: np.ndarray, key: int = 0) -> Splits:
    """The best split of one node from sums [feature, code, statistic]."""
    frontier = frontier_of(sums[0].sum(axis=0), (-np.inf, np.inf), key)
    return choose(rule, frontier, sums[None], np.zeros(1, dtype=np.int64))


def score(kind: int, left: np.ndarray, right: np.ndarray) -> float:
    sides = np.stack([left, right]).astype(np.int64)
    fallen = np.empty(2)
    rule = scoring_of(rule_of(kind), left.shape[0])
    gains(rule, sides, np.arange(2), np.zeros(2), -1.0, fallen)  # 0 less the score of a side
    return float(-fallen.sum())


@st.composite
def node_sums(draw: Any, kind: int) -> np.ndarray:
    """Sums [code, statistic] of a node with at least two codes, some of them empty."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    here = rng.random(WIDTH) < 0.7
    here[:2] = True
    h = rng.integers(1, 30, size=WIDTH) * here
    if kind in (VARIANCE, POISSON):
        g = rng.integers(1 if kind == POISSON else -20, 21, size=WIDTH) * h
        return np.stack([h, g], axis=1)
    ones = rng.binomial(h, rng.random(WIDTH))
    return np.stack([h - ones, ones], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CRITERIA)
@given(data=st.data())
def test_no_subset_of_categories_is_better_than_the_one_found(kind, data):
    sums = data.draw(node_sums(kind))
    splits = find(rule_of(kind, categorical=np.ones(1, dtype=bool)), sums[None])
    whole, missing = sums.sum(axis=0), sums[-1]
    known = [c for c in range(WIDTH - 1) if sums[c].any()]
    best = NEVER
    for size in range(1, len(known) + 1):
        for chosen in combinations(known, size):
            for left in (sums[list(chosen)].sum(axis=0), sums[list(chosen)].sum(axis=0) + missing):
                if left.any() and (whole - left).any():
                    best = max(best, score(kind, left, whole - left))
    assert splits.score[0] == pytest.approx(best, rel=1e-12, abs=1e-9)
    assert splits.bin[0] == -1
    table = unpacked(splits.subset)[0, :WIDTH]
    table[-1] = splits.missing_left[0] & splits.has_missing[0]
    assert splits.left[0].tolist() == sums[table].sum(axis=0).tolist()
    assert splits.has_missing[0] == missing.any()


@pytest.mark.parametrize("kind", CRITERIA)
@given(data=st.data())
def test_a_random_threshold_is_one_of_the_thresholds(kind, data):
    sums = data.draw(node_sums(kind))
    key = data.draw(st.integers(0, 2**63))
    splits = find(rule_of(kind, random=True), sums[None], key)
    occurs = np.flatnonzero(sums[:-1].any(axis=1))
    assert splits.bin[0] in occurs
    below = sums[: splits.bin[0] + 1].sum(axis=0) + sums[-1] * splits.missing_left[0]
    assert splits.left[0].tolist() == below.tolist()
    later = occurs[occurs > splits.bin[0]]
    assert splits.above[0] == (later[0] if len(later) else WIDTH - 1)
    assert splits.score[0] <= find(rule_of(kind), sums[None]).score[0] + 1e-9


def test_random_thresholds_are_drawn_evenly_over_the_codes():
    sums = np.ones((1, WIDTH, 2), dtype=np.int64)
    sums[:, -1] = 0
    rule = rule_of(GINI, random=True)
    counts = np.bincount([find(rule, sums, key).bin[0] for key in range(600)], minlength=6)
    assert len(counts) == 6
    assert np.sum((counts - 100) ** 2 / 100) < 20.6  # chi-squared with 5 degrees: 0.1 %


def test_no_split_where_a_node_has_one_code():
    sums = np.zeros((1, WIDTH, 2), dtype=np.int64)
    sums[0, 3] = [4, 2]
    splits = find(rule_of(GINI), sums)
    assert (splits.score[0], splits.feature[0]) == (NEVER, LEAF)


def test_one_code_and_missing_values_make_a_split():
    sums = np.zeros((1, WIDTH, 2), dtype=np.int64)
    sums[0, 3], sums[0, -1] = [4, 0], [0, 2]
    splits = find(rule_of(GINI), sums)
    assert (splits.bin[0], splits.above[0], splits.missing_left[0]) == (3, WIDTH - 1, False)
    assert splits.left[0].tolist() == [4, 0]


@pytest.mark.parametrize(("signs", "wanted"), [([1], 3), ([-1], 0)])
def test_a_constraint_forbids_the_better_split(signs, wanted):
    """Means 5, 0, 0, 0, 9: the best cut of all rises after code 3; falling, only that after 0."""
    sums = np.zeros((1, WIDTH, 2), dtype=np.int64)
    sums[0, :5] = [[1, 5], [1, 0], [1, 0], [1, 0], [1, 9]]
    assert find(rule_of(VARIANCE, signs=np.array(signs)), sums).bin[0] == wanted


def test_bounds_hold_for_constrained_features_only():
    sums = np.zeros((1, WIDTH, 2), dtype=np.int64)
    sums[0, :2] = [[1, 0], [1, 9]]
    for sign, wanted in ((1, LEAF), (0, 0)):
        rule = rule_of(VARIANCE, signs=np.array([sign]))
        frontier = frontier_of(np.array([2, 9]), (-np.inf, 5.0))
        splits = choose(rule, frontier, sums[None], np.zeros(1, dtype=np.int64))
        assert splits.feature[0] == wanted


def test_rows_are_counted_where_children_must_keep_some():
    """The last column counts rows: the heavy row alone would be the better child."""
    sums = np.zeros((1, WIDTH, 3), dtype=np.int64)
    sums[0, :4] = [[50, 0, 1], [0, 1, 1], [1, 1, 1], [0, 1, 1]]
    rule = rule_of(GINI, min_rows=2)
    *whole, n_rows = sums[0].sum(axis=0)
    frontier = frontier_of(np.array(whole), (-np.inf, np.inf))
    assert choose(rule, frontier, sums[None], np.array([n_rows])).bin[0] == 1
    assert find(rule_of(GINI), sums[:, :, :2]).bin[0] == 0


@pytest.mark.parametrize(("width", "words"), [(2, 1), (64, 1), (65, 2), (256, 4), (10**6, 1024)])
def test_words_hold_a_bit_for_every_code(width, words):
    assert subset_words(np.array([True, False]), width) == words
    assert subset_words(np.array([False, False]), width) == 0
