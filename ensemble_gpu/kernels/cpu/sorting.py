"""The rows of a small node in order of a feature's codes."""

from __future__ import annotations

import numpy as np
from numba import njit

# Rows of a node that are sorted; beyond it they are added up by code.
SMALL = 96
LANES = 32  # keys that are compared at once: SMALL is a multiple
LARGEST = np.int32(2**31 - 1)
SHIFT = 8  # bits of a key for the place of a row
PLACE = (1 << SHIFT) - 1


@njit(cache=True, nogil=True, forceinline=True)
def sorted_keys(codes, order, a, n, f, keys, out):
    """out[:n] = code 2^SHIFT + t of the rows order[a + t], ascending.

    A key's place is the number of smaller keys: n^2 comparisons side by side in the registers cost
    a tenth of a sort whose branches nobody can guess.
    """
    for t in range(n):
        keys[t] = (np.int32(codes[order[a + t], f]) << SHIFT) | t
    padded = (n + LANES - 1) // LANES * LANES
    for t in range(n, padded):
        keys[t] = LARGEST
    for t in range(n):
        own, smaller = keys[t], np.int32(0)
        for k in range(padded):
            smaller += np.int32(keys[k] < own)
        out[smaller] = own
