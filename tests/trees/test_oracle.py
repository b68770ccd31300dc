"""Whole trees of both engines are those of an oracle that shares no code with them.

The engines share the search for the best split (kernels/host/search.py) and the scores
(kernels/host/criteria.py): a fault there would be in all of them alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import use_engine
from ensemble_gpu.kernels.tree_protocol import LEAF, unpacked
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.places import ENGINES
from tests.products import every_pair
from tests.trees.oracle import Limits, Node, TreeOracle

CLASSES = {"gini": 2, "gini of 3": 3, "entropy": 2, "entropy of 3": 3, "error": 3}
CRITERIA = [*CLASSES, "squared_error", "poisson"]
SEEDS = range(2)


def table(seed: int, missing: bool, n: int = 70) -> np.ndarray:
    """Numbers with many ties, twice, five categories, and numbers with fewer ties."""
    rng = np.random.default_rng(seed)
    X = np.stack(
        [rng.integers(6, size=n), np.zeros(n), rng.integers(5, size=n), rng.integers(40, size=n)],
        axis=1,
    ).astype(np.float64)
    X[:5, 2] = np.arange(5)  # every category occurs
    if missing:
        holes = rng.random(X.shape) < 0.15
        holes[:5] = False
        X[holes] = np.nan
    X[:, 1] = X[:, 0]  # of two equal features the first wins
    return X


def target(criterion: str, X: np.ndarray, seed: int) -> np.ndarray:
    rng = np.random.default_rng(100 + seed)
    level = np.array([0, 3, -2, 2, -3, 1])[np.nan_to_num(X[:, 2], nan=5.0).astype(int)]
    level = level + np.nan_to_num(X[:, 0], nan=4.0) + rng.integers(-3, 4, size=len(X))
    if criterion == "poisson":
        return np.maximum(level, 0).astype(np.float64)
    if criterion == "squared_error":
        y = level - np.round(level.mean())
        y[0], y[1] = 2.0 * np.abs(y).max() * np.array([1.0, -1.0])  # the middle is 0
        return y
    k = CLASSES[criterion]
    return np.digitize(level, np.quantile(level, np.arange(1, k) / k))


def weights(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(200 + seed).integers(1, 6, size=n).astype(np.float64)


def nodes_of(tree: Any) -> list[tuple]:
    """The nodes as the oracle writes them."""
    model, nodes = tree.model_, tree.model_.nodes
    found = []
    for i in range(len(nodes)):
        rest = (int(nodes.n_samples[i]), nodes.value[i].tolist())
        if nodes.feature[i] == LEAF:
            found.append((None, None, None, *rest))
            continue
        test: Any = float(nodes.threshold[i])
        if nodes.subset[i] != LEAF:
            test = frozenset(np.flatnonzero(unpacked(model.subsets[nodes.subset[i]][None])[0]))
        found.append((int(nodes.feature[i]), test, bool(nodes.missing_left[i]), *rest))
    return found


def assert_tree_of_the_oracle(
    criterion: str, seed: int, *, missing: bool = True, weighted: bool = True, **params: Any
) -> list[tuple]:
    X = table(seed, missing)
    y = target(criterion, X, seed)
    w = weights(seed, len(y)) if weighted else np.ones(len(y))
    name, k = criterion.removesuffix(" of 3"), CLASSES.get(criterion, 0)
    wanted = TreeOracle(
        X, y, w,
        Limits(
            name, k, params.get("max_depth", 1000), params.get("min_samples_leaf", 1),
            params.get("min_weight_fraction_leaf", 0.0), tuple(params.get("monotonic_cst", ())),
            tuple(params.get("categorical_features", ())),
        ),
    ).grow()  # fmt: skip
    kind = DecisionTreeClassifier if k else DecisionTreeRegressor
    for engine in ENGINES:
        with use_engine(engine):
            found = nodes_of(kind(criterion=name, max_bins=None, **params).fit(X, y, w))
        assert [node[:4] for node in found] == [node[:4] for node in wanted], engine
        for own, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(own[4], other[4], rtol=1e-12, atol=1e-15)
    return wanted


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "holes"])
def test_a_tree_on_numbers_is_that_of_the_oracle(criterion, missing):
    for seed in SEEDS:
        nodes = assert_tree_of_the_oracle(criterion, seed, missing=missing, weighted=seed % 2 == 0)
        assert len(nodes) > 20
        assert all(node[0] != 1 for node in nodes)  # the copy of feature 0


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "poisson"])
def test_no_set_of_categories_is_better_than_the_one_that_the_oracle_finds_by_order(criterion):
    for seed in SEEDS:
        X = table(seed, missing=True)[:, 2:3]
        y = target(criterion, table(seed, missing=True), seed)
        limits = Limits(criterion, CLASSES.get(criterion, 0), categorical=(0,))
        oracle, rows = TreeOracle(X, y, weights(seed, len(y)), limits), np.arange(len(y))
        split = oracle.best(rows, (-np.inf, np.inf))
        assert split is not None

        def score(left: np.ndarray, oracle: TreeOracle = oracle) -> float:
            return oracle.score(np.flatnonzero(left)) + oracle.score(np.flatnonzero(~left))

        every = Node(criterion, X, y, oracle.w).subsets(0)
        best = max(score(left) for left in every if 0 < left.sum() < len(y))
        assert score(split.left) == pytest.approx(best, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "holes"])
def test_a_tree_on_categories_is_that_of_the_oracle(criterion, missing):
    for seed in SEEDS:
        nodes = assert_tree_of_the_oracle(
            criterion, seed, missing=missing, categorical_features=[2]
        )
        assert any(node[0] == 2 for node in nodes)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "limits",
    [
        {"min_samples_leaf": 5},
        {"min_weight_fraction_leaf": 0.06},
        {"max_depth": 3, "min_samples_leaf": 3, "min_weight_fraction_leaf": 0.03},
    ],
    ids=str,
)
def test_a_tree_with_large_leaves_is_that_of_the_oracle(criterion, limits):
    for seed in SEEDS:
        nodes = assert_tree_of_the_oracle(criterion, seed, categorical_features=[2], **limits)
        assert len(nodes) > 5


@pytest.mark.slow
@every_pair(
    "criterion, signs, limits",
    ["gini", "entropy", "squared_error", "poisson"],
    [[1, 0, 0, -1], [-1, -1, 0, 1]],
    [{}, {"min_samples_leaf": 3}],
    ids=str,
)
def test_a_monotone_tree_is_that_of_the_oracle(criterion, signs, limits):
    for seed in SEEDS:
        nodes = assert_tree_of_the_oracle(
            criterion, seed, categorical_features=[2], monotonic_cst=signs, **limits
        )
        assert any(node[0] in (0, 3) for node in nodes)
