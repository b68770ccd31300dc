"""What the trees of a forest have seen, and what each says."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.bagging.random_forest import RandomForestRegressor
from ensemble_gpu.data.bags import make_bags
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.trees.statistics import class_statistics, real_statistics


def bag(
    forest: Any,
    number: int,
    X: np.ndarray,
    y: np.ndarray,
    n_draws: int = 0,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """How often a tree has seen each row; the seed is the first draw of the forest's source.

    `weights` are not whole.
    """
    seed = np.random.RandomState(forest.random_state).randint(np.iinfo(np.int32).max)
    if isinstance(forest, RandomForestRegressor):
        rows = real_statistics(forest.criterion, y.astype(float), weights, CpuEngine(1))
    else:
        rows = class_statistics("gini", y, int(y.max()) + 1, weights, CpuEngine(1))
    factor = None if weights is None else rows.weights.astype(np.float64)
    bags = make_bags(
        X, rows.target, None, factor, seed=seed, replace=True, max_samples=n_draws or len(y),
        takes_weights=True,
    )  # fmt: skip
    return bags.counts(number)


def trees_of(forest: Any, X: np.ndarray) -> np.ndarray:
    """The outputs of each tree alone: [tree, row, output]."""
    return np.array([forest.model_.tree(t)(X) for t in range(len(forest.model_))])
