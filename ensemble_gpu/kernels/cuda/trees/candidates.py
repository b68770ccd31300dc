"""Where a feature can be split: after codes that occur. `sums` are those of criteria.py."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda
from ensemble_gpu.kernels.cuda.trees.words import value_at


@cuda.jit(device=True)
def occurs(sums, t):
    """Whether running sums change at code t."""
    low, high, columns, _ = sums
    c = np.int32(0)
    while c < columns:
        before = np.int64(0)
        if t > 0:
            before = value_at(low, high, np.int32((t - 1) * columns + c))
        if value_at(low, high, np.int32(t * columns + c)) != before:
            return True
        c = np.int32(c + 1)
    return False


@cuda.jit(device=True)
def any_missing(sums):
    """Whether the sums of the missing code are not all zero."""
    low, high, columns, absent = sums
    c = np.int32(0)
    while c < columns:
        if value_at(low, high, np.int32(absent + c)) != 0:
            return True
        c = np.int32(c + 1)
    return False


@cuda.jit(device=True)
def _remainder(draw, span):
    """draw modulo span < 2^16, in steps of 16 bits: no division of 64-bit integers.

    A quotient below 2^32 by span, rounded, has the right whole part: it is no integer or misses
    the next by 1 / span at least.
    """
    rest = np.int64(0)
    shift = np.int32(48)
    while shift >= 0:
        rest = (rest << 16) + np.int64((draw >> np.uint64(shift)) & np.uint64(65535))
        rest -= np.int64(np.float64(rest) / np.float64(span)) * span
        shift = np.int32(shift - 16)
    return np.int32(rest)


@cuda.jit(device=True)
def drawn(sums, last, missing, draw):
    """(code, last code to try): the splitter draws one threshold between the codes that occur."""
    first = np.int32(0)
    while not occurs(sums, first):
        first = np.int32(first + 1)
    if first == last:
        return first, last
    t = np.int32(first + _remainder(draw, last - first))
    while not occurs(sums, t):
        t = np.int32(t - 1)
    after = np.int32(t + 1)
    while not occurs(sums, after):
        after = np.int32(after + 1)
    return t, last if missing and after == last else t
