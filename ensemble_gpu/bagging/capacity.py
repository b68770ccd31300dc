"""Forests whose trees choose their capacity.

A tree is grown once, as large as any of the capacities allows, and rows that it has not grown from
judge the trees of all of them in one walk (trees/judging.py). The capacity of the least loss, the
smallest of several, is the tree's; what is beyond it is cut off.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.bagging.bagged_trees import BaggedRows, GrownTree
from ensemble_gpu.bagging.validation import OUT_OF_BAG, VALIDATIONS, Part, Validation
from ensemble_gpu.data.parameters import (
    check_choice,
    check_integer,
    check_not_negative,
    check_real,
)
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.build import preorder
from ensemble_gpu.trees.cutting import ALPHA, CAPACITIES, DEPTH, LEAVES, Grid
from ensemble_gpu.trees.fitting import TreeData
from ensemble_gpu.trees.judging import curve, node_losses

PARAMETERS = """
    capacity : {{"max_depth", "max_leaf_nodes", "ccp_alpha"}} or None, default=None
        What every tree chooses for itself: it is grown once, all capacities of the grid are judged
        by rows that it has not grown from, and the best, the smallest of equals, is kept. A tree
        that no row can judge keeps the largest. The parameter of that name must not be given, nor
        `ccp_alpha` with another capacity, nor `max_leaf_nodes` with "max_depth".
    capacity_grid : sequence or None, default=None
        The capacities to choose from, as the parameter of that name takes them (None: no limit).
        None: depths 1 to 32, or 2, 3, 4, 6, 8, 12, ... 65,536 leaves, and no limit; or 0 and the
        impurity of all rows times 1/2, 3/8, 1/4, 3/16, ... 2^-24.
    validation : {{"oob", "holdout", "cv"}}, default="oob"
        Who judges: the rows out of the tree's bag; a share of the distinct rows in it, which the
        tree then does not grow from; or all in it, by as many trees as folds, and the tree that is
        kept is grown from the whole bag (as many growths more).
    validation_fraction : float in (0, 1), default=0.2
        The share of "holdout".
    validation_folds : int, default=5
        Folds of "cv".{loss}"""

CLASS_LOSS = """
    validation_loss : {"error", "log_loss", "brier"}, default="error"
        What the judging rows add up, weighted as in training: the misclassified, -ln p of the
        row's label, or (p - [y = 1])^2 (of K classes the sum over them)."""

ATTRIBUTES = """
    capacity_grid_ : tuple, the capacities, from the smallest tree to the largest (only with
        capacity, as the next two)
    capacities_ : tuple, that of each tree
    validation_curves_ : ndarray [trees, capacities], mean {loss} of the rows that judge;
        NaN where none does"""

MOST_DEPTH = 32
# Powers of two, and the middle between two.
_LEAVES = sorted({2**k for k in range(1, 17)} | {3 * 2**k for k in range(15)})
_SHARES = [2.0**-k for k in range(1, 25)] + [3.0 * 2.0**-k for k in range(3, 26)]


def check_capacity(forest: Any) -> None:
    """Raise where the parameters of a capacity are wrong, or contradict others."""
    capacity = forest.capacity
    check_choice("capacity", capacity, (None, *CAPACITIES))
    check_choice("validation", forest.validation, VALIDATIONS)
    check_real("validation_fraction", forest.validation_fraction, 0.0, 1.0)
    if float(forest.validation_fraction) == 1.0:
        raise ValueError("validation_fraction must be below 1, or no row is left; got 1.0.")
    check_integer("validation_folds", forest.validation_folds, 2)
    if capacity is None:
        if forest.capacity_grid is not None:
            raise ValueError(
                f"capacity_grid={forest.capacity_grid!r} is for a capacity, one of "
                f"{', '.join(map(repr, CAPACITIES))}; capacity is None."
            )
        return
    _check_grid(capacity, forest.capacity_grid)
    limits = {DEPTH: forest.max_depth, LEAVES: forest.max_leaf_nodes, ALPHA: forest.ccp_alpha}
    for name in {DEPTH: CAPACITIES, LEAVES: (LEAVES, ALPHA), ALPHA: (ALPHA,)}[capacity]:
        if limits[name] not in (None, 0):
            instead = "capacity_grid has its values" if name == capacity else "they would interfere"
            raise ValueError(
                f"{name} must not be given with capacity={capacity!r} ({instead}); got "
                f"{limits[name]!r}."
            )
    if forest.validation == OUT_OF_BAG and not forest.bootstrap:
        raise ValueError(
            "validation='oob' needs bootstrap=True; bootstrap is False. Use 'holdout' or 'cv'."
        )


