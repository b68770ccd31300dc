"""Shapley values by their definition: the mean worth of a feature over all orders of features."""

from __future__ import annotations

from itertools import combinations
from math import factorial

import numpy as np

from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest


def expected_output(forest: Forest, x: np.ndarray, known: frozenset[int]) -> np.ndarray:
    """F where some features are known: at tests of others both ways, by the children's weight."""
    nodes = forest.nodes

    def below(i: int) -> np.ndarray:
        if nodes.feature[i] == LEAF:
            return nodes.value[i]
        left, right = int(nodes.left[i]), int(nodes.right[i])
        if int(nodes.feature[i]) in known:
            return below(left if _goes_left(forest, i, x) else right)
        a, b = nodes.weight[left], nodes.weight[right]
        if a + b == 0.0:
            a, b = nodes.n_samples[left], nodes.n_samples[right]
        return (a * below(left) + b * below(right)) / (a + b)

    total = sum(below(int(root)) for root in forest.starts)
    return total / (forest.n_trees if forest.average else 1.0) + forest.intercept


def _goes_left(forest: Forest, i: int, x: np.ndarray) -> bool:
    nodes, f = forest.nodes, int(forest.nodes.feature[i])
    categories = forest.categories.get(f)
    code = None if categories is None else np.flatnonzero(categories == x[f])
    if np.isnan(x[f]) or (code is not None and len(code) == 0):
        return bool(nodes.missing_left[i])
    if nodes.subset[i] >= 0:
        word = int(forest.subsets[nodes.subset[i], code[0] // 64])
        return bool(word >> (int(code[0]) % 64) & 1)
    return bool(x[f] <= nodes.threshold[i])


def shapley(forest: Forest, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [features, outputs] of one row, and base values."""
    features = sorted({int(f) for f in forest.nodes.feature if f != LEAF})
    d = len(features)
    worth = {
        frozenset(s): expected_output(forest, x, frozenset(s))
        for size in range(d + 1)
        for s in combinations(features, size)
    }
    phi = np.zeros((forest.n_features, forest.n_outputs))
    for f in features:
        for s, value in worth.items():
            if f not in s:
                share = factorial(len(s)) * factorial(d - len(s) - 1) / factorial(d)
                phi[f] += share * (worth[s | {f}] - value)
    return phi, worth[frozenset()]
