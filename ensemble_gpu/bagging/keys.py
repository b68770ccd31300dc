"""An order of the rows that is their own: by a hash of what they hold.

A value enters the hash as the bits of its float64: one for the sign, 11 for e + 1023 and 52 for m,
where |x| = 2^e (1 + m / 2^52). So a float32, its float64 copy and an integer of the same value are
alike. Zeros of either sign are alike, and with them what is below 2^-1022, which some devices take
for zero; so are all NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import CUDA, NUMPY, Where, locate
from ensemble_gpu.kernels.cpu.memory import room
from ensemble_gpu.kernels.hashing import STEP, mixed

# The bit of the sign; the bits of NaN; the smallest number that is not taken for zero.
MINUS, MISSING, SMALLEST = np.uint64(1 << 63), np.uint64(0xFFF << 51), 2.0**-1022

BLOCK = 64
FEW = 32  # rows of a bucket that are sorted one by one


@njit(cache=True, nogil=True)
def _mix_in(keys, x):
    """Rows in blocks, so that their chains of multiplications run side by side."""
    n_rows, n_columns = x.shape
    for start in range(0, n_rows, BLOCK):
        for f in range(n_columns):
            for i in range(start, min(start + BLOCK, n_rows)):
                value = np.float64(x[i, f])
                digest = value.view(np.uint64) if abs(value) >= SMALLEST else np.uint64(0)
                digest = digest if value == value else MISSING
                keys[i] = mixed((keys[i] + STEP) ^ digest)


def _mix_in_anywhere(keys: Any, x: Any, powers: Any, where: Where) -> Any:
    """`_mix_in` of one column in array-API calls, which cannot see bits.

    `powers` are 2^-1022 ... 2^1023: how many of them are at most |x| is e + 1023, and |x| / 2^e is
    exact.
    """
    xp = where.xp

    def number(value: Any) -> Any:
        return where.full(int(value), xp.uint64)

    x = where.as_float64(x)
    unknown = xp.isnan(x)
    x = xp.where(unknown, xp.zeros_like(x), x)
    size = xp.abs(x)
    exponent = xp.searchsorted(powers, size, side="right")
    tiny = exponent == 0
    scaled = size / xp.take(powers, xp.where(tiny, xp.zeros_like(exponent), exponent - 1))
    fraction = xp.where(tiny, xp.zeros_like(x), scaled - 1.0) * 2.0**52
    digest = xp.astype(exponent, xp.uint64) << number(52)
    digest = digest | xp.astype(xp.astype(fraction, xp.int64), xp.uint64)
    digest = xp.where((x < 0.0) & ~tiny, digest | number(MINUS), digest)
    digest = xp.where(unknown, number(MISSING), digest)
    keys = (keys + number(STEP)) ^ digest
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> number(shift))) * number(factor)
    return keys ^ (keys >> number(31))


def row_keys(target: Any, X: Any, weights: np.ndarray | None = None) -> np.ndarray:
    """A hash of every row, its weight, its target and its features: uint64 [n] on the host.

    Values are finite or NaN. `weights` are on the host; None: rows are equal whatever they weigh.
    """
    where = locate(X)
    keys = room((X.shape[0],), np.uint64)
    keys[:] = 0
    if weights is not None:
        _mix_in(keys, weights[:, None])
    if where is NUMPY:
        _mix_in(keys, target[:, None])
        _mix_in(keys, X)
        return keys
    if where.kind == CUDA:
        target, X = gpu.adopt(target), gpu.adopt(X)
        where = locate(X)
    powers = where.put(np.ldexp(1.0, np.arange(-1022, 1024)))
    there = _mix_in_anywhere(where.put(keys), target, powers, where)
    for f in range(X.shape[1]):
        there = _mix_in_anywhere(there, X[:, f], powers, where)
    return where.host(there)


@njit(cache=True, nogil=True)
def _sort_rows(keys, bits, ends, order):
    """Rows in ascending order of keys, equal ones in their own order.

    Hashes fall evenly into 2^bits buckets by their upper bits, about one a bucket: the rest is
    sorting a few. Equal keys are in order already.
    """
    shift = np.uint64(64 - bits)
    ends[:] = 0
    for i in range(keys.shape[0]):
        ends[keys[i] >> shift] += 1
    total = 0
    for b in range(ends.shape[0]):
        total += ends[b]
        ends[b] = total
    for i in range(keys.shape[0] - 1, -1, -1):
        b = keys[i] >> shift
        ends[b] -= 1  # in the end where the bucket begins
        order[ends[b]] = i
    for b in range(ends.shape[0]):
        start, stop = ends[b], ends[b + 1] if b + 1 < ends.shape[0] else keys.shape[0]
        if stop - start > FEW:
            own = order[start:stop].copy()
            order[start:stop] = own[np.argsort(keys[own], kind="mergesort")]
            continue
        for i in range(start + 1, stop):
            row, at = order[i], i
            while at > start and keys[order[at - 1]] > keys[row]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = row


def sorted_rows(keys: np.ndarray) -> np.ndarray:
    """Rows in ascending order of keys, equal ones in their own order: int32."""
    bits = max(1, len(keys).bit_length())
    order = np.empty(len(keys), dtype=np.int32)
    _sort_rows(keys, bits, room((1 << bits,), np.int32), order)
    return order
