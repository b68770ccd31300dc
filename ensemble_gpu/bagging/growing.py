"""The trees of a random forest: bags of rows, a tree each, predictions out of bag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.bagging.draws import bootstrap_counts
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.trees.build import grow_tree, to_forest
from ensemble_gpu.trees.fitting import Prepared
from ensemble_gpu.trees.statistics import Statistics

# Leaves [rows, trees] that predictions out of bag look up at once: bounds their memory.
MOST_LEAVES = 1 << 22

# (statistics, how often each row was drawn, where they are) -> the statistics of one tree
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


def grow_forest(
    prepared: Prepared, bags: Bags, numbers: Sequence[int], reweigh: Reweigh, n_jobs: int | None
) -> list[Forest]:
    """Trees `numbers`; `reweigh` may change the weights of the classes of a bag."""
    engine = prepared.engine
    threads = min(Run.of(n_jobs).threads, len(numbers)) if engine.name == "cpu" else 1
    own = engine_for(engine.where, 1) if threads > 1 else engine

    def grow(number: int) -> Forest:
        return _grow_one(own, prepared, bags, number, reweigh)

    if threads == 1:
        return [grow(number) for number in numbers]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(grow, numbers))


def _grow_one(
    engine: Engine, prepared: Prepared, bags: Bags, number: int, reweigh: Reweigh
) -> Forest:
    where = engine.where
    drawn = bags.counts(number)
    rows = counts = None
    if drawn is not None:
        rows = where.put(np.flatnonzero(drawn))
        counts = where.put(drawn.astype(np.int64))
    statistics = reweigh(prepared.statistics, counts, where)
    grown, impurity = grow_tree(
        engine, prepared.matrix, statistics, prepared.plan, number, rows, counts
    )
    return to_forest(grown, impurity, prepared.matrix, statistics, prepared.categories.values)


def out_of_bag(
    prepared: Prepared, bags: Sequence[Bags], forest: Forest
) -> tuple[np.ndarray, np.ndarray]:
    """(sum of outputs [rows, outputs], number of trees [rows]) over trees that lack the row.

    Trees see values here, not codes: what they say of a row is what the model says of it, also
    where a threshold lies within a bin that had no rows in its node.
    """
    engine, X, kept = prepared.engine, prepared.X, prepared.kept
    where, xp = engine.where, engine.where.xp
    X = X if kept is None else xp.take(X, where.put(kept), axis=0)
    values = where.put(forest.nodes.value)
    total = where.zeros((X.shape[0], forest.n_outputs), xp.float64)
    times = where.zeros(X.shape[0], xp.int64)
    step = max(1, MOST_LEAVES // X.shape[0])
    for start in range(0, len(forest), step):
        part = replace(forest.packed, roots=forest.starts[start : start + step])
        leaves = engine.apply_forest(X, part)
        for tree in range(start, start + leaves.shape[1]):
            drawn = bags[tree].counts(tree)
            if drawn is None:
                continue
            out = where.put((drawn == 0).astype(np.int64))
            value = xp.take(values, leaves[:, tree - start], axis=0)
            total = total + value * where.as_float64(out)[:, None]
            times = times + out
    return where.host(total), where.host(times)
