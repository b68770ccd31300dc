"""Weights and histograms on the CPU.

Codes lie in tiles of eight features, codes[tile][row][8]; a tile's sums for one group (8 x width
int64) stay in the first-level cache while the rows stream by. Work is cut into units
(plane, tile, part of the rows) and dealt to the threads as contiguous ranges of equal weight; where
a range starts inside a tile, its thread adds into a private copy of that tile, folded afterwards.
Sums are integers, so no cut changes a result.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS, N_POWERS

# --- one unit of work ------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _add_rows(codes, start, stop, q, sums):
    """sums[lane, code] += q for a range of rows of one tile."""
    for i in range(start, stop):
        d = np.int64(q[i])
        for lane in range(8):
            sums[lane, codes[i, lane]] += d


@njit(cache=True, nogil=True)
def _add_list(codes, index, start, stop, difference, sums):
    """sums[lane, code] += difference for listed rows of one tile."""
    for j in range(start, stop):
        i = index[j]
        d = np.int64(difference[j])
        for lane in range(8):
            sums[lane, codes[i, lane]] += d


@njit(cache=True, nogil=True)
def _select_and_rescale(column, parts, part, table, group_of, q, index, difference, count, largest):
    """List the touched rows of a part, rescale their q, note the differences and the maximum.

    table[0, code] > 0 marks a touched code; table[1 + g, code] is group g's ratio.
    """
    c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
    k = start
    for i in range(start, stop):
        index[k] = i
        k += table[0, column[i]] != 0.0
    count[part] = k - start
    for plane in range(q.shape[0]):
        group = group_of[plane, c]
        ratio = table[1 + group]
        top = 0
        for j in range(start, k):
            i = index[j]
            old = q[plane, i]
            new = np.int32(np.rint(old * ratio[column[i]]))
            q[plane, i] = new
            difference[plane, j] = new - old
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
def _work(worker, first, last, codes, parts, group_of, q, index, difference, count, sums, spill):
    """Units first ... last; with a list of rows where `difference` is not empty."""
    n_parts = parts.shape[0]
    tiles = codes.shape[0]
    listed = difference.shape[1] > 0
    private = -1
    if first % n_parts != 0:
        private = first // n_parts
        spill[worker] = 0
    for u in range(first, last):
        plane_tile, part = u // n_parts, u % n_parts
        plane, tile = plane_tile // tiles, plane_tile % tiles
        c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
        group = group_of[plane, c]
        into = spill[worker, group] if plane_tile == private else sums[group, tile]
        if listed:
            end = start + count[part]
            _add_list(codes[tile], index, start, end, difference[plane], into)
        else:
            _add_rows(codes[tile], start, stop, q[plane], into)


@njit(cache=True, nogil=True)
def _fold(bounds, n_parts, tiles, sums, spill):
    """Add each private copy to the tile that it belongs to."""
    for worker in range(bounds.shape[0] - 1):
        first = bounds[worker]
        if first % n_parts != 0 and first < bounds[worker + 1]:
            sums[:, (first // n_parts) % tiles] += spill[worker]


@njit(cache=True, nogil=True)
def build_serial(codes, parts, group_of, q, index, none, rows_of_part, sums, spill):
    sums[:] = 0
    units = q.shape[0] * codes.shape[0] * parts.shape[0]
    _work(0, 0, units, codes, parts, group_of, q, index, none, rows_of_part, sums, spill)


@njit(cache=True, nogil=True, parallel=True)
def build_parallel(codes, parts, group_of, q, index, none, rows_of_part, sums, spill):
    sums[:] = 0
    units = q.shape[0] * codes.shape[0] * parts.shape[0]
    workers = spill.shape[0]
    bounds = _boundaries(rows_of_part, units, workers)
    for w in prange(workers):
        _work(
            w, bounds[w], bounds[w + 1], codes, parts, group_of, q, index, none, rows_of_part,
            sums, spill,
        )  # fmt: skip
    _fold(bounds, parts.shape[0], codes.shape[0], sums, spill)


@njit(cache=True, nogil=True)
def rescale_serial(
    codes, column, parts, table, group_of, q, index, difference, count, largest, sums, spill
):
    for part in range(parts.shape[0]):
        _select_and_rescale(
            column, parts, part, table, group_of, q, index, difference, count, largest
        )
    units = q.shape[0] * codes.shape[0] * parts.shape[0]
    _work(0, 0, units, codes, parts, group_of, q, index, difference, count, sums, spill)


@njit(cache=True, nogil=True, parallel=True)
def rescale_parallel(
    codes, column, parts, table, group_of, q, index, difference, count, largest, sums, spill
):
    for part in prange(parts.shape[0]):
        _select_and_rescale(
            column, parts, part, table, group_of, q, index, difference, count, largest
        )
    units = q.shape[0] * codes.shape[0] * parts.shape[0]
    workers = spill.shape[0]
    bounds = _boundaries(count, units, workers)
    for w in prange(workers):
        _work(
            w, bounds[w], bounds[w + 1], codes, parts, group_of, q, index, difference, count,
            sums, spill,
        )  # fmt: skip
    _fold(bounds, parts.shape[0], codes.shape[0], sums, spill)


# --- requantise ------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _log_weights(codes, parts, part, group_of, plane, tables, used, start_log, out, top):
    """out = L0 + sum over used features of the group's table; top = maximum of the part."""
    c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
    group = group_of[plane, c]
    weighted = start_log.shape[0] > 0
    for i in range(start, stop):
        out[i] = start_log[i] if weighted else 0
    for u in range(used.shape[0]):
        f = used[u]
        column = codes[f // 8]
        lane = f % 8
        table = tables[group, f]
        for i in range(start, stop):
            out[i] += table[column[i, lane]]
    highest = out[start]
    for i in range(start, stop):
        highest = max(highest, out[i])
    top[part] = highest


@njit(cache=True, nogil=True)
def _quantise(parts, part, group_of, plane, logs, exponent, powers, q, largest):
    """q = rint(2^(L - E + 26)), from three digit tables and one exact power of two."""
    c, start, stop = parts[part, 0], parts[part, 1], parts[part, 2]
    group = group_of[plane, c]
    top = 0
    for i in range(start, stop):
        down = exponent[group] - (logs[i] >> FRACTION_BITS)
        new = 0
        if down < N_POWERS:
            fraction = logs[i]
            mantissa = (
                powers[0, (fraction >> (2 * DIGIT_BITS)) & DIGIT_MASK]
                * powers[1, (fraction >> DIGIT_BITS) & DIGIT_MASK]
                * powers[2, fraction & DIGIT_MASK]
            )
            new = np.int32(np.rint(mantissa * powers[3, down]))
        q[plane, i] = new
        top = max(top, new)
    largest[part, group] = max(largest[part, group], top)


@njit(cache=True, nogil=True)
def _exponents(parts, group_of, plane, top, exponent, seen):
    """E = floor(max L) + 1 over the parts of each group of the plane."""
    for part in range(parts.shape[0]):
        group = group_of[plane, parts[part, 0]]
        value = (top[part] >> FRACTION_BITS) + 1
        if not seen[group] or value > exponent[group]:
            exponent[group] = value
            seen[group] = True


@njit(cache=True, nogil=True)
def requantise_serial(
    codes, parts, group_of, tables, used, start_log, logs, powers, exponent, q, largest
):
    top = np.zeros(parts.shape[0], dtype=np.int64)
    seen = np.zeros(exponent.shape[0], dtype=np.bool_)
    largest[:] = 0
    for plane in range(q.shape[0]):
        for part in range(parts.shape[0]):
            _log_weights(codes, parts, part, group_of, plane, tables, used, start_log, logs, top)
        _exponents(parts, group_of, plane, top, exponent, seen)
        for part in range(parts.shape[0]):
            _quantise(parts, part, group_of, plane, logs, exponent, powers, q, largest)


@njit(cache=True, nogil=True, parallel=True)
def requantise_parallel(
    codes, parts, group_of, tables, used, start_log, logs, powers, exponent, q, largest
):
    top = np.zeros(parts.shape[0], dtype=np.int64)
    seen = np.zeros(exponent.shape[0], dtype=np.bool_)
    largest[:] = 0
    for plane in range(q.shape[0]):
        for part in prange(parts.shape[0]):
            _log_weights(codes, parts, part, group_of, plane, tables, used, start_log, logs, top)
        _exponents(parts, group_of, plane, top, exponent, seen)
        for part in prange(parts.shape[0]):
            _quantise(parts, part, group_of, plane, logs, exponent, powers, q, largest)


@njit(cache=True, nogil=True)
def count_codes(codes, starts, counts):
    """counts[c, f, code]: rows of each class, once per fit."""
    for tile in range(codes.shape[0]):
        lanes = min(8, counts.shape[1] - 8 * tile)
        for c in range(starts.shape[0] - 1):
            for i in range(starts[c], starts[c + 1]):
                for lane in range(lanes):
                    counts[c, 8 * tile + lane, codes[tile, i, lane]] += 1
