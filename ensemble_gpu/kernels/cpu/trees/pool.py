"""Sums of large nodes, kept for their children: those of one child come from its sibling's.

A task is a pair of siblings, or the root: the smaller one's rows are added up, what they leave of
the parent's sums is the larger one's, and both are searched while their sums are in the cache.
Tasks and tiles of eight features are shared among the workers; every tile has a best split of its
own, the best of them is the node's (of equal scores the first feature's).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.memory import scratch_array
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.trees.meetings import n_listed
from ensemble_gpu.kernels.cpu.trees.pair_runs import Tally, general_of, kept_runs, pair, work_of
from ensemble_gpu.kernels.cpu.trees.pair_scores import judge_of, offer_to, pair_node
from ensemble_gpu.kernels.cpu.trees.rows import FEATURES
from ensemble_gpu.kernels.host.records import RECORD, FoundArrays
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.tree_protocol import NEVER

# Rows whose codes are fetched at once: they stay in the second-level cache while tiles take turns.
# FETCHED times 2^PACK_BITS < 2^31: neither half of the sums of packed values can overflow.
FETCHED = 4096
# A tile of no more features than this takes half the additions.
HALF = FEATURES // 2
# Tasks a worker that need not be shared.
ENOUGH = 4
# Rows a worker from which those of a task are shared: each has sums of its own, which are joined.
LARGE = 4096
# Sums are kept where at least one in so many features is tried.
TRIED = 4
# Columns of a task: rows start ... stop - 1 are added up in `slot` and taken from slot `minus` (-1:
# from none); `small` and `large` are the nodes' places in the block (-1: not looked at).
START, STOP, SLOT, MINUS, SMALLER, LARGER, TASK = range(7)


class Pool(NamedTuple):
    """Sums cells[slot, feature, code] = (x 2^shift + rows, y); see `Counting`.

    `free[:n_free[0]]` are the slots that nobody has; slot[node] is a node's (-1: none),
    inherited[node] what a left child may have of its parent. `route[place]` says which of the
    found belong to a node of the block (-1: none, its rows are searched). `found` has an entry for
    every task, sibling and tile. `fetched`, `scratch` and `partial`, sums of its share of a task
    (zero before and after), are a worker's.
    """

    cells: np.ndarray
    free: np.ndarray
    n_free: np.ndarray
    slot: np.ndarray
    inherited: np.ndarray
    route: np.ndarray
    tasks: np.ndarray
    found: FoundArrays
    fetched: np.ndarray
    scratch: np.ndarray
    partial: np.ndarray
    keep_rows: int


def pool_for(
    cells: np.ndarray, n_nodes: int, block: int, found: FoundArrays, workers: int, keep_rows: int
) -> Pool:
    n_slots, n_tiles = len(cells), cells.shape[1] // FEATURES
    return Pool(
        cells,
        np.arange(n_slots - 1, -1, -1),
        np.array([n_slots]),
        scratch_array((n_nodes,), np.int64),
        scratch_array((n_nodes,), np.int64),
        np.empty(block, dtype=np.int64),
        np.empty((n_slots, TASK), dtype=np.int64),
        found,
        np.empty((workers, n_tiles, FETCHED), dtype=np.uint64),
        np.empty((workers, FEATURES * 256), dtype=np.int64),
        np.zeros((workers if workers > 1 else 0, *cells.shape[1:]), dtype=np.int64),
        keep_rows,
    )


@inner
def release(pool, slot):
    """Nobody needs the slot any more."""
    pool.free[pool.n_free[0]] = slot
    pool.n_free[0] += 1


@inner
def _claim(pool):
    pool.n_free[0] -= 1
    return pool.free[pool.n_free[0]]


@inner(forceinline=True)
def release_unclaimed(pool, first, stop):
    """Nodes first ... stop - 1 were looked at; no child asked for some sums."""
    for node in range(first, stop):
        if pool.inherited[node] >= 0:
            release(pool, pool.inherited[node])
            pool.inherited[node] = -1


@inner(forceinline=True)
def plan(pool, nodes, m, ranges, features, p):
    """Tasks for the sums of the large ones among the m nodes of a block; how many.

    Sums are of all p features: a node that tries few of them (TRIED) goes without.
    """
    tasks, route, slots, inherited = pool.tasks, pool.route, pool.slot, pool.inherited
    starts, stops, keep_rows = ranges[0], ranges[1], pool.keep_rows
    n, i = 0, 0
    while i < m:
        left = nodes[i] - (nodes[i] + 1) % 2 if nodes[i] > 0 else nodes[i]
        # places of the siblings in the block; -1: not there
        a, b = np.int64(-1), np.int64(-1)
        if nodes[i] == left:
            a = i
            i += 1
        if left > 0 and i < m and nodes[i] == left + 1:
            b = i
            i += 1
        kept, inherited[left] = inherited[left], -1
        small, large, smaller, larger = a, b, left, left + 1
        if left == 0 or stops[left] - starts[left] > stops[larger] - starts[larger]:
            small, large, smaller, larger = b, a, left + 1, left
        if small >= 0:
            route[small], slots[smaller] = -1, -1
        if large >= 0:
            route[large], slots[larger] = -1, -1
        enough = large >= 0 and stops[larger] - starts[larger] >= keep_rows
        if enough:
            own = large if features.shape[0] > 1 else 0
            enough = TRIED * n_listed(features, own) >= p
        # the larger one alone from its rows, or both from the smaller one's
        alone = enough and kept < 0 and pool.n_free[0] > 0
        both = enough and kept >= 0 and pool.n_free[0] > 0
        if alone or both:
            slot = _claim(pool)
            added = smaller if both else larger
            tasks[n, START], tasks[n, STOP] = starts[added], stops[added]
            tasks[n, SLOT], tasks[n, MINUS] = slot, kept
            tasks[n, SMALLER], tasks[n, LARGER] = small if both else large, large if both else -1
            route[large], slots[larger] = 2 * n + both, kept if both else slot
            if both and small >= 0:
                route[small], slots[smaller] = 2 * n, slot
            n += 1
        elif kept >= 0:
            release(pool, kept)
    return n


@inner(forceinline=True)
def release_borrowed(pool, n):
    """Slots that served only to make a larger sibling's sums."""
    for i in range(n):
        if pool.tasks[i, SMALLER] < 0:
            release(pool, pool.tasks[i, SLOT])


