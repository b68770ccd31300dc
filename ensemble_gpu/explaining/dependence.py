"""Partial dependence: the mean output where a feature has a value.

    pd_f(v) = E F(x with x_f = v)

of stumps exactly, base + phi_f(v), over the training rows; of trees over the shares of the training
weight at the tests of other features, as their Shapley values have it; over given rows by brute
force, for any model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.explaining.background import Background
from ensemble_gpu.explaining.tables import table_means
from ensemble_gpu.explaining.trees import training_shares
from ensemble_gpu.kernels.path_shares import PathShares
from ensemble_gpu.kernels.reference.trees.evaluate import Walker
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.forest import Forest

# Points of a grid that nobody has given, at most.
MOST_POINTS = 200


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """The mean output of a model by the value of one feature.

    Attributes
    ----------
    feature : int
    name : str
    grid : array [points]
    values : array [points, outputs]
    """

    feature: int
    name: str
    grid: np.ndarray
    values: np.ndarray
    output_names: list[Any] | None = field(default=None, repr=False)

    def to_frame(self) -> Any:
        """A pandas frame: a column an output, a row a point of the grid."""
        import pandas as pd

        names = self.output_names or list(range(self.values.shape[1]))
        return pd.DataFrame(self.values, index=pd.Index(self.grid, name=self.name), columns=names)

    def plot(self, *, ax: Any = None) -> Any:
        """A line an output; matplotlib Axes."""
        from ensemble_gpu.explaining.pictures import plot_dependence

        return plot_dependence(self, ax=ax)


def usual_grid(feature: int, forests: list[Forest], tables: AdditiveModel | None) -> np.ndarray:
    """The thresholds of a feature and a value above them, or its categories; 0 without any."""
    for forest in forests:
        if feature in forest.categories:
            return np.asarray(forest.categories[feature])
    found = [forest.nodes.threshold[forest.nodes.feature == feature] for forest in forests]
    if tables is not None:
        found.append(tables.shape_function(feature).thresholds)
    grid = np.unique(np.concatenate(found)) if found else np.zeros(0)
    grid = grid[np.isfinite(grid)]
    if not len(grid):
        return np.zeros(1)
    if len(grid) >= MOST_POINTS:
        grid = np.unique(
            np.quantile(grid, np.linspace(0.0, 1.0, MOST_POINTS - 1), method="nearest")
        )
    step = grid[-1] - grid[0] if len(grid) > 1 else 1.0
    return np.append(grid, grid[-1] + 0.05 * step)


def table_dependence(
    model: AdditiveModel, background: Background, feature: int, grid: np.ndarray
) -> np.ndarray:
    """[points, outputs] of a sum of stumps."""
    means = table_means(model, background)
    others = [mean for f, mean in means.items() if f != feature]
    start = model.intercept + np.sum(others, axis=0) if others else model.intercept
    return start + model.shape_function(feature)(grid)


def forest_dependence(forest: Forest, feature: int, grid: np.ndarray) -> np.ndarray:
    """[points, outputs] of trees, all of them a level at a time."""
    nodes, shares = forest.nodes, training_shares(forest)
    walker, part = Walker(forest.packed, NUMPY), _parts(shares)
    x = _codes(forest, feature, grid)
    at, weight = forest.starts, np.ones((forest.n_trees, len(grid)))
    total = np.zeros((len(grid), forest.n_outputs))
    while len(at):
        leaf = nodes.feature[at] == LEAF
        total += weight[leaf].T @ nodes.value[at[leaf]]
        at, weight = at[~leaf], weight[~leaf]
        left, right = nodes.left[at], nodes.right[at]
        goes = np.repeat(part[left][:, None], len(grid), axis=1)
        own = np.flatnonzero(nodes.feature[at] == feature)
        if len(own):
            tests = np.repeat(at[own], len(grid))
            known = walker.goes_left(np.tile(x, len(own)), tests)
            goes[own] = known.reshape(len(own), len(grid))
        at = np.concatenate([left, right])
        weight = np.concatenate([weight * goes, weight * (1.0 - goes)])
    return forest.intercept + total / forest.packed.divisor


def _parts(shares: PathShares) -> np.ndarray:
    """The share of each node in its parent's weight."""
    above = np.where(shares.twin >= 0, shares.share[shares.twin], 1.0)
    return np.divide(shares.share, above, out=np.zeros(len(above)), where=above > 0.0)


def _codes(forest: Forest, feature: int, grid: np.ndarray) -> np.ndarray:
    """Values as the tests see them: numbers of categories, NaN for unknown ones."""
    if feature not in forest.categories:
        return grid
    known = forest.categories[feature]
    at = np.minimum(np.searchsorted(known, grid), len(known) - 1)
    return np.where(known[at] == grid, at.astype(np.float64), np.nan)
