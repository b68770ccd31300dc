"""Trees on the CUDA engine: the kernels level by level, whole fits, predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import use_engine
from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.kernels.cuda.launch import LaunchPlan
from ensemble_gpu.kernels.cuda.trees import grower as cuda_grower
from ensemble_gpu.kernels.cuda.trees import kept, sums
from ensemble_gpu.kernels.protocol import Codes
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
    PackedForest,
    Sample,
    SplitRule,
    Splits,
    subset_words,
)
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.cuda.simulator.problems import engines, problem

# Nodes of more than eight rows are large: two levels of them in forty rows.
PLAN = LaunchPlan(
    threads=4, blocks=2, part_rows=8, feature_threads=4, feature_blocks=2, busy_blocks=2,
    node_threads=4, node_blocks=2,
)  # fmt: skip
LEVELS = 3


@dataclass(frozen=True)
class Case:
    """A rule and a sample; `tried` features are drawn for every node (None: all of them)."""

    name: str
    kind: int = GINI
    n_stats: int = 2
    n: int = 40
    p: int = 3
    bins: int = 6
    missing: float = 0.2
    min_rows: int = 1
    min_weight: int = 0
    tried: int | None = None
    random: bool = False
    signs: tuple[int, ...] = ()
    categorical: tuple[int, ...] = ()
    bits: int = 20
    bagged: bool = False

    def __str__(self) -> str:
        return self.name

    def rule(self) -> SplitRule:
        signs, categorical = np.zeros(self.p, dtype=np.int64), np.zeros(self.p, dtype=bool)
        signs[: len(self.signs)] = self.signs
        categorical[list(self.categorical)] = True
        return SplitRule(
            self.kind, self.min_rows, signs, categorical, False, self.random, self.min_weight
        )  # fmt: skip

    def sample(self) -> Sample:
        """Weights >= 1 and targets of either sign, of up to `bits` bits; g cancels where it can."""
        rng = np.random.default_rng(5)
        weight = rng.integers(1, 1 << self.bits, size=(self.n, 1))
        rows = np.flatnonzero(rng.random(self.n) < 0.7) if self.bagged else None
        if self.kind < VARIANCE:
            return Sample(rows, rng.integers(self.n_stats, size=self.n), weight, self.n_stats)
        half = self.n_stats // 2
        h = np.repeat(weight, half, axis=1)
        g = rng.integers(-(1 << self.bits), 1 << self.bits, size=(self.n, half))
        g = np.abs(g) * (rng.random(g.shape) < 0.8) if self.kind == POISSON else g
        target = rng.integers(2, size=self.n)
        return Sample(rows, None, np.concatenate([h, g], axis=1), self.n_stats, target)


CASES = [
    Case("gini"),
    Case("gini, three classes, counted, bagged", n_stats=3, min_rows=3, bagged=True),
    Case("gini, features drawn, weights of 40 bits", tried=2, bits=40),
    Case("gini, three classes, weights of 40 bits", n_stats=3, bits=40),
    Case("gini, wide codes, beyond few cells", n_stats=5, n=270, p=1, bins=265, missing=0.02),
    Case("gini, wide codes, beyond all cells", n_stats=17, n=270, p=1, bins=265, tried=1),
    Case("entropy, three classes", ENTROPY, 3),
    Case("entropy, large weights", ENTROPY, bits=40, missing=0.0),
    Case("error", ERROR, 3, min_rows=2),
    Case("squared, bagged", VARIANCE, bits=31, bagged=True),
    Case("squared, two outputs, counted", VARIANCE, 4, min_rows=2),
    Case("poisson", POISSON),
    Case("drawn thresholds", random=True),
    Case("drawn thresholds, mostly missing", VARIANCE, random=True, missing=0.8, tried=2),
    Case("monotone", VARIANCE, signs=(1, 0, -1)),
    Case("monotone classes", signs=(-1, 1), min_rows=2),
    Case("least weight", n_stats=3, min_weight=3 << 20),
    Case("least weight, squared, counted", VARIANCE, min_weight=2 << 20, min_rows=2),
    Case("categories", categorical=(1,)),
    Case("categories, drawn", VARIANCE, categorical=(0, 2), random=True, tried=2),
    Case("all missing", missing=1.0),
]


def encoded(case: Case, plan: LaunchPlan = PLAN) -> tuple[list[Any], list[Codes]]:
    """The engines, and the codes of each in its own layout."""
    given = problem(n=case.n, p=case.p, bins=case.bins, missing=case.missing)
    layout = replace(given.layout, starts=np.array([0, case.n]))
    all_engines = engines(plan)
    rows = np.arange(case.n)
    return all_engines, [e.encode(given.X, given.edges, rows, layout) for e in all_engines]


def assert_equal_splits(found: list[Splits]) -> None:
    for other in found[1:]:
        for name, value in vars(found[0]).items():
            np.testing.assert_array_equal(value, vars(other)[name], err_msg=name)


def frontier(case: Case, nodes: np.ndarray, sums: np.ndarray, rng: Any) -> Frontier:
    features = None
    if case.tried is not None:
        drawn = [rng.choice(case.p, case.tried, replace=False) for _ in nodes]
        features = np.sort(np.array(drawn), axis=1)
    limit = 0.9 if any(case.signs) else np.inf
    bounds = np.tile([-limit, limit], (len(nodes), 1))
    keys = rng.integers(2**63, size=len(nodes)).astype(np.uint64)
    return Frontier(nodes, sums, features, bounds, keys)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_growers_agree_level_by_level(case: Case) -> None:
    rng = np.random.default_rng(3)
    all_engines, codes = encoded(case)
    sample = case.sample()
    growers = [
        e.grower(c, sample, case.rule()) for e, c in zip(all_engines, codes, strict=True)
    ]  # fmt: skip
    roots = [g.total() for g in growers]
    assert all((root == roots[0]).all() for root in roots)
    nodes, sums, first, split = np.zeros(1, dtype=np.int64), roots[0][None, :], 1, 0
    for _ in range(LEVELS if case.bins < 256 else 2):
        given = frontier(case, nodes, sums, rng)
        found = [g.split(given) for g in growers]
        assert_equal_splits(found)
        good = found[0].score > NEVER
        if not good.any():
            break
        split += int(good.sum())
        nodes, sums, chosen = nodes[good], sums[good], found[0][good]
        n_left = [g.partition(nodes, chosen) for g in growers]
        assert (n_left[0] == n_left[1]).all()
        assert (n_left[0] == n_left[2]).all()
        nodes = np.arange(first, first + 2 * len(nodes))
        first += len(nodes)
        sums = np.stack([chosen.left, sums - chosen.left], axis=1).reshape(len(nodes), -1)
        pure = [g.pure(nodes) for g in growers]
        assert (pure[0] == pure[1]).all()
        assert (pure[0] == pure[2]).all()
        if case.kind < VARIANCE:
            open_ = sums.max(axis=1) < sums.sum(axis=1)
            nodes, sums = nodes[open_], sums[open_]
    assert (split == 0) == (case.missing == 1.0)
    np.testing.assert_array_equal(growers[0].nodes(), growers[2].nodes())


def test_siblings_are_subtracted_and_sums_forgotten_give_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case("gini")
    taken: list[int] = []
    subtract = sums.launch_subtract

    def counted(*args: Any) -> None:
        taken.append(args[2].shape[0])
        subtract(*args)

    monkeypatch.setattr(sums, "launch_subtract", counted)
    test_growers_agree_level_by_level(case)
    assert sum(taken) > 0
    taken.clear()
    monkeypatch.setattr(kept, "KEPT_BYTES", 0)
    monkeypatch.setattr(cuda_grower, "CHUNK_BYTES", 1)  # a family, or a small node, at a time
    test_growers_agree_level_by_level(case)
    assert not taken


def test_sums_in_shared_memory_carry_into_the_upper_word() -> None:
    """Sums that wrap around 2^32 upwards and downwards, in one block and across blocks."""
    case, rng = Case("", VARIANCE, n=24, p=1, bins=2, missing=0.0), np.random.default_rng(0)
    all_engines, codes = encoded(case)
    values = np.stack([np.full(24, 2**32 - 1), np.where(np.arange(24) % 2, -1, 2**31)], axis=1)
    sample = Sample(None, None, values, 2)
    growers = [
        e.grower(c, sample, case.rule()) for e, c in zip(all_engines, codes, strict=True)
    ]  # fmt: skip
    given = frontier(case, np.zeros(1, dtype=np.int64), growers[0].total()[None, :], rng)
    assert_equal_splits([g.split(given) for g in growers])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_leaves_and_sums_by_index(dtype: Any) -> None:
    case = Case("", n=30, categorical=(1,))
    all_engines, codes = encoded(case)
    subset = np.zeros((5, subset_words(case.rule().categorical, codes[0].width)), dtype=np.uint64)
    subset[1, 0] = 0b10010
    tree = CodeTree(
        np.array([0, 1, LEAF, LEAF, LEAF], dtype), np.array([2, -1, -1, -1, -1], dtype),
        np.array([True, False, False, False, False]), np.array([1, 3, LEAF, LEAF, LEAF], dtype),
        np.array([2, 4, LEAF, LEAF, LEAF], dtype), subset,
    )  # fmt: skip
    values = np.random.default_rng(0).integers(-(2**40), 2**40, size=(30, 2))
    results = []
    for e, c in zip(all_engines, codes, strict=True):
        leaf = e.leaves(c, tree)
        results.append(np.concatenate([leaf, e.sums_by(leaf, values, 5).ravel()]))
    assert set(results[0][:30]) == {2, 3, 4}
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[0], results[1])


def forest(outputs: int, rng: Any) -> PackedForest:
    """Three trees: a leaf, a threshold, a threshold with a subset below it."""
    feature = np.array([LEAF, 0, LEAF, LEAF, 1, 2, LEAF, LEAF, LEAF])
    left = np.array([LEAF, 2, LEAF, LEAF, 5, 6, LEAF, LEAF, LEAF])
    subset = np.full(9, LEAF)
    subset[5] = 1
    subsets = np.array([[0, 0], [0b1011, 1 << 3]], dtype=np.uint64)
    return PackedForest(
        np.array([0, 1, 4]), feature, np.where(subset < 0, 0.1, np.nan),
        np.array([0, 1, 0, 0, 0, 1, 0, 0, 0], dtype=bool), left,
        np.where(left < 0, LEAF, np.array([0, 3, 0, 0, 8, 7, 0, 0, 0])), subset, subsets,
        rng.normal(size=(9, outputs)), 3.0, rng.normal(size=outputs),
    )  # fmt: skip


@pytest.mark.parametrize("outputs", [1, 2, 5, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_forests_are_evaluated_to_the_same_bits(outputs: int, dtype: Any) -> None:
    rng = np.random.default_rng(outputs)
    X = rng.normal(size=(24, 3)).astype(dtype)
    X[:, 2] = np.resize([0, 1, 2, 3, 67, 66, 128, -1, np.nan, np.inf], 24)
    X[::5, :2] = np.nan
    packed = forest(outputs, rng)
    ours, cpu, reference = engines()
    for given in (X, np.asfortranarray(X)):
        F = ours.evaluate_forest(given, packed)
        np.testing.assert_array_equal(F, reference.evaluate_forest(X, packed))
        np.testing.assert_array_equal(F, cpu.evaluate_forest(X, packed))
        leaves = ours.apply_forest(given, packed)
        np.testing.assert_array_equal(leaves, reference.apply_forest(X, packed))
    assert (np.diff(np.sort(leaves, axis=0), axis=0) > 0).any()
    for n in (0, 1):
        assert ours.evaluate_forest(X[:n], packed).shape == (n, outputs)


def data(n: int = 70) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(4, size=n)
    score = 2.0 * X[:, 0] + (X[:, 3] == 2) - X[:, 1] + rng.normal(size=n)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, score


FITS: list[Any] = [
    (DecisionTreeClassifier, {"max_depth": 3}),
    (DecisionTreeClassifier, {"criterion": "entropy", "max_leaf_nodes": 5}),
    (DecisionTreeClassifier, {"criterion": "error", "min_samples_leaf": 6}),
    (DecisionTreeClassifier, {"max_features": 2, "max_depth": 3, "random_state": 0}),
    (DecisionTreeClassifier, {"categorical_features": [3], "max_depth": 4}),
    (DecisionTreeClassifier, {"monotonic_cst": [1, -1, 0, 0], "max_depth": 3}),
    (DecisionTreeRegressor, {"max_depth": 3, "max_bins": None}),
    (DecisionTreeRegressor, {"splitter": "random", "max_depth": 3, "random_state": 0}),
    (DecisionTreeRegressor, {"criterion": "poisson", "min_samples_leaf": 9}),
    pytest.param(
        RandomForestRegressor,
        {"n_estimators": 2, "max_depth": 3, "random_state": 0},
        marks=pytest.mark.long,
    ),
    (
        RandomForestRegressor,
        {
            "n_estimators": 2,
            "capacity": "ccp_alpha",
            "validation": "holdout",
            "min_samples_leaf": 4,
            "random_state": 0,
        },
    ),
    (
        RandomForestClassifier,
        {
            "n_estimators": 2,
            "capacity": "max_leaf_nodes",
            "capacity_grid": [2, 3, 5],
            "validation_loss": "log_loss",
            "random_state": 0,
        },
    ),
    (
        RandomForestClassifier,
        {
            "n_estimators": 2,
            "max_depth": 3,
            "splitter": "random",
            "subspace": "tree",
            "voting": "hard",
            "max_features": 2,
            "random_state": 0,
        },
    ),
]


@pytest.mark.parametrize(("estimator", "parameters"), FITS)
def test_fit_equals_the_cpu_fit(estimator: Any, parameters: dict[str, Any]) -> None:
    X, score = data()
    y = np.exp(0.3 * score)
    if issubclass(estimator, DecisionTreeClassifier | RandomForestClassifier):
        y = (score > 0).astype(int) + (score > 2) * ("monotonic_cst" not in parameters)
    models = []
    for engine in ("cuda", "cpu"):
        with use_engine(engine):
            model = estimator(**{"max_bins": 9, **parameters}).fit(X, y)
            assert model.engine_ == engine
            curves = getattr(model, "validation_curves_", np.zeros(0))
            models.append((model.model_.fingerprint(), model.model_(X), model.apply(X), curves))
    ours, theirs = models
    assert ours[0] == theirs[0]
    np.testing.assert_array_equal(ours[1], theirs[1])
    np.testing.assert_array_equal(ours[2], theirs[2])
    np.testing.assert_array_equal(ours[3], theirs[3])
