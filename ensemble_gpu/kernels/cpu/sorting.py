"""The rows of a small node in order of a feature's codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

# Rows of a node that are sorted; beyond it they are added up by code.
SMALL = 96
LANES = 32  # keys that are compared at once; SMALL is a multiple
SHIFT = 8  # bits of a key for the place of a row
PLACE = (1 << SHIFT) - 1


def key_array(codes: Any, n: int) -> np.ndarray:
    """Room for n keys: integers of twice the codes' width, so that many fit a register."""
    raise NotImplementedError  # compiled code has its own, below


@overload(key_array)
def _key_array(codes, n):
    kind = np.uint16 if codes.dtype == types.uint8 else np.uint32
    return lambda codes, n: np.empty(n, dtype=kind)


@njit(cache=True, nogil=True, forceinline=True)
def sorted_keys(codes, order, a, n, f, keys, rank, out):
    """out[:n] = code 2^SHIFT + t of the rows order[a + t], ascending.

    A key's place is the number of smaller keys: n^2 comparisons side by side in the registers cost
    less than a sort whose branches nobody can guess.
    """
    padded = (n + LANES - 1) // LANES * LANES
    for t in range(n):
        keys[t] = (np.int64(codes[order[a + t], f]) << SHIFT) | t
    for t in range(padded):
        rank[t] = 0
    for k in range(n):
        own = keys[k]
        for t in range(padded):
            rank[t] = np.int16(rank[t] + np.int16(own < keys[t]))
    for t in range(n):
        out[rank[t]] = keys[t]