def _check_grid(capacity: str, grid: Any) -> None:
    if grid is None:
        return
    if isinstance(grid, str) or not isinstance(grid, Collection) or getattr(grid, "ndim", 1) != 1:
        raise TypeError(f"capacity_grid must be a sequence of capacities or None; got {grid!r}.")
    values = list(grid)
    if not values:
        raise ValueError("capacity_grid must hold at least one capacity; it is empty.")
    for i, value in enumerate(values):
        name = f"capacity_grid[{i}]"
        if capacity == ALPHA:
            check_not_negative(name, value)
        else:
            check_integer(name, value, 1 if capacity == DEPTH else 2, others=(None,))


def grid_of(capacity: str, given: Any, prepared: TreeData) -> Grid:
    """The capacities to choose from."""
    if given is not None:
        return Grid.of(capacity, [_plain(value) for value in given])
    if capacity == DEPTH:
        return Grid.of(capacity, [*range(1, MOST_DEPTH + 1), None])
    if capacity == LEAVES:
        return Grid.of(capacity, [*_LEAVES, None])
    impurity = _impurity(prepared)
    alphas = [share * impurity for share in _SHARES if np.isfinite(impurity)]
    return Grid.of(capacity, [0.0, *alphas])


def _plain(value: Any) -> Any:
    """A number of Python's."""
    if value is None or isinstance(value, numbers.Integral):
        return value if value is None else int(value)
    return float(value)


def _impurity(prepared: TreeData) -> float:
    """Of all rows, as of the root of a tree on all of them."""
    engine, statistics = prepared.engine, prepared.statistics
    where, xp, w = engine.where, engine.where.xp, prepared.statistics.weights
    if statistics.labelled:
        sums = engine.sums_by(statistics.target, w[:, None], statistics.n_classes)
        return float(statistics.impurities(sums.reshape(1, -1), None)[0])
    values = xp.stack([w, w * statistics.target, w * statistics.second], axis=1)
    sums = engine.sums_by(where.zeros(w.shape[0], xp.int64), values, 1)
    return float(statistics.impurities(sums[:, :2], sums[:, 2])[0])


@dataclass(frozen=True)
class Chosen:
    """A tree of the capacity that it has chosen, and the mean loss of each."""

    tree: Forest
    capacity: Any
    curve: np.ndarray


@dataclass(frozen=True)
class _Judged:
    """The tree of a part of a bag, which places[node] of the grid cut, and what it lost.

    `losses` of all capacities are sums over rows of the whole `weight`.
    """

    tree: GrownTree
    model: Forest
    places: np.ndarray
    losses: np.ndarray
    weight: float


@dataclass(frozen=True)
class CapacityChoice:
    """How trees choose: from a grid, by a loss, judged by rows (`X`: those that take part)."""

    rows: BaggedRows
    X: Any
    validation: Validation
    grid: Grid
    loss: str

    def tree(self, engine: Engine, number: int) -> Chosen:
        """Tree `number` of the forest, as large as it is best."""
        counts = self.rows.counts(number)
        losses, weight = np.zeros(len(self.grid)), 0.0
        for part in self.validation.parts(counts, number):
            judged = self._judged(engine, number, part)
            losses, weight = losses + judged.losses, weight + judged.weight
        best = int(np.argmin(losses)) if weight > 0.0 else len(losses) - 1
        if self.validation.grows_anew:
            limited = self.grid.limited(self.rows.prepared.parameters, best)
            tree = self.rows.model(self.rows.grow(engine, number, counts, limited))
        else:  # there was one part
            tree = self._cut(judged, best)
        return Chosen(tree, self.grid.values[best], self._mean(losses, weight))

    def _judged(self, engine: Engine, number: int, part: Part) -> _Judged:
        parameters = self.grid.growth(self.rows.prepared.parameters)
        tree = self.rows.grow(engine, number, part.grown, parameters)
        model, places = self.rows.model(tree), self.grid.places(tree.grown, tree.risk)
        if not part.judged.any():
            return _Judged(tree, model, places, np.zeros(len(self.grid)), 0.0)
        lost, weight = node_losses(engine, self.X, tree.statistics, part.judged, model, self.loss)
        own = places[preorder(tree.grown.left)]
        return _Judged(tree, model, places, curve(model.nodes, lost, own, len(self.grid)), weight)

    def _cut(self, judged: _Judged, best: int) -> Forest:
        tree, split = judged.tree, judged.places <= best
        if (split | (tree.grown.left == LEAF)).all():
            return judged.model
        return self.rows.model(replace(tree, grown=tree.grown.cut(split)))

    def _mean(self, losses: np.ndarray, weight: float) -> np.ndarray:
        """Of integer weights and t to those of the user."""
        if weight == 0.0:
            return np.full(len(losses), np.nan)
        statistics = self.rows.prepared.statistics
        with np.errstate(over="ignore"):
            mean = losses / weight
            return mean if statistics.labelled else mean * statistics.unit * statistics.unit
