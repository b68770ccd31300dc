"""The kept sums of tasks (pool.py): rows are added up by code, and taken from the parent's sums."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.trees.pair_runs import counting_of, pair
from ensemble_gpu.kernels.cpu.trees.pool import FETCHED, MINUS, SLOT, START, STOP
from ensemble_gpu.kernels.cpu.trees.rows import FEATURES
from ensemble_gpu.kernels.jit import inner

# A tile of no more features than this takes half the additions.
HALF = FEATURES // 2
# Tables that take turns where rows are counted.
TURNS = 4


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
def _unpack(table, shift, anew, own):
    """Write (`anew`) or add the sums table[code] = G 2^32 + H of a feature to `own`.

    The table is zero then.
    """
    firsts, seconds = own[0], own[1]
    if anew:
        for code in range(firsts.shape[0]):
            low = table[code] & np.int64(0xFFFFFFFF)
            firsts[code] = low << shift
            seconds[code] = (table[code] - low) >> np.int64(32)
            table[code] = 0
    else:
        for code in range(firsts.shape[0]):
            low = table[code] & np.int64(0xFFFFFFFF)
            firsts[code] += low << shift
            seconds[code] += (table[code] - low) >> np.int64(32)
            table[code] = 0


@inner
def _count_codes(words, n, lane, tables, own):
    """own[0, code] += how many of n rows have the code, in tables that take turns.

    Equal codes follow each other often, and a place cannot be added to twice at once. The tables
    are zero before and after.
    """
    rows, firsts = tables[: TURNS * 256], own[0]
    shift, mask = np.uint64(8 * lane), np.uint64(255)
    for t in range(np.uint64(n)):
        code = (words[t] >> shift) & mask
        rows[np.uint64(256) * (t % np.uint64(TURNS)) + code] += 1
    for turn in range(TURNS):
        for code in range(firsts.shape[0]):
            firsts[code] += rows[256 * turn + code]
            rows[256 * turn + code] = 0


@inner
def _add_packed(words, values, a, n, lanes, anew, own, tile, count, scratch):
    """Add n packed values, both halves at once; they are taken apart before they can overflow.

    `anew`: what is in `own` is overwritten.
    """
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
    for lane in range(lanes):
        f = FEATURES * tile + lane
        _unpack(scratch[256 * lane : 256 * (lane + 1)], counting_of(count, f).shift, anew, own[f])
    for k in range(256 * lanes, scratch.shape[0]):  # codes of no feature
        scratch[k] = 0
    for lane in range(lanes):
        f = FEATURES * tile + lane
        if counting_of(count, f).one == 1:
            _count_codes(words, n, lane, scratch, own[f])


@inner
def _add_pairs(words, label, values, a, n, count, flat, base, width):
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
            at = base + np.uint64(2 * lane) * width + code
            flat[at] += x
            flat[at + width] += y


@inner(forceinline=True)
def _add_up(rows, words, p, count, start, stop, lo, hi, anew, own, pool, worker):
    """Add rows start ... stop - 1 to tiles lo ... hi - 1 of the sums `own` of p features.

    `anew`: the sums begin with these rows.
    """
    order, label, values = rows.order, rows.label, rows.values
    block, scratch = pool.fetched[worker], pool.scratch[worker]
    flat, width = own.reshape(-1), np.uint64(own.shape[2])
    packed = label.shape[0] == 0 and values.shape[1] == 1 and count.ordered.one == 0
    if anew and (not packed or start == stop):
        tile_cells = FEATURES * 2 * own.shape[2]
        for k in range(tile_cells * lo, tile_cells * hi):
            flat[k] = 0
    for a in range(start, stop, FETCHED):
        n = min(FETCHED, stop - a)
        _fetch(words, order, a, n, lo, hi, block)
        for tile in range(lo, hi):
            if packed:
                lanes, first = min(FEATURES, p - FEATURES * tile), anew and a == start
                _add_packed(block[tile - lo], values, a, n, lanes, first, own, tile, count, scratch)
            else:
                base = np.uint64(2 * FEATURES * tile) * width
                _add_pairs(block[tile - lo], label, values, a, n, count.ordered, flat, base, width)


@inner
def _take_away(whole, part, from_, to):
    """whole -= part, cells from_ ... to - 1 of both."""
    for k in range(from_, to):
        whole[k] -= part[k]


@inner(forceinline=True)
def build(rows, words, p, count, task, lo, hi, pool, worker):
    """Tiles lo ... hi - 1 of the sums of a task, and of what they leave to the larger sibling."""
    own = pool.cells[task[SLOT]]
    _add_up(rows, words, p, count, task[START], task[STOP], lo, hi, True, own, pool, worker)
    if task[MINUS] >= 0:
        tile_cells, whole = FEATURES * 2 * own.shape[2], pool.cells[task[MINUS]].reshape(-1)
        _take_away(whole, own.reshape(-1), tile_cells * lo, tile_cells * hi)


@inner(forceinline=True)
def _add_chunks(worker, first, last, i, n_tiles, p, count, rows, words, pool):
    """Chunks first ... last - 1 of the rows of task i, to the sums of the worker."""
    start, stop = pool.tasks[i, START], pool.tasks[i, STOP]
    a, b = start + FETCHED * first, min(start + FETCHED * last, stop)
    _add_up(rows, words, p, count, a, b, 0, n_tiles, False, pool.partial[worker], pool, worker)


@inner
def _join(worker, lo, hi, i, pool):
    """Tiles lo ... hi - 1 of task i from what the workers have added up, which is zero then."""
    task, partial = pool.tasks[i], pool.partial
    own = pool.cells[task[SLOT]]
    flat, tile_cells = own.reshape(-1), FEATURES * 2 * own.shape[2]
    from_, to = tile_cells * lo, tile_cells * hi
    for other in range(partial.shape[0]):
        part = partial[other].reshape(-1)
        for k in range(from_, to):
            flat[k] = part[k] + (flat[k] if other > 0 else np.int64(0))
            part[k] = 0
    if task[MINUS] >= 0:
        _take_away(pool.cells[task[MINUS]].reshape(-1), flat, from_, to)


@inner(forceinline=True)
def build_together(crew, i, n_tiles, p, count, rows, words, pool):
    """Sums of a large task: workers share its rows, and each has sums of its own."""
    chunks = -(-(pool.tasks[i, STOP] - pool.tasks[i, START]) // FETCHED)
    share(crew, chunks, _add_chunks, (i, n_tiles, p, count, rows, words, pool))
    share(crew, n_tiles, _join, (i, pool))