@inner
def _fetch(words, order, a, n, lo, hi, block):
    """Codes of rows a ... a + n - 1, tile by tile.

    One read after the other, they miss the cache side by side; two tiles at once, as often as not
    in one cache line.
    """
    start, tile = np.uint64(a), lo
    while tile + 1 < hi:
        one, two, x, y = (
            np.uint64(tile),
            np.uint64(tile + 1),
            block[tile - lo],
            block[tile + 1 - lo],
        )
        for t in range(np.uint64(n)):
            row = np.uint64(order[start + t])
            x[t], y[t] = words[row, one], words[row, two]
        tile += 2
    if tile < hi:
        one, x = np.uint64(tile), block[tile - lo]
        for t in range(np.uint64(n)):
            x[t] = words[np.uint64(order[start + t]), one]


@inner
def _add_packed_tile(scratch, lanes, tile, sums):
    """Add the sums of a tile, scratch[256 lane + code] = G 2^32 + H."""
    for lane in range(lanes):
        own = sums[FEATURES * tile + lane]
        for code in range(own.shape[0]):
            value = scratch[256 * lane + code]
            low = value & np.int64(0xFFFFFFFF)
            own[code, 0] += low
            own[code, 1] += (value - low) >> np.int64(32)


@inner
def _add_packed(words, values, a, n, lanes, own, tile, scratch):
    """Add n packed values, both halves at once; they are taken apart before they can overflow."""
    for k in range(scratch.shape[0]):
        scratch[k] = 0
    start, zero = np.uint64(a), np.uint64(0)
    if lanes > HALF:
        for t in range(np.uint64(n)):
            word, value = words[t], values[start + t, zero]
            for lane in range(FEATURES):
                code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                scratch[np.uint64(256 * lane) + code] += value
    else:
        for t in range(np.uint64(n)):
            word, value = words[t], values[start + t, zero]
            for lane in range(HALF):
                code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                scratch[np.uint64(256 * lane) + code] += value
    _add_packed_tile(scratch, lanes, tile, own)


