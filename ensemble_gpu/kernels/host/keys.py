"""Hashes of rows on the host, and the order that they give (data/keys.py says of what)."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.host.hashing import STEP, mix
from ensemble_gpu.kernels.host.sorting import sort_places
from ensemble_gpu.kernels.jit import kernel

# The bit of the sign; the bits of NaN; the smallest number that is not taken for zero.
MINUS, MISSING, SMALLEST = np.uint64(1 << 63), np.uint64(0xFFF << 51), 2.0**-1022

BLOCK = 64
FEW = 32  # rows of a bucket that are sorted one by one


@kernel
def mix_in(keys, x):
    """Rows in blocks, so that their chains of multiplications run side by side, as vectors."""
    n_rows, n_columns = x.shape
    values = np.empty(BLOCK)
    bits = values.view(np.uint64)
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        own = keys[start : start + n]
        for f in range(n_columns):
            for i in range(n):
                values[i] = x[start + i, f]
            for i in range(n):
                digest = bits[i] if abs(values[i]) >= SMALLEST else np.uint64(0)
                digest = digest if values[i] == values[i] else MISSING
                own[i] = mix((own[i] + STEP) ^ digest)


@kernel
def sort_rows(keys, bits, ends, order):
    """Rows in ascending order of keys, equal ones in their own order.

    Hashes fall evenly into 2^bits buckets by their upper bits, about one a bucket: the rest is
    sorting a few.
    """
    shift, n = np.uint64(64 - bits), keys.shape[0]
    for b in range(ends.shape[0]):
        ends[b] = 0
    for i in range(n):
        ends[keys[i] >> shift] += 1
    total = 0
    for b in range(ends.shape[0]):
        total += ends[b]
        ends[b] = total
    for i in range(n - 1, -1, -1):
        b = keys[i] >> shift
        ends[b] -= 1  # in the end where the bucket begins
        order[ends[b]] = i
    other = np.empty_like(order)
    for b in range(ends.shape[0]):
        start, stop = ends[b], ends[b + 1] if b + 1 < ends.shape[0] else n
        if stop - start > FEW:
            sort_places(keys, order, start, stop, other)
            continue
        for i in range(start + 1, stop):
            row, at = order[i], i
            while at > start and keys[order[at - 1]] > keys[row]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = row
