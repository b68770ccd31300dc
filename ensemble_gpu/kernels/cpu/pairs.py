"""Gradients on the CPU: sums of integers and of packed pairs, counts of pairs of codes.

Threads share the units of work, each with sums of its own.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.histogram import add_rows
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import PACK_BITS

# PACK_ROWS times 2^PACK_BITS < 2^31: neither half of a part's sums can overflow.
PACK_ROWS = (1 << (31 - PACK_BITS)) - 1


@inner
def unpack(packed, g, h):
    """g, h += the two halves of the packed sums."""
    for lane in range(packed.shape[0]):
        for code in range(packed.shape[1]):
            word = packed[lane, code]
            low = word & np.int64(0xFFFFFFFF)
            h[lane, code] += low
            g[lane, code] += (word - low) >> np.int64(32)


@inner
def _n_units(words, q):
    """Units of work of the sums: (plane, part of the rows, tile)."""
    return q.shape[0] * words.shape[0] * ((words.shape[1] + PACK_ROWS - 1) // PACK_ROWS)


@inner
def _unit(u, words):
    """(plane, tile, first row, last row) of a unit.

    The tiles of a part follow each other: they add up the same integers, which are in the cache.
    """
    tiles, n = words.shape[0], words.shape[1]
    parts = (n + PACK_ROWS - 1) // PACK_ROWS
    start = (u // tiles % parts) * PACK_ROWS
    return u // (parts * tiles), u % tiles, start, min(start + PACK_ROWS, n)


@inner
def _add_plane_units(worker, first, last, words, n_features, q, sums):
    for u in range(first, last):
        plane, tile, start, stop = _unit(u, words)
        lanes = n_features - 8 * tile
        add_rows(words[tile], lanes, start, stop, q[plane], sums[worker, plane, 0, tile])


@kernel
def plane_sums(crew, words, n_features, q, sums):
    """sums[worker, plane, 0, tile, lane, code] += q."""
    share(crew, _n_units(words, q), _add_plane_units, (words, n_features, q, sums))


@inner
def _add_pair_units(worker, first, last, words, n_features, q, sums):
    packed = np.empty(sums.shape[4:], dtype=np.int64)
    for u in range(first, last):
        plane, tile, start, stop = _unit(u, words)
        packed.fill(0)
        add_rows(words[tile], n_features - 8 * tile, start, stop, q[plane], packed)
        unpack(packed, sums[worker, plane, 0, tile], sums[worker, plane, 1, tile])


@kernel
def pair_sums(crew, words, n_features, q, sums):
    """sums[worker, plane, upper or lower half of q, tile, lane, code] += q.

    A 64-bit add serves both halves; after each part they are taken apart into int64 sums.
    """
    share(crew, _n_units(words, q), _add_pair_units, (words, n_features, q, sums))


@inner
def _pair_counts(own, other, weights, table):
    """table[own code, other code] = weight of the rows; their number where there are no weights.

    Counts in an array of its own, 256 x 256 in the second-level cache: the compiler knows that they
    lie apart from the codes, which halves the time.
    """
    width = table.shape[1]
    flat = np.empty(table.shape[0] * width, dtype=table.dtype)
    for i in range(flat.shape[0]):
        flat[i] = 0
    if weights.shape[0]:
        for i in range(own.shape[0]):
            flat[np.uint32(own[i]) * np.uint32(width) + other[i]] += weights[i]
    else:
        for i in range(own.shape[0]):
            flat[np.uint32(own[i]) * np.uint32(width) + other[i]] += 1
    for code in range(table.shape[0]):
        for b in range(width):
            table[code, b] = flat[code * width + b]


@inner
def _count_features(worker, first, last, feature, columns, weights, table):
    for f in range(first, last):
        _pair_counts(columns[feature], columns[f], weights, table[:, f])


@kernel
def pair_counts(crew, feature, columns, weights, table):
    """table[own code, feature, code] of one feature and every other; columns[feature, row]."""
    share(crew, table.shape[1], _count_features, (feature, columns, weights, table))
