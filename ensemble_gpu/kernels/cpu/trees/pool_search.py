"""The best splits of the nodes that have kept sums (pool.py).

Tasks and tiles of eight features are shared among the workers; every tile has a best split of its
own, the best of them is the node's (of equal scores the first feature's).
"""

from __future__ import annotations

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.trees.meetings import n_listed
from ensemble_gpu.kernels.cpu.trees.pair_categories import categories_of, offer_to
from ensemble_gpu.kernels.cpu.trees.pair_runs import Tally, counting_of, kept_runs, work_of
from ensemble_gpu.kernels.cpu.trees.pair_scores import judge_of, pair_node
from ensemble_gpu.kernels.cpu.trees.pool import MINUS, SLOT, SMALLER
from ensemble_gpu.kernels.cpu.trees.pool_sums import build, build_together
from ensemble_gpu.kernels.cpu.trees.rows import FEATURES
from ensemble_gpu.kernels.host.records import RECORD
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.tree_protocol import NEVER

# Tasks a worker that need not be shared.
ENOUGH = 4


@inner
def _search(rule, count, rows, batch, own, at, cells, lo, hi, p, first, found, work, categories):
    """Best splits of the node at place `at` on tiles lo ... hi - 1; `own`: its row of features."""
    features, node, judge = batch.features, pair_node(batch, at), judge_of(rule, count.ordered)
    tally, width = Tally(rows.codes, rows.order, batch.start[at], batch.stop[at]), rows.width
    n = n_listed(features, own)
    drawn = n < p
    for tile in range(lo, hi):
        i, best, start = first + tile, NEVER, FEATURES * tile
        for c in range(RECORD):
            found.record[i, c] = -1
        for j in range(n if drawn else min(FEATURES, p - start)):
            f = features[own, j] if drawn else start + j
            if drawn and (f < start or f >= start + FEATURES):
                continue
            m = kept_runs(cells[f], counting_of(count, f), work.runs)
            best = offer_to(
                judge, rule, f, m, node, batch, at, width, i, best, found, work, categories, tally
            )
        found.score[i] = best


@inner
def _search_sibling(i, side, lo, hi, n_tiles, p, rule, count, rows, batch, pool, work, categories):
    """Best splits of a sibling of task i, if there is one, on tiles lo ... hi - 1."""
    task = pool.tasks[i]
    at, slot = task[SMALLER + side], task[MINUS] if side == 1 else task[SLOT]
    if at >= 0:
        first, own = (2 * i + side) * n_tiles, at if batch.features.shape[0] > 1 else 0
        _search(
            rule, count, rows, batch, own, at, pool.cells[slot], lo, hi, p, first, pool.found,
            work, categories,
        )  # fmt: skip


@inner(forceinline=True)
def _search_units(
    worker, start, stop, n, n_tiles, p, rule, count, rows, batch, pool, works, several
):
    """Units start ... stop - 1: tile u // 2n of sibling u % 2 of task u // 2 % n."""
    work, categories = work_of(works, worker), categories_of(several, worker)
    for u in range(start, stop):
        tile, i, side = u // (2 * n), u // 2 % n, u % 2
        _search_sibling(
            i, side, tile, tile + 1, n_tiles, p, rule, count, rows, batch, pool, work, categories
        )


@inner(forceinline=True)
def _work_on(
    worker, start, stop, n_tiles, p, rule, count, rows, words, batch, pool, works, several
):
    """Tasks start ... stop - 1: nodes are searched while their sums are in the cache."""
    work, categories = work_of(works, worker), categories_of(several, worker)
    for i in range(start, stop):
        build(rows, words, p, count, pool.tasks[i], 0, n_tiles, pool, worker)
        for side in range(2):
            _search_sibling(
                i, side, 0, n_tiles, n_tiles, p, rule, count, rows, batch, pool, work, categories
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
def _take_best(pool, n_tiles, at, i, found):
    """The best of a node's tiles, to its place."""
    own = pool.found
    best = i
    for tile in range(1, n_tiles):
        if own.score[i + tile] > own.score[best]:
            best = i + tile
    copy_split(own, best, found, at)


@inner(forceinline=True)
def search_pool(
    crew, n_tasks, n_tiles, p, rule, count, rows, words, m, batch, found, pool, works, several
):
    """Sums and best splits of the nodes of a block that `plan` has given a slot."""
    if crew[0] > 1 and n_tasks < ENOUGH * crew[0]:
        build_together(crew, n_tasks, n_tiles, p, count, rows, words, pool)
        share(
            crew, 2 * n_tasks * n_tiles, _search_units,
            (n_tasks, n_tiles, p, rule, count, rows, batch, pool, works, several),
        )  # fmt: skip
    else:
        share(
            crew, n_tasks, _work_on,
            (n_tiles, p, rule, count, rows, words, batch, pool, works, several),
        )  # fmt: skip
    for at in range(m):
        if pool.route[at] >= 0:
            _take_best(pool, n_tiles, at, pool.route[at] * n_tiles, found)


@inner(forceinline=True)
def search_again(n_tiles, p, rule, count, rows, nodes, which, batch, found, pool, works, several):
    """The nodes `which` that have a slot, on other features."""
    work, categories = work_of(works, 0), categories_of(several, 0)
    for k in range(which.shape[0]):
        at = which[k]
        if pool.route[at] >= 0:
            i, own = pool.route[at] * n_tiles, k if batch.features.shape[0] > 1 else 0
            cells = pool.cells[pool.slot[nodes[at]]]
            _search(
                rule, count, rows, batch, own, at, cells, 0, n_tiles, p, i, pool.found, work,
                categories,
            )  # fmt: skip
            _take_best(pool, n_tiles, at, i, found)
