"""Sums of 64-bit integers in shared memory, as two 32-bit words each.

64-bit atomics are native in global memory only. In shared memory a sum is two arrays of words: the
lower is added first, and the one add that makes it wrap around carries into the upper, so the sum
is exact modulo 2^64 in any order of the adds. A small weight has an empty upper word and costs one
atomic.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda

MOST_CELLS = 4096  # sums in shared memory: 32 KB
WORD = 0xFFFFFFFF


@cuda.jit(device=True)
def value_at(low, high, at):
    return (np.int64(high[at]) << 32) + np.int64(low[at])


@cuda.jit(device=True)
def store(low, high, at, value):
    low[at] = np.uint32(value & WORD)
    high[at] = np.int32(value >> 32)


@cuda.jit(device=True)
def add(low, high, at, value):
    """sum[at] += value: the lower words, then the upper ones with what is carried."""
    part = value & WORD
    old = cuda.atomic.add(low, at, np.uint32(part))
    upper = value >> 32
    if np.int64(old) + part > WORD:
        upper += 1
    if upper != 0:
        cuda.atomic.add(high, at, np.int32(upper))


@cuda.jit(device=True)
def add_row(label, values, row, at, n_stats, counted, low, high):
    """Add what a row carries to the cells of its code, which start at `at`.

    Statistics are classes where there are labels; else `label` is a single number.
    """
    if label.shape[0] > 1:
        add(low, high, np.int32(at + label[row]), values[row, 0])
    else:
        s = np.int32(0)
        while s < n_stats:
            add(low, high, np.int32(at + s), values[row, s])
            s = np.int32(s + 1)
    if counted:
        cuda.atomic.add(low, np.int32(at + n_stats), np.uint32(1))


@cuda.jit(device=True)
def clear(low, high, used):
    j = np.int32(cuda.threadIdx.x)
    while j < used:
        low[j] = np.uint32(0)
        high[j] = np.int32(0)
        j = np.int32(j + cuda.blockDim.x)
