"""Weights and histograms on the CPU.

Codes lie in tiles of eight features; a row of a tile is one 64-bit word, words[tile][row] (two
words where codes are 16 bits). A tile's sums for one group (8 x width int64) stay in the
first-level cache while the rows stream by. Work is cut into units (plane, tile, part of the rows)
and dealt to the threads as contiguous ranges of equal weight; where a range starts inside a tile,
its thread adds into a private copy of that tile, folded afterwards. Sums are integers, so no cut
changes a result.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

# --- one unit of work ------------------------------------------------------------------------


@njit(cache=True, nogil=True, inline="always")
def _add_word(sums, first, lanes, bits, word, d):
    """sums[first + lane, code] += d for the codes of one word, `bits` wide each.

    `lanes` and `bits` are constants where this is called, so the loop is unrolled.
    """
    mask = np.uint64((1 << bits) - 1)
    for lane in range(lanes):
        sums[first + lane, (word >> np.uint64(bits * lane)) & mask] += d


@njit(cache=True, nogil=True)
def _add_listed(words, lanes, index, start, stop, difference, sums):
    """sums[lane, code] += difference for the listed rows of one tile."""
    if words.shape[1] == 2:
        for j in range(start, stop):
            i, d = np.uint32(index[j]), np.int64(difference[j])
            _add_word(sums, 0, 4, 16, words[i, 0], d)
            _add_word(sums, 4, 4, 16, words[i, 1], d)
    elif lanes <= 4:
        for j in range(start, stop):
            _add_word(sums, 0, 4, 8, words[np.uint32(index[j]), 0], np.int64(difference[j]))
    else:
        for j in range(start, stop):
            _add_word(sums, 0, 8, 8, words[np.uint32(index[j]), 0], np.int64(difference[j]))


@njit(cache=True, nogil=True)
def _add_rows(words, lanes, start, stop, q, sums):
    """sums[lane, code] += q for a range of rows of one tile."""
    if words.shape[1] == 2:
        for i in range(start, stop):
            _add_word(sums, 0, 4, 16, words[i, 0], np.int64(q[i]))
            _add_word(sums, 4, 4, 16, words[i, 1], np.int64(q[i]))
    elif lanes <= 4:
        for i in range(start, stop):
            _add_word(sums, 0, 4, 8, words[i, 0], np.int64(q[i]))
    else:
        for i in range(start, stop):
            _add_word(sums, 0, 8, 8, words[i, 0], np.int64(q[i]))


@njit(cache=True, nogil=True)
def _select(column, start, stop, first, span, index):
    """List the rows of a range whose code is in the cyclic range first ... first + span.

    Without a branch: every row is written, the cursor moves on only for a listed one. The
    difference wraps around in the codes' own width, so "outside one leaf" is one comparison.
    """
    mask = np.uint32(256 ** np.int64(column.itemsize) - 1)
    k = np.uint64(start)
    for i in range(start, stop):
        index[k] = i
        k += np.uint64(((np.uint32(column[i]) - first) & mask) <= span)
    return np.int64(k)


@njit(cache=True, nogil=True)
def _rescale_part(
    column, parts, part, first, span, ratio, group_of, q, index, difference, count, largest
):
    """List the touched rows of a part, rescale their q, note the differences and the maximum.

    ratio[g, code] is the factor of group g for the leaf of that code.
    """
    c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
    k = _select(column, start, stop, first, span, index)
    count[part] = k - start
    for plane in range(q.shape[0]):
        group = group_of[plane, c]
        factor, weights, change = ratio[group], q[plane], difference[plane]
        top = np.int32(0)
        for j in range(start, k):
            i = np.uint32(index[j])
            old = weights[i]
            new = np.int32(np.rint(old * factor[column[i]]))
            weights[i] = new
            change[j] = new - old
            top = max(top, new)
        largest[part, group] = max(largest[part, group], top)


# --- dealing units to threads ----------------------------------------------------------------


@njit(cache=True, nogil=True)
def _boundaries(count, units, workers):
    """Unit indices where each worker's range starts; every worker gets equal rows."""
    n_parts = count.shape[0]
    per_tile = 0
    for part in range(n_parts):
        per_tile += count[part]
    tiles = units // n_parts
    out = np.zeros(workers + 1, dtype=np.int64)
    total = per_tile * tiles
    worker = 1
    done = 0
    for tile in range(tiles):
        for part in range(n_parts):
            while worker < workers and done * workers >= total * worker:
                out[worker] = tile * n_parts + part
                worker += 1
            done += count[part]
    while worker <= workers:
        out[worker] = units
        worker += 1
    return out


