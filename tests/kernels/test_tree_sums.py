"""Sums, then choice: splits found from sums of parts are the splits of the whole."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.data.interactions import read_interactions
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.host.search import choose
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    ERROR,
    GINI,
    NEVER,
    POISSON,
    VARIANCE,
    Frontier,
    Sample,
    SplitRule,
    Splits,
    WholeTreeGrower,
)
from ensemble_gpu.trees.grow import Limits

ENGINES = {"cpu": CpuEngine(1), "threads": CpuEngine(2), "reference": ReferenceEngine(NUMPY)}
P = 6


@dataclass(frozen=True)
class Case:
    """What is added up, and which splits are allowed."""

    criterion: int
    n_stats: int = 2
    min_rows: int = 1
    min_weight: int = 0
    missing: bool = False
    categorical: bool = False
    sign: int = 0
    drawn: bool = False
    n: int = 300

    @property
    def rule(self) -> SplitRule:
        signs, categorical = np.zeros(P, dtype=np.int64), np.zeros(P, dtype=bool)
        signs[0], categorical[-1] = self.sign, self.categorical
        return SplitRule(
            self.criterion, self.min_rows, signs, categorical, False, False, self.min_weight
        )

    def matrix(self, rng: np.random.Generator) -> np.ndarray:
        X = rng.integers(0, 12, size=(self.n, P)).astype(np.float64)
        if self.missing:
            X[rng.random(X.shape) < 0.1] = np.nan
        return X

    def sample(self, X: np.ndarray, rng: np.random.Generator) -> Sample:
        weights = rng.integers(1, 4, size=self.n)
        score = np.nan_to_num(X[:, 0] + 2 * X[:, -1] - X[:, 1])
        if self.criterion in (GINI, ENTROPY, ERROR):
            noisy = score + rng.normal(0, 6, self.n)
            label = np.clip(np.digitize(noisy, np.linspace(0, 20, self.n_stats - 1)), 0, None)
            return Sample(None, label, weights[:, None], self.n_stats)
        outputs = self.n_stats // 2
        target = (np.abs(score) + rng.integers(0, 9, self.n)).astype(np.int64)
        g = [weights * (target + k) for k in range(outputs)]
        return Sample(None, None, np.stack([weights] * outputs + g, axis=1), self.n_stats)


CASES = {
    "two classes": Case(GINI),
    "two classes, large nodes": Case(GINI, n=7000),
    "entropy": Case(ENTROPY, missing=True),
    "four classes": Case(GINI, 4, missing=True),
    "four classes, large nodes": Case(GINI, 4, n=7000),
    "three classes by error": Case(ERROR, 3),
    "moments": Case(VARIANCE),
    "moments, large nodes": Case(VARIANCE, missing=True, n=7000),
    "two outputs": Case(VARIANCE, 4, missing=True),
    "poisson": Case(POISSON),
    "rows of leaves": Case(GINI, min_rows=7, missing=True),
    "rows of leaves, moments": Case(VARIANCE, min_rows=7, n=7000),
    "weight of leaves": Case(GINI, 3, min_weight=20),
    "categories": Case(GINI, categorical=True, missing=True),
    "categories of four classes": Case(GINI, 4, categorical=True),
    "categories of moments": Case(VARIANCE, categorical=True, min_rows=3),
    "monotone": Case(VARIANCE, sign=1),
    "drawn features": Case(GINI, drawn=True, missing=True),
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A grower of some rows, and how many of them are in each node of the frontier."""

    grower: Any
    n_rows: np.ndarray


def parts_of(case: Case, engine: Any, packed: bool = False) -> tuple[Part, list[Part], Sample]:
    """The whole sample and its halves."""
    rng = np.random.default_rng(0)
    X = case.matrix(rng)
    sample = case.sample(X, rng)
    rows = Rows(X, np.zeros(case.n), None)
    codes = bin_rows(engine, rows, None, 255, n_ranges=None).matrix.codes
    if packed:
        h, g = sample.values.T
        sample = replace(sample, values=engine.moments(((g << 32) + h)[None, :]))

    def part(rows: np.ndarray | None, n: int) -> Part:
        grower = engine.grower(codes, replace(sample, rows=rows), case.rule)
        return Part(grower, np.array([n]))

    cut = rng.random(case.n) < 0.4
    halves = [part(np.flatnonzero(c), int(c.sum())) for c in (cut, ~cut)]
    return part(None, case.n), halves, sample