@inner
def _add_pairs(words, label, values, a, n, count, flat, base, stride):
    """Add n rows: class weights or moments, and rows where they are counted."""
    labelled, shift, one = label.shape[0] > 0, count.shift, np.int64(count.one)
    start, zero = np.uint64(a), np.uint64(0)
    for t in range(np.uint64(n)):
        word = words[t]
        if labelled:
            w = values[start + t, zero]
            y = w if label[start + t] != 0 else np.int64(0)
            x = w - y
        else:
            x, y = pair(values, start + t)
        x = (x << shift) + one
        for lane in range(FEATURES):
            code = (word >> np.uint64(8 * lane)) & np.uint64(255)
            at = base + np.uint64(lane) * stride + code + code
            flat[at] += x
            flat[at + np.uint64(1)] += y


@inner(forceinline=True)
def _add_up(rows, words, p, count, start, stop, lo, hi, own, pool, worker):
    """Add rows start ... stop - 1 to tiles lo ... hi - 1 of the sums `own` of p features."""
    order, label, values = rows.order, rows.label, rows.values
    block, scratch = pool.fetched[worker], pool.scratch[worker]
    flat, stride = own.reshape(-1), np.uint64(2 * own.shape[1])
    packed = label.shape[0] == 0 and values.shape[1] == 1 and count.one == 0
    for a in range(start, stop, FETCHED):
        n = min(FETCHED, stop - a)
        _fetch(words, order, a, n, lo, hi, block)
        for tile in range(lo, hi):
            if packed:
                lanes = min(FEATURES, p - FEATURES * tile)
                _add_packed(block[tile - lo], values, a, n, lanes, own, tile, scratch)
            else:
                base = np.uint64(FEATURES * tile) * stride
                _add_pairs(block[tile - lo], label, values, a, n, count, flat, base, stride)


@inner
def _take_away(whole, part, from_, to):
    """whole -= part, cells from_ ... to - 1 of both."""
    for k in range(from_, to):
        whole[k] -= part[k]


@inner(forceinline=True)
def _build(rows, words, p, count, task, lo, hi, pool, worker):
    """Tiles lo ... hi - 1 of the sums of a task, and of what they leave to the larger sibling."""
    own = pool.cells[task[SLOT]]
    flat, tile_cells = own.reshape(-1), FEATURES * 2 * own.shape[1]
    for k in range(tile_cells * lo, tile_cells * hi):
        flat[k] = 0
    _add_up(rows, words, p, count, task[START], task[STOP], lo, hi, own, pool, worker)
    if task[MINUS] >= 0:
        whole = pool.cells[task[MINUS]].reshape(-1)
        _take_away(whole, flat, tile_cells * lo, tile_cells * hi)


@inner(forceinline=True)
def _add_chunks(worker, first, last, i, n_tiles, p, count, rows, words, pool):
    """Chunks first ... last - 1 of the rows of task i, to the sums of the worker."""
    start, stop = pool.tasks[i, START], pool.tasks[i, STOP]
    a, b = start + FETCHED * first, min(start + FETCHED * last, stop)
    _add_up(rows, words, p, count, a, b, 0, n_tiles, pool.partial[worker], pool, worker)


@inner
def _join(worker, lo, hi, i, pool):
    """Tiles lo ... hi - 1 of task i from what the workers have added up, which is zero then."""
    task, partial = pool.tasks[i], pool.partial
    own = pool.cells[task[SLOT]]
    flat, tile_cells = own.reshape(-1), FEATURES * 2 * own.shape[1]
    from_, to = tile_cells * lo, tile_cells * hi
    for other in range(partial.shape[0]):
        part = partial[other].reshape(-1)
        for k in range(from_, to):
            flat[k] = part[k] + (flat[k] if other > 0 else np.int64(0))
            part[k] = 0
    if task[MINUS] >= 0:
        _take_away(pool.cells[task[MINUS]].reshape(-1), flat, from_, to)


@inner(forceinline=True)
def _build_units(worker, start, stop, n, parts, large, n_tiles, p, count, rows, words, pool):
    """Units start ... stop - 1: part u // n of the tiles of task u % n, if it is not large."""
    for u in range(start, stop):
        task, part = pool.tasks[u % n], u // n
        if task[STOP] - task[START] < large:
            lo, hi = n_tiles * part // parts, n_tiles * (part + 1) // parts
            _build(rows, words, p, count, task, lo, hi, pool, worker)