@njit(cache=True, nogil=True)
def _work(worker, first, last, words, n_features, parts, group_of, q, lists, count, sums, spill):
    """Units first ... last. `lists` = (index, difference); an empty difference means all rows."""
    index, difference = lists
    n_parts, tiles = parts.shape[0], words.shape[0]
    listed = difference.shape[1] > 0
    private = -1
    if first % n_parts != 0:
        private = first // n_parts
        spill[worker].fill(0)
    for u in range(first, last):
        plane_tile, part = u // n_parts, u % n_parts
        plane, tile = plane_tile // tiles, plane_tile % tiles
        c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
        group = group_of[plane, c]
        into = spill[worker, group] if plane_tile == private else sums[group, tile]
        lanes = n_features - 8 * tile
        if listed:
            stop = start + count[part]
            _add_listed(words[tile], lanes, index, start, stop, difference[plane], into)
        else:
            _add_rows(words[tile], lanes, start, stop, q[plane], into)


@njit(cache=True, nogil=True)
def _fold(bounds, n_parts, tiles, sums, spill):
    """Add each private copy to the tile that it belongs to."""
    for worker in range(bounds.shape[0] - 1):
        first = bounds[worker]
        if first % n_parts != 0 and first < bounds[worker + 1]:
            tile = (first // n_parts) % tiles
            for g in range(sums.shape[0]):
                for lane in range(sums.shape[2]):
                    for code in range(sums.shape[3]):
                        sums[g, tile, lane, code] += spill[worker, g, lane, code]


@njit(cache=True, nogil=True)
def add_serial(words, n_features, parts, group_of, q, lists, count, sums, spill):
    """Add every unit; see `_work`."""
    units = q.shape[0] * words.shape[0] * parts.shape[0]
    _work(0, 0, units, words, n_features, parts, group_of, q, lists, count, sums, spill)


@njit(cache=True, nogil=True, parallel=True)
def add_parallel(words, n_features, parts, group_of, q, lists, count, sums, spill):
    units = q.shape[0] * words.shape[0] * parts.shape[0]
    workers = spill.shape[0]
    bounds = _boundaries(count, units, workers)
    for w in prange(workers):
        first, last = bounds[w], bounds[w + 1]
        _work(w, first, last, words, n_features, parts, group_of, q, lists, count, sums, spill)
    _fold(bounds, parts.shape[0], words.shape[0], sums, spill)


@njit(cache=True, nogil=True)
def _arc(leaf_of, kept, period):
    """(first, span): codes outside the kept leaf are those with (code - first) mod period <= span.

    The leaves LEFT, RIGHT, missing lie in a circle, so what is outside one leaf is one arc.
    Codes from the width up to the period do not occur and may belong to it.
    """
    width = leaf_of.shape[0]
    first = 0
    for code in range(width):
        if leaf_of[code] != kept and leaf_of[code - 1] == kept:
            first = code
    span = 0
    for code in range(width):
        if leaf_of[code] != kept:
            span = max(span, (code - first) % period)
    return np.uint32(first), np.uint32(span)


@njit(cache=True, nogil=True)
def _by_code(ratio, leaf_of):
    """ratio[g, leaf of code]."""
    out = np.empty((ratio.shape[0], leaf_of.shape[0]))
    for g in range(ratio.shape[0]):
        for code in range(leaf_of.shape[0]):
            out[g, code] = ratio[g, leaf_of[code]]
    return out


@njit(cache=True, nogil=True)
def rescale_serial(
    words, n_features, parts, group_of, q, lists, count, sums, spill,
    column, leaf_of, kept, leaf_ratio, largest,
):  # fmt: skip
    index, difference = lists
    first, span = _arc(leaf_of, kept, 256 ** np.int64(column.itemsize))
    ratio = _by_code(leaf_ratio, leaf_of)
    for part in range(parts.shape[0]):
        _rescale_part(
            column, parts, part, first, span, ratio, group_of, q, index, difference, count, largest
        )
    add_serial(words, n_features, parts, group_of, q, lists, count, sums, spill)


@njit(cache=True, nogil=True, parallel=True)
def rescale_parallel(
    words, n_features, parts, group_of, q, lists, count, sums, spill,
    column, leaf_of, kept, leaf_ratio, largest,
):  # fmt: skip
    index, difference = lists
    first, span = _arc(leaf_of, kept, 256 ** np.int64(column.itemsize))
    ratio = _by_code(leaf_ratio, leaf_of)
    for part in prange(parts.shape[0]):
        _rescale_part(
            column, parts, part, first, span, ratio, group_of, q, index, difference, count, largest
        )
    add_parallel(words, n_features, parts, group_of, q, lists, count, sums, spill)