def frontier_of(case: Case, nodes: np.ndarray, sums: np.ndarray) -> Frontier:
    n = len(nodes)
    features = np.tile([0, 2, P - 1], (n, 1)) if case.drawn else None
    bounds = np.tile([-np.inf, np.inf], (n, 1))
    return Frontier(nodes, sums, features, bounds, np.zeros(n, dtype=np.uint64))


def assert_equal(found: Splits, wanted: Splits) -> None:
    for field in fields(Splits):
        name = field.name
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), err_msg=name)


def check(case: Case, engine: Any, packed: bool = False) -> None:
    """Three levels, the splits of each from the added sums of the halves."""
    whole, halves, _ = parts_of(case, engine, packed)
    nodes = np.zeros(1, dtype=np.int64)
    sums = np.sum([half.grower.total() for half in halves], axis=0)[None, :]
    np.testing.assert_array_equal(sums[0], whole.grower.total())
    for _ in range(3):
        frontier = frontier_of(case, nodes, sums)
        added = np.sum([half.grower.sums(frontier) for half in halves], axis=0)
        np.testing.assert_array_equal(added, whole.grower.sums(frontier))
        n_rows = np.sum([half.n_rows for half in halves], axis=0)
        found = choose(case.rule, frontier, added, n_rows)
        assert_equal(found, whole.grower.split(frontier))
        good = found.score > NEVER
        assert good.any()
        first = int(nodes[-1]) + 1
        taken, n_good = found[good], int(good.sum())
        whole, *halves = (divided(part, nodes, taken, good) for part in (whole, *halves))
        left = taken.left
        sums = np.stack([left, sums[good] - left], axis=1).reshape(2 * n_good, -1)
        nodes = np.arange(first, first + 2 * n_good)


def divided(part: Part, nodes: np.ndarray, splits: Splits, good: np.ndarray) -> Part:
    left = part.grower.partition(nodes[good], splits)
    return replace(part, n_rows=np.stack([left, part.n_rows[good] - left], axis=1).reshape(-1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_sums_of_two_halves_give_the_splits_of_the_whole(case, engine):
    check(CASES[case], ENGINES[engine])


@pytest.mark.parametrize("n", [300, 7000])
def test_packed_moments_have_the_sums_of_moments(n):
    case = Case(VARIANCE, n=n)
    check(case, ENGINES["cpu"], packed=True)
    (packed, _, _), (plain, _, _) = (parts_of(case, ENGINES["cpu"], p) for p in (True, False))
    assert packed.grower.packed
    assert not plain.grower.packed
    root = frontier_of(case, np.zeros(1, dtype=np.int64), plain.grower.total()[None, :])
    np.testing.assert_array_equal(packed.grower.sums(root), plain.grower.sums(root))


def test_engines_have_the_same_sums():
    case = replace(CASES["rows of leaves"], n=500)
    root = np.zeros(1, dtype=np.int64)
    found = []
    for engine in ENGINES.values():
        whole, _, _ = parts_of(case, engine)
        found.append(whole.grower.sums(frontier_of(case, root, whole.grower.total()[None, :])))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


@pytest.mark.parametrize("case", [name for name in CASES if "large" not in name])
def test_trees_grow_at_once_but_for_the_sums_that_statistics_in_general_do_not_keep(case):
    pairs = CASES[case].n_stats == 2 and CASES[case].criterion != POISSON
    for engine, drawing in (("cpu", True), ("threads", False)):
        grower = parts_of(CASES[case], ENGINES[engine])[0].grower
        p = len(grower.rule.signs)
        assert isinstance(grower, WholeTreeGrower)
        assert grower.grows_whole(Limits(None, None, 2, 0.0, p)) is pairs
        assert grower.grows_whole(Limits(None, None, 2, 0.0, p - 1)) is (pairs or drawing)
        pairwise = read_interactions("pairwise", p, None)
        assert grower.grows_whole(Limits(None, None, 2, 0.0, p, pairwise)) is pairs
    assert not isinstance(parts_of(CASES[case], ENGINES["reference"])[0].grower, WholeTreeGrower)
