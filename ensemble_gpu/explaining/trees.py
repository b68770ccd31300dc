"""Shapley values of forests and boosted trees, path-dependent (kernels/path_shares.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.kernels.host.path_shares import path_shares
from ensemble_gpu.kernels.path_shares import PathShares
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest

# Outputs of a leaf that add up to the same number everywhere do so to this precision.
SAME = 1e-13


def training_shares(forest: Forest) -> PathShares:
    """Of the weights that the nodes had in training."""
    return path_shares(forest.packed, forest.nodes.weight, forest.nodes.n_samples)


def mean_output(forest: Forest, shares: PathShares) -> np.ndarray:
    """F where no feature is known: the mean over the leaves, by their shares of the weight."""
    leaf = forest.nodes.feature == LEAF
    return forest.intercept + shares.reach[leaf] @ forest.nodes.value[leaf] / forest.packed.divisor


def explain_forest(forest: Forest, X: Any, n_jobs: int | None) -> tuple[Any, np.ndarray]:
    """Values [n, features, outputs] where X is, and base values.

    Where the outputs of every leaf add up to 1, as shares of classes do, the values of the last
    output are minus the sum of the others'.
    """
    shares = training_shares(forest)
    _, engine, X = forest.prepared(X, n_jobs)
    packed = forest.packed
    leaf_sums = packed.values[packed.feature == LEAF].sum(axis=1)
    redundant = (
        forest.n_outputs > 1 and bool(np.ptp(leaf_sums) <= SAME) if len(leaf_sums) else False
    )
    own = packed.values[:, :-1] if redundant else packed.values
    scaled = replace(packed, values=own / packed.divisor, layouts={})
    values = engine.shapley_values(X, scaled, shares)
    if redundant:
        values = _completed(values, locate(values))
    return values, mean_output(forest, shares)


def _completed(values: Any, where: Where) -> Any:
    xp = where.xp
    return xp.concat([values, -xp.sum(values, axis=2, keepdims=True)], axis=2)
