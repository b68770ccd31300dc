"""The trees of a random forest: bags of rows, a tree each, predictions out of bag."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from zlib import crc32

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import take_rows
from ensemble_gpu.data.bags import Bags, make_bags
from ensemble_gpu.data.keys import repetitions
from ensemble_gpu.estimators.threads import in_order
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.sparse import apply_forest
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.build import Described, TreeParameters, grow_tree, to_forest
from ensemble_gpu.trees.fitting import TreeData
from ensemble_gpu.trees.grow import Grown
from ensemble_gpu.trees.statistics import Statistics

# Leaves [rows, trees] that predictions out of bag look up at once: bounds their memory.
MOST_LEAVES = 1 << 22

Tree = TypeVar("Tree")

# (statistics, how often each row was drawn, where they are) -> the statistics of one tree
Reweigh = Callable[[Statistics, Any, Where], Statistics]


def kept_rows(prepared: TreeData) -> Any:
    """The rows of X that take part."""
    X, order = prepared.X, prepared.binned.order
    return X if order is None else take_rows(X, order)


def repeats_of(prepared: TreeData, weighted: bool) -> tuple[np.ndarray | None, np.ndarray | None]:
    """How often every row can be drawn, and the weights of rows beside that, on the host.

    Whole weights are repetitions; unless `weighted`: they include weights of classes.
    """
    statistics, where = prepared.statistics, prepared.engine.where
    repeats = factor = None
    if not bool(where.xp.all(statistics.weights == 1)):
        factor = where.host(statistics.weights).astype(np.float64)
    if statistics.weight_unit == 1.0 and not weighted:
        repeats, factor = repetitions(factor)
    return repeats, factor


def bags_of(
    prepared: TreeData, weighted: bool, draws: Callable[[int], int]
) -> tuple[Bags, Statistics]:
    """Bootstrap bags of the rows, and what is added up over them.

    Weights that are repetitions to draw from (`repeats_of`) are no longer weights. `draws` takes
    the number of rows to draw from.
    """
    statistics, where = prepared.statistics, prepared.engine.where
    repeats, factor = repeats_of(prepared, weighted)
    keys = None
    if prepared.replica is not None:
        keys = prepared.replica.keys(where.host(statistics.target), factor)
    bags = make_bags(
        kept_rows(prepared) if keys is None else keys, statistics.target, repeats, factor,
        keys=keys, seed=prepared.parameters.seed,
        max_samples=draws(statistics.weights.shape[0] if repeats is None else int(repeats.sum())),
        replace=True, takes_weights=True,
    )  # fmt: skip
    if repeats is not None and factor is None:
        statistics = replace(statistics, weights=where.xp.ones_like(statistics.weights))
    return bags, statistics


def checksum(bags: Bags) -> int:
    """Of the rows that are drawn from."""
    assert bags.rows is not None
    return crc32(bags.rows.tobytes())


@dataclass(frozen=True)
class GrownTree:
    """A tree of the forest that is not a model yet, and what was added up for it."""

    grown: Grown
    described: Described
    statistics: Statistics

    @property
    def risk(self) -> np.ndarray:
        return self.described.risk(self.statistics.weight(self.grown.sums))


@dataclass(frozen=True)
class BaggedRows:
    """What the trees of a forest grow from: rows, bags of them (None: all rows).

    `reweigh` may change the weights of the classes of a bag.
    """

    prepared: TreeData
    bags: Bags | None
    reweigh: Reweigh

    def counts(self, number: int) -> np.ndarray | None:
        """How often each row is in the bag of a tree (None: all rows once)."""
        return None if self.bags is None else self.bags.counts(number)

    def grow(
        self, engine: Engine, number: int, drawn: np.ndarray | None, parameters: TreeParameters
    ) -> GrownTree:
        """Tree `number` from rows that are there as often as `drawn` says."""
        where, prepared = engine.where, self.prepared
        rows = counts = None
        if drawn is not None:
            rows = where.put(np.flatnonzero(drawn).astype(np.int32))
            counts = where.put(drawn)
        statistics = self.reweigh(prepared.statistics, counts, where)
        grown, described = grow_tree(
            engine, prepared.matrix, statistics, parameters, number, rows, counts
        )
        return GrownTree(grown, described, statistics)

    def model(self, tree: GrownTree) -> Forest:
        matrix, categories = self.prepared.matrix, self.prepared.categories
        return to_forest(tree.grown, tree.described, matrix, tree.statistics, categories.values)

    def tree(self, engine: Engine, number: int) -> Forest:
        """Tree `number` of the forest, from its bag."""
        grown = self.grow(engine, number, self.counts(number), self.prepared.parameters)
        return self.model(grown)


def side_by_side(
    grow: Callable[[Engine, int], Tree], numbers: Sequence[int], engine: Engine
) -> Generator[Tree]:
    """grow(engine, number) of every number, in their order; as many at a time as there are workers.

    Each of several workers has an engine of one thread.
    """
    workers = min(engine.n_workers, len(numbers))
    own = engine.single() if workers > 1 else engine

    def one(number: int) -> Tree:
        return grow(own, number)

    if workers == 1:
        yield from map(one, numbers)
        return
    yield from in_order(one, numbers, workers)  # which is closed with this one


def out_of_bag(
    prepared: TreeData, bags: Sequence[Bags | None], forest: Forest
) -> tuple[np.ndarray, np.ndarray]:
    """(sum of outputs [rows, outputs], number of trees [rows]) over trees that lack the row.

    Trees test values here, not codes: the predictions are those of the model, also
    where a threshold lies within a bin that had no rows in its node.
    """
    engine, X = prepared.engine, kept_rows(prepared)
    where, xp = engine.where, engine.where.xp
    values = where.put(forest.nodes.value)
    total = where.zeros((X.shape[0], forest.n_outputs), xp.float64)
    times = where.zeros(X.shape[0], xp.int64)
    step = max(1, MOST_LEAVES // X.shape[0])
    for start in range(0, len(forest), step):
        part = replace(forest.packed, roots=forest.starts[start : start + step])
        leaves = engine.adopt(apply_forest(engine, X, part))
        for tree in range(start, start + leaves.shape[1]):
            own = bags[tree]
            if own is None:
                continue
            out = where.put((own.counts(tree) == 0).astype(np.int64))
            value = xp.take(values, leaves[:, tree - start], axis=0)
            total = total + value * where.as_float64(out)[:, None]
            times = times + out
    return where.host(total), where.host(times)
