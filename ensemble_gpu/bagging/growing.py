"""The trees of a random forest: bags of rows, a tree each, predictions out of bag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.bagging.draws import bootstrap_counts
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.growing import CodeTree
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.build import grow_tree, to_forest
from ensemble_gpu.trees.fitting import Prepared
from ensemble_gpu.trees.statistics import Statistics

# (statistics, rows drawn, where they are) -> the statistics of one tree
Reweigh = Callable[[Statistics, Any, Where], Statistics]


@dataclass(frozen=True)
class Bags:
    """How the rows of each tree are drawn; None draws: every tree sees all rows."""

    seed: int
    n_rows: int
    n_draws: int | None

    def counts(self, number: int) -> np.ndarray | None:
        """How often tree `number` has each row; host int32."""
        if self.n_draws is None:
            return None
        return bootstrap_counts(self.seed, number, self.n_rows, self.n_draws)


@dataclass(frozen=True)
class Grown:
    """A tree of the forest, as a model and, for predictions out of bag, on codes."""

    number: int
    forest: Forest
    codes: CodeTree | None
    values: np.ndarray | None


def grow_forest(
    prepared: Prepared,
    bags: Bags,
    numbers: Sequence[int],
    reweigh: Reweigh,
    n_jobs: int | None,
    keep_codes: bool,
) -> list[Grown]:
    """Trees `numbers`; `reweigh` may change the weights of the classes of a bag."""
    engine = prepared.engine
    threads = min(Run.of(n_jobs).threads, len(numbers)) if engine.name == "cpu" else 1
    own = engine_for(engine.where, 1) if threads > 1 else engine

    def grow(number: int) -> Grown:
        return _grow_one(own, prepared, bags, number, reweigh, keep_codes)

    if threads == 1:
        return [grow(number) for number in numbers]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(grow, numbers))


def _grow_one(
    engine: Engine, prepared: Prepared, bags: Bags, number: int,
    reweigh: Reweigh, keep_codes: bool,
) -> Grown:  # fmt: skip
    where = engine.where
    drawn = bags.counts(number)
    rows = counts = None
    if drawn is not None:
        rows = where.put(np.flatnonzero(drawn))
        counts = where.put(drawn.astype(np.int64))
    statistics = reweigh(prepared.statistics, drawn, where)
    grown, impurity = grow_tree(
        engine, prepared.matrix, statistics, prepared.plan, number, rows, counts
    )
    tree = to_forest(grown, impurity, prepared.matrix, statistics, prepared.categories.values)
    if not keep_codes:
        return Grown(number, tree, None, None)
    return Grown(number, tree, grown.code_tree(), statistics.values(grown.sums))


def out_of_bag(
    prepared: Prepared,
    bags: Bags,
    trees: Sequence[Grown],
    so_far: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[np.ndarray, np.ndarray]:
    """(sum of outputs [rows, outputs], number of trees [rows]) over trees that lack the row."""
    engine = prepared.engine
    where, xp, codes = engine.where, engine.where.xp, prepared.matrix.codes
    outputs = trees[0].forest.n_outputs
    start = so_far or (np.zeros((codes.n_rows, outputs)), np.zeros(codes.n_rows, dtype=np.int64))
    total, times = map(where.put, start)
    for tree in trees:
        drawn = bags.counts(tree.number)
        assert drawn is not None
        assert tree.codes is not None
        assert tree.values is not None
        out = where.put((drawn == 0).astype(np.int64))
        leaf = engine.leaves(codes, tree.codes)
        value = xp.take(where.put(tree.values), leaf, axis=0)
        total = total + value * where.as_float64(out)[:, None]
        times = times + out
    return where.host(total), where.host(times)