@inner(forceinline=True)
def _build_together(crew, n_tasks, n_tiles, p, count, rows, words, pool):
    """Sums of few tasks: workers share the rows of large ones, of small ones the tiles.

    Of those, every part fetches all rows of its task.
    """
    parts, large = min(n_tiles, crew[0]), LARGE * crew[0]
    for i in range(n_tasks):
        n = pool.tasks[i, STOP] - pool.tasks[i, START]
        if n >= large:
            chunks = -(-n // FETCHED)
            share(crew, chunks, _add_chunks, (i, n_tiles, p, count, rows, words, pool))
            share(crew, n_tiles, _join, (i, pool))
    share(
        crew, n_tasks * parts, _build_units,
        (n_tasks, parts, large, n_tiles, p, count, rows, words, pool),
    )  # fmt: skip


@inner
def _search(rule, count, rows, batch, own, at, cells, lo, hi, p, first, found, work, general):
    """Best splits of the node at place `at` on tiles lo ... hi - 1; `own`: its row of features."""
    features, node, judge = batch.features, pair_node(batch, at), judge_of(rule, count)
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
            m = kept_runs(cells[f], count, work.runs)
            best = offer_to(
                judge, rule, f, m, node, batch, at, width, i, best, found, work, general, tally
            )
        found.score[i] = best


@inner
def _search_sibling(i, side, lo, hi, n_tiles, p, rule, count, rows, batch, pool, work, general):
    """Best splits of a sibling of task i, if there is one, on tiles lo ... hi - 1."""
    task = pool.tasks[i]
    at, slot = task[SMALLER + side], task[MINUS] if side == 1 else task[SLOT]
    if at >= 0:
        first, own = (2 * i + side) * n_tiles, at if batch.features.shape[0] > 1 else 0
        _search(
            rule, count, rows, batch, own, at, pool.cells[slot], lo, hi, p, first, pool.found,
            work, general,
        )  # fmt: skip


@inner(forceinline=True)
def _search_units(
    worker, start, stop, n, n_tiles, p, rule, count, rows, batch, pool, works, generals
):
    """Units start ... stop - 1: tile u // 2n of sibling u % 2 of task u // 2 % n."""
    work, general = work_of(works, worker), general_of(generals, worker)
    for u in range(start, stop):
        tile, i, side = u // (2 * n), u // 2 % n, u % 2
        _search_sibling(
            i, side, tile, tile + 1, n_tiles, p, rule, count, rows, batch, pool, work, general
        )


@inner(forceinline=True)
def _work_on(
    worker, start, stop, n_tiles, p, rule, count, rows, words, batch, pool, works, generals
):
    """Tasks start ... stop - 1: nodes are searched while their sums are in the cache."""
    work, general = work_of(works, worker), general_of(generals, worker)
    for i in range(start, stop):
        _build(rows, words, p, count, pool.tasks[i], 0, n_tiles, pool, worker)
        for side in range(2):
            _search_sibling(
                i, side, 0, n_tiles, n_tiles, p, rule, count, rows, batch, pool, work, general
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
    crew, n_tasks, n_tiles, p, rule, count, rows, words, m, batch, found, pool, works, generals
):
    """Sums and best splits of the nodes of a block that `plan` has given a slot."""
    if crew[0] > 1 and n_tasks < ENOUGH * crew[0]:
        _build_together(crew, n_tasks, n_tiles, p, count, rows, words, pool)
        share(
            crew, 2 * n_tasks * n_tiles, _search_units,
            (n_tasks, n_tiles, p, rule, count, rows, batch, pool, works, generals),
        )  # fmt: skip
    else:
        share(
            crew, n_tasks, _work_on,
            (n_tiles, p, rule, count, rows, words, batch, pool, works, generals),
        )  # fmt: skip
    for at in range(m):
        if pool.route[at] >= 0:
            _take_best(pool, n_tiles, at, pool.route[at] * n_tiles, found)


@inner(forceinline=True)
def search_again(n_tiles, p, rule, count, rows, nodes, which, batch, found, pool, works, generals):
    """The nodes `which` that have a slot, on other features."""
    work, general = work_of(works, 0), general_of(generals, 0)
    for k in range(which.shape[0]):
        at = which[k]
        if pool.route[at] >= 0:
            i, own = pool.route[at] * n_tiles, k if batch.features.shape[0] > 1 else 0
            cells = pool.cells[pool.slot[nodes[at]]]
            _search(
                rule, count, rows, batch, own, at, cells, 0, n_tiles, p, i, pool.found, work,
                general,
            )  # fmt: skip
            _take_best(pool, n_tiles, at, i, found)
