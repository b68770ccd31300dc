"""An order of the rows that is their own: by a hash of what they hold.

A value enters the hash as the bits of its float64: one for the sign, 11 for e + 1023 and 52 for m,
where |x| = 2^e (1 + m / 2^52). So a float32, its float64 copy and an integer of the same value are
alike. Zeros of either sign are alike, and with them what is below 2^-1022, which some devices take
for zero; so are all NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import CUDA, NUMPY, Where, locate
from ensemble_gpu.arrays.sparse import dense_blocks, is_sparse
from ensemble_gpu.arrays.streamed import is_streamed
from ensemble_gpu.kernels.cpu.memory import scratch_array
from ensemble_gpu.kernels.host.hashing import STEP
from ensemble_gpu.kernels.host.keys import MINUS, MISSING, mix_in, sort_rows
from ensemble_gpu.kernels.team import ALONE, Team

# Integer weights of up to this mean are drawn as repetitions: the draws cost time in proportion.
MOST_REPEATS = 16


def _mix_in_anywhere(keys: Any, x: Any, powers: Any, where: Where) -> Any:
    """`mix_in` of one column in array-API calls, which cannot see bits.

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
    if is_streamed(X):
        return X.keys(target, weights)
    where = locate(X)
    keys = scratch_array((X.shape[0],), np.uint64)
    keys[:] = 0
    if weights is not None:
        mix_in(keys, weights[:, None])
    if where is NUMPY:
        mix_in(keys, target[:, None])
        for rows, block in dense_blocks(X) if is_sparse(X) else [(slice(None), X)]:
            mix_in(keys[rows], block)
        return keys
    if where.kind == CUDA:
        target, X = gpu.adopt(target), gpu.adopt(X)
        where = locate(X)
    powers = where.put(np.ldexp(1.0, np.arange(-1022, 1024)))
    there = _mix_in_anywhere(where.put(keys), target, powers, where)
    for f in range(X.shape[1]):
        there = _mix_in_anywhere(there, X[:, f], powers, where)
    return where.host(there)


def sorted_rows(keys: np.ndarray) -> np.ndarray:
    """Rows in ascending order of keys, equal ones in their own order: int32."""
    bits = max(1, len(keys).bit_length())
    order = np.empty(len(keys), dtype=np.int32)
    sort_rows(keys, bits, scratch_array((1 << bits,), np.int32), order)
    return order


def repetitions(
    weights: np.ndarray | None, team: Team = ALONE
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """How often every row is there to be drawn, and by what its counts are to be multiplied.

    Integer weights are repetitions. Other weights are factors, and rows of weight zero are absent.
    """
    if weights is None:
        return None, None
    # the mean first: every large float64 is an integer; before it the largest, lest it overflows
    n, top = team.count(len(weights)), team.largest(float(weights.max()))[0]
    few = top <= MOST_REPEATS * n and _mean(weights, n, team) <= MOST_REPEATS
    if few and not team.any(bool((weights != np.floor(weights)).any())):
        return weights.astype(np.int64), None
    return (weights > 0.0).astype(np.int64), weights


def _mean(weights: np.ndarray, n: int, team: Team) -> float:
    """Of the weights of all workers, which have n rows."""
    return float(weights.mean()) if team.alone else team.fsum(weights) / n
