"""Forests for the tests: taken from scikit-learn's trees, or drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest, Nodes


def from_sklearn(fitted: Any, **options: Any) -> Forest:
    """The trees of a fitted scikit-learn tree or forest."""
    return Forest.join(_tree(t.tree_, options) for t in getattr(fitted, "estimators_", [fitted]))


def _tree(tree: Any, options: dict[str, Any]) -> Forest:
    leaf = tree.children_left == LEAF
    nodes = Nodes(
        np.where(leaf, LEAF, tree.feature), np.where(leaf, np.nan, tree.threshold),
        tree.missing_go_to_left, tree.children_left, tree.children_right,
        np.full(tree.node_count, LEAF), tree.value[:, 0, :], tree.impurity, tree.n_node_samples,
        tree.weighted_n_node_samples,
    )  # fmt: skip
    return Forest(nodes, np.array([0]), tree.n_features, **options)


N_FEATURES, CATEGORICAL = 7, {2: 5, 4: 70}


def random_forest(
    seed: int = 0, n_trees: int = 5, n_outputs: int = 2, depth: int = 7, **options: Any
) -> Forest:
    """Trees with tests of every kind; features 2 and 4 are categorical with 5 and 70 values."""
    rng = np.random.default_rng(seed)
    rows: list[list[Any]] = []
    subsets: list[np.ndarray] = []
    starts = []

    def grow(level: int) -> None:
        i, at_least_one = len(rows), level == 0
        if level == depth or (rng.random() < 0.2 and not at_least_one):
            rows.append([LEAF, np.nan, False, LEAF, LEAF, LEAF])
            return
        f, threshold, subset = int(rng.integers(N_FEATURES)), round(rng.normal(), 1), LEAF
        if f in CATEGORICAL:
            subset, threshold = len(subsets), np.nan
            subsets.append(rng.integers(0, 2**63, 2).astype(np.uint64) * np.uint64(2))
        elif rng.random() < 0.1:
            threshold = np.inf
        rows.append([f, threshold, bool(rng.random() < 0.5), i + 1, LEAF, subset])
        grow(level + 1)
        rows[i][4] = len(rows)
        grow(level + 1)

    for _ in range(n_trees):
        starts.append(len(rows))
        grow(0)
    n = len(rows)
    columns = [np.array(c) for c in zip(*rows, strict=True)]
    numbers = rng.random(n), rng.integers(1, 50, n), rng.random(n) + 1.0
    nodes = Nodes(*columns, rng.normal(size=(n, n_outputs)), *numbers)
    known = {f: np.sort(rng.choice(200, m, replace=False)) for f, m in CATEGORICAL.items()}
    options = {"intercept": rng.normal(size=n_outputs), "categories": known} | options
    words = np.array(subsets, dtype=np.uint64).reshape(-1, 2)
    return Forest(nodes, np.array(starts), N_FEATURES, subsets=words, **options)


def rows_for(forest: Forest, n: int = 300, seed: int = 1, missing: float = 0.15) -> np.ndarray:
    """Rows on and beside thresholds, with known and unknown categories and missing values."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, forest.n_features)), 1)
    for f, known in forest.categories.items():
        X[:, f] = rng.choice(np.append(known, [-3.0, 0.5, 1e9]), n)
    X[rng.random(X.shape) < missing] = np.nan
    X[rng.random(X.shape) < 0.01] = np.inf
    return X


def leaf_by_hand(forest: Forest, t: int, x: np.ndarray) -> int:
    """The leaf of one row, one test after the other."""
    nodes, i = forest.nodes, int(forest.starts[t])
    while nodes.feature[i] != LEAF:
        f = int(nodes.feature[i])
        value, known = x[f], forest.categories.get(f)
        code = None if known is None else np.flatnonzero(known == value)
        if np.isnan(value) or (code is not None and len(code) == 0):
            left = bool(nodes.missing_left[i])
        elif nodes.subset[i] >= 0:
            word = forest.subsets[nodes.subset[i], code[0] // 64]
            left = bool(int(word) >> (int(code[0]) % 64) & 1)
        else:
            left = bool(value <= nodes.threshold[i])
        i = int(nodes.left[i] if left else nodes.right[i])
    return i


def by_hand(forest: Forest, X: np.ndarray) -> np.ndarray:
    """F in plain Python: the sum in the order of the trees."""
    out = np.zeros((len(X), forest.n_outputs))
    for i, x in enumerate(X):
        for t in range(len(forest)):
            out[i] += forest.nodes.value[leaf_by_hand(forest, t, x)]
    return out / (len(forest) if forest.average else 1.0) + forest.intercept
