"""The best splits of the nodes that have kept sums (pool.py).

Workers share tasks, or the tiles of few tasks: each part of the tiles has a best split of its own,
the best of them is the node's (of equal scores the first feature's).
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.trees.kept_bounds import may_win
from ensemble_gpu.kernels.cpu.trees.meetings import n_listed
from ensemble_gpu.kernels.cpu.trees.pair_categories import categories_of, offer_to
from ensemble_gpu.kernels.cpu.trees.pair_runs import Tally, counting_of, kept_runs, work_of
from ensemble_gpu.kernels.cpu.trees.pair_scores import judge_of, pair_node
from ensemble_gpu.kernels.cpu.trees.pool import MINUS, SLOT, SMALLER, START, STOP
from ensemble_gpu.kernels.cpu.trees.pool_sums import build, build_together
from ensemble_gpu.kernels.cpu.trees.rows import FEATURES
from ensemble_gpu.kernels.host.records import RECORD
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.tree_protocol import NEVER

# From so many tasks for each worker on, the tiles of a task are not shared.
ENOUGH = 4
# Rows a worker from which those of a task are shared: each has sums of its own, which are joined.
LARGE = 4096


@inner
def _search(
    rule, count, rows, batch, own, at, cells, lo, hi, p, first, parts, part, found, work, categories
):
    """The best split of the node at place `at` on tiles lo ... hi - 1, to entry first + part.

    `own`: its row of features. Entries first ... first + parts - 1 are those of all parts: what is
    below the best of another part is passed over. Whether its score is seen in time changes
    nothing: the best of the node is never passed over, nor what ties with it.
    """
    features, node, judge = batch.features, pair_node(batch, at), judge_of(rule, count.ordered)
    tally, width = Tally(rows.codes, rows.order, batch.start[at], batch.stop[at]), rows.width
    n, start, stop, best = n_listed(features, own), FEATURES * lo, min(FEATURES * hi, p), NEVER
    drawn, i = n < p, first + part
    for c in range(RECORD):
        found.record[i, c] = -1
    for j in range(n if drawn else stop - start):
        f = features[own, j] if drawn else start + j
        if f < start or f >= stop:
            continue
        counting, bar = counting_of(count, f), NEVER
        for other in range(first, first + parts):
            bar = max(bar, found.score[other])
        if rule.categorical[f] or may_win(judge, counting, cells[f], node, bar, work):
            m = kept_runs(cells[f], counting, work.runs)
            best = offer_to(
                judge, rule, f, m, node, batch, at, width, i, best, found, work, categories, tally
            )
            found.score[i] = best


@inner
def _search_siblings(i, part, lo, hi, parts, p, rule, count, rows, batch, pool, work, categories):
    """The best splits of the siblings of task i on tiles lo ... hi - 1."""
    task = pool.tasks[i]
    for side in range(2):
        at, slot = task[SMALLER + side], task[MINUS] if side == 1 else task[SLOT]
        if at >= 0:
            first, own = (2 * i + side) * parts, at if batch.features.shape[0] > 1 else 0
            _search(
                rule, count, rows, batch, own, at, pool.cells[slot], lo, hi, p, first, parts, part,
                pool.found, work, categories,
            )  # fmt: skip


@inner(forceinline=True)
def _work_on(
    worker, start, stop, n, parts, large, n_tiles, p, rule, count, rows, words, batch, pool, works,
    several,
):  # fmt: skip
    """Units start ... stop - 1: part u // n of the tiles of task u % n.

    Nodes are searched while their sums are in the cache; those of large tasks are there already.
    """
    work, categories = work_of(works, worker), categories_of(several, worker)
    for u in range(start, stop):
        i, part = u % n, u // n
        task, lo, hi = pool.tasks[i], n_tiles * part // parts, n_tiles * (part + 1) // parts
        if task[STOP] - task[START] < large:
            build(rows, words, p, count, task, lo, hi, pool, worker)
        _search_siblings(
            i, part, lo, hi, parts, p, rule, count, rows, batch, pool, work, categories
        )


@inner
def copy_split(source, i, target, k):
    """Entry i of some splits to place k of others."""
    target.score[k] = source.score[i]
    for c in range(RECORD):
        target.record[k, c] = source.record[i, c]
    for c in range(target.left.shape[1]):
        target.left[k, c] = source.left[i, c]
    for c in range(target.subset.shape[1]):
        target.subset[k, c] = source.subset[i, c]


@inner
def _take_best(own, first, parts, found, at):
    """The best of a node's parts, to its place."""
    best = first
    for i in range(first + 1, first + parts):
        if own.score[i] > own.score[best]:
            best = i
    copy_split(own, best, found, at)


@inner(forceinline=True)
def search_pool(
    crew, n_tasks, n_tiles, p, rule, count, rows, words, m, batch, found, pool, works, several
):
    """Sums and best splits of the nodes of a block that `plan` has given a slot.

    Of few tasks workers share the rows of large ones, and the tiles of others: every part of them
    fetches all rows of its task.
    """
    parts, large = np.int64(1), np.int64(rows.order.shape[0] + 1)
    if crew[0] > 1 and n_tasks < ENOUGH * crew[0]:
        parts, large = min(n_tiles, crew[0]), LARGE * crew[0]
    for entry in range(2 * n_tasks * parts):
        pool.found.score[entry] = NEVER
    for i in range(n_tasks):
        if pool.tasks[i, STOP] - pool.tasks[i, START] >= large:
            build_together(crew, i, n_tiles, p, count, rows, words, pool)
    share(
        crew, n_tasks * parts, _work_on,
        (n_tasks, parts, large, n_tiles, p, rule, count, rows, words, batch, pool, works, several),
    )  # fmt: skip
    for at in range(m):
        if pool.route[at] >= 0:
            _take_best(pool.found, pool.route[at] * parts, parts, found, at)


@inner(forceinline=True)
def search_again(n_tiles, p, rule, count, rows, nodes, which, batch, found, pool, works, several):
    """The nodes `which` that have a slot, on other features."""
    work, categories = work_of(works, 0), categories_of(several, 0)
    for k in range(which.shape[0]):
        at = which[k]
        if pool.route[at] >= 0:
            i, own = pool.route[at], k if batch.features.shape[0] > 1 else 0
            cells, pool.found.score[i] = pool.cells[pool.slot[nodes[at]]], NEVER
            _search(
                rule, count, rows, batch, own, at, cells, 0, n_tiles, p, i, 1, 0, pool.found, work,
                categories,
            )  # fmt: skip
            copy_split(pool.found, i, found, at)
