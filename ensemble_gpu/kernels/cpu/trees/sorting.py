"""The rows of a node in order of a feature's codes."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner

FEWEST = 6  # rows that are inserted one by one
LANES = 32  # keys that are compared at once; SMALL is a multiple
SHIFT = 8  # bits of a key for the place of a row
PLACE = (1 << SHIFT) - 1


@inner(forceinline=True)
def sorted_keys(codes, order, a, n, f, keys, rank, out):
    """out[:n] = code 2^SHIFT + t of the rows order[a + t], ascending.

    A key's place is the number of smaller keys: n^2 comparisons side by side in the registers cost
    less than a sort whose branches nobody can guess. Four keys at a time: a rank is written, and
    read again, less often.
    """
    if n <= FEWEST:
        for t in range(n):
            key, j = (np.int64(codes[order[a + t], f]) << SHIFT) | t, t
            while j > 0 and np.int64(out[j - 1]) > key:
                out[j] = out[j - 1]
                j -= 1
            out[j] = key
        return
    padded = (n + LANES - 1) // LANES * LANES
    for t in range(n):
        keys[t] = (np.int64(codes[order[a + t], f]) << SHIFT) | t
    for t in range(n, padded):
        keys[t] = -1  # all bits: below nobody
    for t in range(padded):
        rank[t] = 0
    for k in range(0, n, 4):
        first, second, third, fourth = keys[k], keys[k + 1], keys[k + 2], keys[k + 3]
        for t in range(padded):
            key = keys[t]
            two = np.int16(np.int16(first < key) + np.int16(second < key))
            more = np.int16(np.int16(third < key) + np.int16(fourth < key))
            rank[t] = np.int16(rank[t] + np.int16(two + more))
    for t in range(n):
        out[rank[t]] = keys[t]


@inner
def sort_rows(codes, order, a, n, f, keys, other):
    """keys[:n] = (code - lowest) 2^32 + t of the rows order[a + t], ascending; the lowest code.

    A radix sort of as many bits as the node's codes differ in.
    """
    low = high = np.uint64(codes[order[a], f])
    for t in range(n):
        code = np.uint64(codes[order[a + t], f])
        low, high = min(low, code), max(high, code)
        keys[t] = code
    for t in range(n):
        keys[t] = ((keys[t] - low) << np.uint64(32)) | np.uint64(t)
    digit = np.uint64(8 if n < 2048 else 11)
    mask = (np.uint64(1) << digit) - np.uint64(1)
    counts = np.empty(np.int64(mask) + 1, dtype=np.int64)
    shift = np.uint64(32)
    while (high - low) >> (shift - np.uint64(32)) > 0:
        for d in range(counts.shape[0]):
            counts[d] = 0
        for t in range(n):
            counts[(keys[t] >> shift) & mask] += 1
        total = np.int64(0)
        for d in range(counts.shape[0]):
            total, counts[d] = total + counts[d], total
        for t in range(n):
            d = (keys[t] >> shift) & mask
            other[counts[d]] = keys[t]
            counts[d] += 1
        for t in range(n):
            keys[t] = other[t]
        shift += digit
    return np.int64(low)
