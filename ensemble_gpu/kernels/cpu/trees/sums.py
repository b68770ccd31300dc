"""Sums of nodes per feature and code.

Codes lie row by row, so that a row of a deep node costs one cache line whatever features are tried.
Rows come in blocks that stay in the cache while some features add them up. (Two statistics of rows
with one-byte codes are added up eight codes a word: pool.py.)
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import FEATURES, ROWS
from ensemble_gpu.kernels.jit import inner, kernel

# Rows whose packed values are added up before they are taken apart: times 2^18 below 2^31.
PACKED = 4096


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
    tried = features.shape[1]
    for i in range(starts.shape[0]):
        own, stop = i if features.shape[0] > 1 else 0, stops[i]
        for g in range(0, tried, FEATURES):
            for a in range(starts[i], stop, ROWS):
                for j in range(g, min(g + FEATURES, tried)):
                    f = np.uint64(features[own, j])
                    add(rows, a, min(a + ROWS, stop), f, counted, out[i, j], seen)


@kernel
def packed_sums(words, rows, starts, stops, wanted, lo, hi, out):
    """Tiles lo ... hi - 1 of out[node, feature, code, (H, G, rows)], of packed values G 2^32 + H.

    `words` [row, tile] are eight codes of one byte each. Tiles without a feature that is wanted
    [node or all, feature] are left out. Both halves are added at once, and taken apart before they
    can overflow.
    """
    block = np.empty(PACKED, dtype=np.uint64)
    both, seen = np.empty(8 * 256, dtype=np.int64), np.empty(8 * 256, dtype=np.int64)
    order, values, p, zero = rows.order, rows.values, out.shape[1], np.uint64(0)
    for i in range(starts.shape[0]):
        asked = wanted[i if wanted.shape[0] > 1 else 0]
        for tile in range(lo, hi):
            first, last = 8 * tile, min(8 * tile + 8, p)
            some = False
            for f in range(first, last):
                some |= asked[f]
            if not some:
                continue
            for a in range(starts[i], stops[i], PACKED):
                n, start = np.uint64(min(PACKED, stops[i] - a)), np.uint64(a)
                for t in range(n):
                    block[t] = words[np.uint64(order[start + t]), np.uint64(tile)]
                both[:] = 0
                seen[:] = 0
                for t in range(n):
                    word, value = block[t], values[start + t, zero]
                    for lane in range(8):
                        code = (word >> np.uint64(8 * lane)) & np.uint64(255)
                        at = np.uint64(256 * lane) + code
                        both[at] += value
                        seen[at] += 1
                for f in range(first, last):
                    own, base = out[i, f], 256 * (f - first)
                    for code in range(own.shape[0]):
                        value = both[base + code]
                        low = value & np.int64(0xFFFFFFFF)
                        own[code, 0] += low
                        own[code, 1] += (value - low) >> np.int64(32)
                        own[code, 2] += seen[base + code]


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
def sums_by(index, values, sums):
    for i in range(index.shape[0]):
        for s in range(values.shape[1]):
            sums[index[i], s] += values[i, s]
