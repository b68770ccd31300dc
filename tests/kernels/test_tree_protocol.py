"""Growers of the engines against sums that are taken row by row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    ERROR,
    GINI,
    LEAF,
    NEVER,
    POISSON,
    VARIANCE,
    CodeTree,
    Frontier,
    Sample,
    SplitRule,
)

ENGINES = {"cpu": CpuEngine(1), "reference": ReferenceEngine(NUMPY)}


@dataclass(frozen=True)
class Problem:
    """Rows with few distinct values (-1: missing), and what is added up over them."""

    values: np.ndarray
    label: np.ndarray | None
    stats: np.ndarray
    kind: int
    min_rows: int

    @property
    def n_stats(self) -> int:
        return self.stats.shape[1] if self.label is None else 3 if self.label.max() > 1 else 2

    @property
    def rule(self) -> SplitRule:
        p = self.values.shape[1]
        none = np.zeros(p, dtype=np.int64)
        return SplitRule(self.kind, self.min_rows, none, np.zeros(p, dtype=bool), False, False)

    def codes(self, engine: Any) -> Any:
        X = np.where(self.values < 0, np.nan, self.values.astype(np.float64))
        X = np.concatenate([X, np.tile(np.arange(6.0)[:, None], X.shape[1])])  # every code occurs
        binned = bin_rows(engine, Rows(X, np.zeros(len(X)), None), None, 255, n_ranges=None)
        return binned.matrix.codes

    def sample(self) -> Sample:
        n = len(self.values)

        def longer(a: np.ndarray | None) -> np.ndarray | None:
            return None if a is None else np.concatenate([a, np.zeros((6, *a.shape[1:]), a.dtype)])

        target = None if self.label is not None else longer(self.stats[:, -1])
        label, stats = longer(self.label), longer(self.stats)
        return Sample(np.arange(n), label, stats, self.n_stats, target)

    def sums(self, rows: np.ndarray) -> list[int]:
        """Statistics of some rows."""
        if self.label is None:
            return self.stats[rows].sum(axis=0).tolist()
        weights = self.stats[rows, 0]
        return [int(weights[self.label[rows] == k].sum()) for k in range(self.n_stats)]

    def score(self, sums: list[int]) -> float:
        """The formulas of kernels/host/search.py."""
        if self.kind == VARIANCE:
            half = len(sums) // 2
            pairs = zip(sums[:half], sums[half:], strict=True)
            return sum(float(g) * float(g) / float(h) for h, g in pairs if h > 0)
        if self.kind == POISSON:
            h, g = sums
            return g * log(g / h) if g > 0 else NEVER
        weight = sum(sums)
        if self.kind == ERROR:
            return float(max(sums))
        if self.kind == ENTROPY:
            return sum(s * log(float(s)) for s in sums if s) - weight * log(float(weight))
        if len(sums) == 2:
            return -2.0 * (float(sums[0]) * float(sums[1]) / float(weight))
        return sum(float(s) * float(s) / float(weight) for s in sums)

    def best(self, rows: np.ndarray, features: Any) -> tuple:
        """(score, feature, bin, above, missing left, has missing) in the order of preference."""
        found: tuple = (NEVER, LEAF, -1, 0, False, False)
        for f in features:
            x = self.values[rows, f]
            present = np.unique(x[x >= 0])
            missing = bool((x < 0).any())
            ends = present if missing else present[:-1]
            for i, cut in enumerate(ends):
                above = int(present[i + 1]) if i + 1 < len(present) else None
                for to_left in [True, False] if missing and above is not None else [False]:
                    left = ((x >= 0) & (x <= cut)) | ((x < 0) & to_left)
                    if min(left.sum(), (~left).sum()) < self.min_rows:
                        continue
                    sides = self.score(self.sums(rows[left])), self.score(self.sums(rows[~left]))
                    if sides[0] + sides[1] > found[0]:
                        found = (sides[0] + sides[1], f, int(cut), above, to_left, missing)
        return found

    def goes_left(self, rows: np.ndarray, found: tuple) -> np.ndarray:
        x = self.values[rows, found[1]]
        return np.where(x < 0, found[4], x <= found[2])


@st.composite
def problems(draw: Any) -> Problem:
    seed = draw(st.integers(0, 2**32 - 1))
    kind = draw(st.sampled_from([GINI, ENTROPY, ERROR, VARIANCE, POISSON]))
    rng = np.random.default_rng(seed)
    n, p = draw(st.integers(4, 120)), draw(st.integers(1, 10))
    values = rng.integers(-draw(st.integers(0, 1)), 6, size=(n, p))
    weights = rng.integers(1, 5, size=n)
    min_rows = draw(st.sampled_from([1, 1, 3]))
    if kind in (GINI, ENTROPY, ERROR):
        label = rng.integers(draw(st.integers(2, 3)), size=n)
        return Problem(values, label, weights[:, None], kind, min_rows)
    outputs = draw(st.integers(1, 2)) if kind == VARIANCE else 1
    low = 0 if kind == POISSON else -6
    target = rng.integers(low, 7, size=(n, outputs))
    h = np.tile(weights[:, None], outputs)
    return Problem(values, None, np.concatenate([h, h * target], axis=1), kind, min_rows)


def frontier(problem: Problem, nodes: dict[int, np.ndarray], features: Any) -> Frontier:
    n = len(nodes)
    return Frontier(
        np.array(list(nodes)), np.array([problem.sums(rows) for rows in nodes.values()]), features,
        np.tile([-np.inf, np.inf], (n, 1)), np.zeros(n, dtype=np.uint64),
    )  # fmt: skip


def assert_splits(problem: Problem, splits: Any, nodes: dict[int, np.ndarray], features: Any):
    """Compare with the splits of all nodes; returns those."""
    p = problem.values.shape[1]
    wanted = []
    for i, rows in enumerate(nodes.values()):
        best = problem.best(rows, range(p) if features is None else features[i])
        wanted.append(best)
        score, feature = best[:2]
        assert splits.feature[i] == feature
        if feature == LEAF:
            assert splits.score[i] == NEVER
            continue
        assert splits.score[i] == pytest.approx(score, rel=1e-12, abs=1e-9)
        assert splits.bin[i] == best[2]
        if best[3] is not None:
            assert splits.above[i] == best[3]
        assert (splits.missing_left[i], splits.has_missing[i]) == best[4:]
        left = problem.goes_left(rows, best)
        assert splits.left[i].tolist() == problem.sums(rows[left])
    return wanted


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@given(problem=problems(), drawn=st.booleans())
def test_splits_and_rows_of_two_levels_are_those_of_all_cuts(engine, problem, drawn):
    if problem.kind in (ENTROPY, POISSON):  # last digits decide ties there: no weights, few ties
        problem = replace(problem, values=problem.values[:, :1])
    own = ENGINES[engine]
    grower = own.grower(problem.codes(own), problem.sample(), problem.rule)
    n, p = problem.values.shape
    nodes = {0: np.arange(n)}
    rng = np.random.default_rng(n)
    first = 1
    for _ in range(2):
        features = None
        if drawn:
            k = max(1, p // 2)
            features = np.array([np.sort(rng.permutation(p)[:k]) for _ in nodes])
        splits = grower.split(frontier(problem, nodes, features))
        wanted = assert_splits(problem, splits, nodes, features)
        if problem.label is None:
            pure = [len(np.unique(problem.stats[rows, -1])) == 1 for rows in nodes.values()]
            assert grower.pure(np.array(list(nodes))).tolist() == pure
        chosen = np.array([best[1] != LEAF for best in wanted])
        if not chosen.any():
            return
        parents = np.array(list(nodes))[chosen]
        n_left = grower.partition(parents, splits[chosen])
        children: dict[int, np.ndarray] = {}
        for i, (parent, best) in enumerate(
            zip(parents, [b for b in wanted if b[1] != LEAF], strict=True)
        ):
            rows = nodes[parent]
            left = problem.goes_left(rows, best)
            assert n_left[i] == left.sum()
            children[first + 2 * i], children[first + 2 * i + 1] = rows[left], rows[~left]
        first += 2 * len(parents)
        nodes = children


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_that_adds_nothing_makes_no_threshold(engine):
    """Gradients may round to zero: such rows are in no sum, whatever the size of their node."""
    for n in (12, 200):
        values = np.arange(n)[:, None] % 6
        stats = np.stack([np.ones(n, dtype=np.int64), values[:, 0] // 3], axis=1)
        stats[values[:, 0] == 2] = 0
        problem = Problem(values, None, stats, VARIANCE, 1)
        own = ENGINES[engine]
        grower = own.grower(problem.codes(own), problem.sample(), problem.rule)
        splits = grower.split(frontier(problem, {0: np.arange(n)}, None))
        assert (splits.bin[0], splits.above[0]) == (1, 3)


@given(data=st.data())
def test_leaves_and_sums_by_leaf_are_those_of_walking_row_by_row(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    values = rng.integers(-1, 6, size=(rng.integers(1, 60), 3))
    problem = Problem(values, None, np.ones((len(values), 2), dtype=np.int64), VARIANCE, 1)
    # node 0 tests feature 0 by a threshold, node 1 feature 2 by a set; 2, 3, 4 are leaves
    tree = CodeTree(
        np.array([0, 2, LEAF, LEAF, LEAF]), np.array([int(rng.integers(0, 6)), -1, -1, -1, -1]),
        rng.random(5) < 0.5, np.array([1, 3, -1, -1, -1]), np.array([2, 4, -1, -1, -1]),
        np.array([[0], [int(rng.integers(0, 64))], [0], [0], [0]], dtype=np.uint64),
    )  # fmt: skip

    def walk(row: np.ndarray) -> int:
        x = row[0]
        if not (tree.missing_left[0] if x < 0 else x <= tree.bin[0]):
            return 2
        x = row[2]
        bit = bool((int(tree.subset[1, 0]) >> int(x)) & 1) if x >= 0 else tree.missing_left[1]
        return 3 if bit else 4

    wanted = [walk(row) for row in values]
    stats = rng.integers(-9, 9, size=(len(values), 2))
    for own in ENGINES.values():
        found = np.asarray(own.leaves(problem.codes(own), tree))[: len(values)]
        assert found.tolist() == wanted
        sums = own.sums_by(found, stats, 5)
        for leaf in range(5):
            assert sums[leaf].tolist() == stats[found == leaf].sum(axis=0).tolist()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_tree_of_one_leaf_holds_every_row(engine):
    problem = Problem(np.zeros((5, 1), dtype=int), None, np.ones((5, 2), dtype=int), VARIANCE, 1)
    one = np.array([LEAF])
    tree = CodeTree(one, one, np.array([False]), one, one, np.zeros((1, 0), dtype=np.uint64))
    own = ENGINES[engine]
    assert np.asarray(own.leaves(problem.codes(own), tree)).tolist() == [0] * 11
