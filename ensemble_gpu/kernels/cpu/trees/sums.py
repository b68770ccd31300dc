"""Sums of nodes per feature and code.

Codes lie row by row, so that a row of a deep node costs one cache line whatever features are tried.
Rows come in blocks that stay in the cache while some features add them up. Two statistics of rows
with one-byte codes are added up eight codes a word, for which there are three kernels: of classes,
of two moments, and of moments that are packed in one integer (`TreeEngine.moments`).
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import FEATURES, ROWS
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import PACK_BITS

# Neither half of the sums of so many packed values can overflow.
PACK_ROWS = (1 << (31 - PACK_BITS)) - 1


@inner
def add(rows, a, b, f, counted, sums, seen):
    """sums[code, column] += what rows a ... b - 1 add: class weights or moments, then rows."""
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    n_stats = values.shape[1]
    last = np.uint64(sums.shape[1] - 1)
    if label.shape[0] > 0:
        for t in range(a, b):
            code = codes[order[t], f]
            seen[code] = 1
            sums[code, label[t]] += values[t, 0]
            if counted:
                sums[code, last] += 1
    elif n_stats == 2 and not counted:
        for t in range(a, b):
            code = codes[order[t], f]
            seen[code] = 1
            sums[code, 0] += values[t, 0]
            sums[code, 1] += values[t, 1]
    else:
        for t in range(a, b):
            code = codes[order[t], f]
            seen[code] = 1
            for s in range(n_stats):
                sums[code, s] += values[t, s]
            if counted:
                sums[code, last] += 1


@inner
def _clear(sums, lo, hi):
    for f in range(lo, hi):
        for b in range(sums.shape[1]):
            for c in range(sums.shape[2]):
                sums[f, b, c] = 0


@inner
def _subtract(whole, part, lo, hi):
    for f in range(lo, hi):
        for b in range(whole.shape[1]):
            for c in range(whole.shape[2]):
                whole[f, b, c] -= part[f, b, c]


@kernel
def add_up(rows, counted, tasks, pool, lo, hi):
    """Features lo ... hi - 1 of the sums pool[slot] of nodes; see Tasks."""
    seen = np.empty(pool.shape[2], dtype=np.uint8)
    for i in range(tasks.start.shape[0]):
        own, stop = pool[tasks.slot[i]], tasks.stop[i]
        _clear(own, lo, hi)
        for g in range(lo, hi, FEATURES):
            for a in range(tasks.start[i], stop, ROWS):
                for f in range(g, min(g + FEATURES, hi)):
                    add(rows, a, min(a + ROWS, stop), np.uint64(f), counted, own[f], seen)
        if tasks.minus[i] >= 0:
            _subtract(pool[tasks.minus[i]], own, lo, hi)


@kernel
def node_sums(rows, counted, starts, stops, features, out):
    """out[node, tried, code, column]: sums of rows starts[i] ... of features [node, tried]."""
    seen = np.empty(out.shape[2], dtype=np.uint8)
    for i in range(starts.shape[0]):
        own = i if features.shape[0] > 1 else 0
        for j in range(features.shape[1]):
            f = np.uint64(features[own, j])
            add(rows, starts[i], stops[i], f, counted, out[i, j], seen)


@inner
def _fetch(rows, a, n, lo, block):
    """Codes of rows a ... a + n - 1, tile by tile.

    One read after the other, they miss the cache side by side; a block stays in the second-level
    cache while the tiles take their turns.
    """
    words, order = rows.codes, rows.order
    for t in range(n):
        row = order[a + t]
        for tile in range(block.shape[0]):
            block[tile, t] = words[row, lo + tile]


@inner
def _add_scratch(scratch, tile, sums):
    """Add the sums of a tile, scratch[512 lane + 2 code + statistic]."""
    for lane in range(min(FEATURES, sums.shape[0] - FEATURES * tile)):
        own = sums[FEATURES * tile + lane]
        for code in range(own.shape[0]):
            own[code, 0] += scratch[512 * lane + 2 * code]
            own[code, 1] += scratch[512 * lane + 2 * code + 1]


@inner
def _finish(tasks, i, pool, first, last):
    if tasks.minus[i] >= 0:
        _subtract(pool[tasks.minus[i]], pool[tasks.slot[i]], first, last)


@kernel
def add_up_classes(rows, tasks, pool, lo, hi):
    """`add_up` of tiles lo ... hi - 1 for two classes; codes are eight a word."""
    first, last = FEATURES * lo, min(FEATURES * hi, pool.shape[1])
    scratch = np.empty(FEATURES * 512, dtype=np.int64)
    block = np.empty((hi - lo, PACK_ROWS), dtype=np.uint64)
    label, values = rows.label, rows.values
    for i in range(tasks.start.shape[0]):
        own, stop = pool[tasks.slot[i]], tasks.stop[i]
        _clear(own, first, last)
        for a in range(tasks.start[i], stop, PACK_ROWS):
            n = min(PACK_ROWS, stop - a)
            _fetch(rows, a, n, lo, block)
            for tile in range(hi - lo):
                words = block[tile]
                for k in range(scratch.shape[0]):
                    scratch[k] = 0
                for t in range(n):
                    word, at, value = words[t], np.uint64(label[a + t]), values[a + t, 0]
                    for lane in range(FEATURES):
                        code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                        scratch[np.uint64(512 * lane) + code + code + at] += value
                _add_scratch(scratch, lo + tile, own)
        _finish(tasks, i, pool, first, last)


@kernel
def add_up_moments(rows, tasks, pool, lo, hi):
    """`add_up_classes` for two moments."""
    first, last = FEATURES * lo, min(FEATURES * hi, pool.shape[1])
    scratch = np.empty(FEATURES * 512, dtype=np.int64)
    block = np.empty((hi - lo, PACK_ROWS), dtype=np.uint64)
    values = rows.values
    for i in range(tasks.start.shape[0]):
        own, stop = pool[tasks.slot[i]], tasks.stop[i]
        _clear(own, first, last)
        for a in range(tasks.start[i], stop, PACK_ROWS):
            n = min(PACK_ROWS, stop - a)
            _fetch(rows, a, n, lo, block)
            for tile in range(hi - lo):
                words = block[tile]
                for k in range(scratch.shape[0]):
                    scratch[k] = 0
                for t in range(n):
                    word, x, y = words[t], values[a + t, 0], values[a + t, 1]
                    for lane in range(FEATURES):
                        code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                        place = np.uint64(512 * lane) + code + code
                        scratch[place] += x
                        scratch[place + np.uint64(1)] += y
                _add_scratch(scratch, lo + tile, own)
        _finish(tasks, i, pool, first, last)


@kernel
def add_up_packed(rows, tasks, pool, lo, hi):
    """`add_up_moments` of packed values: both halves are added at once.

    They are taken apart before they can overflow.
    """
    first, last = FEATURES * lo, min(FEATURES * hi, pool.shape[1])
    scratch = np.empty(FEATURES * 256, dtype=np.int64)
    block = np.empty((hi - lo, PACK_ROWS), dtype=np.uint64)
    values = rows.values
    for i in range(tasks.start.shape[0]):
        own, stop = pool[tasks.slot[i]], tasks.stop[i]
        _clear(own, first, last)
        for a in range(tasks.start[i], stop, PACK_ROWS):
            n = min(PACK_ROWS, stop - a)
            _fetch(rows, a, n, lo, block)
            for tile in range(hi - lo):
                words = block[tile]
                for k in range(scratch.shape[0]):
                    scratch[k] = 0
                for t in range(n):
                    word, value = words[t], values[a + t, 0]
                    for lane in range(FEATURES):
                        code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                        scratch[np.uint64(256 * lane) + code] += value
                add_packed_tile(scratch, lo + tile, own)
        _finish(tasks, i, pool, first, last)


@inner
def add_packed_tile(scratch, tile, sums):
    """Add the sums of a tile, scratch[256 lane + code] = G 2^32 + H."""
    for lane in range(min(FEATURES, sums.shape[0] - FEATURES * tile)):
        own = sums[FEATURES * tile + lane]
        for code in range(own.shape[0]):
            value = scratch[256 * lane + code]
            low = value & np.int64(0xFFFFFFFF)
            own[code, 0] += low
            own[code, 1] += (value - low) >> np.int64(32)


@kernel
def sum_packed(packed, total):
    """H and G of all rows from G 2^32 + H."""
    first, second = np.int64(0), np.int64(0)
    for i in range(packed.shape[0]):
        low = packed[i, 0] & np.int64(0xFFFFFFFF)
        first += low
        second += (packed[i, 0] - low) >> np.int64(32)
    total[0], total[1] = first, second


@kernel
def turn(packed, out):
    """g 2^32 + h to -g 2^32 + h."""
    for i in range(packed.shape[0]):
        out[i] = 2 * (packed[i] & np.int64(0xFFFFFFFF)) - packed[i]


@kernel
def sums_by(index, values, sums):
    for i in range(index.shape[0]):
        for s in range(values.shape[1]):
            sums[index[i], s] += values[i, s]
