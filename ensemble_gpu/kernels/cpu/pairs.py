"""Gradients on the CPU: sums of integers and of packed pairs, counts of pairs of codes.

Python threads call these functions, each on its share of the units.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.histogram import add_rows
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import PACK_BITS

# PACK_ROWS times 2^PACK_BITS < 2^31: neither half of a part's sums can overflow.
PACK_ROWS = (1 << (31 - PACK_BITS)) - 1


@inner
def _unpack(packed, g, h):
    """g, h += the two halves of the packed sums."""
    for lane in range(packed.shape[0]):
        for code in range(packed.shape[1]):
            word = packed[lane, code]
            low = word & np.int64(0xFFFFFFFF)
            h[lane, code] += low
            g[lane, code] += (word - low) >> np.int64(32)


def n_units(words, q):
    """Units of work of the sums: (plane, tile, part of the rows)."""
    return q.shape[0] * words.shape[0] * -(-words.shape[1] // PACK_ROWS)


@inner
def _unit(u, words):
    """(plane, tile, first row, last row) of a unit."""
    tiles, n = words.shape[0], words.shape[1]
    parts = (n + PACK_ROWS - 1) // PACK_ROWS
    start = (u % parts) * PACK_ROWS
    return u // (parts * tiles), (u // parts) % tiles, start, min(start + PACK_ROWS, n)


@kernel
def plane_sums(first, last, words, n_features, q, sums):
    """sums[plane, 0, tile, lane, code] += q of the units first ... last."""
    for u in range(first, last):
        plane, tile, start, stop = _unit(u, words)
        lanes = n_features - 8 * tile
        add_rows(words[tile], lanes, start, stop, q[plane], sums[plane, 0, tile])


@kernel
def pair_sums(first, last, words, n_features, q, sums):
    """sums[plane, upper or lower half of q, tile, lane, code] += units first ... last.

    A 64-bit add serves both halves; after each part they are taken apart into int64 sums.
    """
    packed = np.empty(sums.shape[3:], dtype=np.int64)
    for u in range(first, last):
        plane, tile, start, stop = _unit(u, words)
        packed.fill(0)
        add_rows(words[tile], n_features - 8 * tile, start, stop, q[plane], packed)
        _unpack(packed, sums[plane, 0, tile], sums[plane, 1, tile])


@kernel
def pair_counts(own, other, weights, table):
    """table[own code, other code] += weight of every row; 1 where there are no weights.

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
