"""The smallest entries of every row, which the array API standard can only sort for."""

from __future__ import annotations

from typing import Any

import array_api_compat
import numpy as np

from ensemble_gpu.arrays.namespace import Where

# Groups of entries of which the host takes the least first, for each of the k.
GROUPS = 8


def kth_smallest(values: Any, k: int, where: Where) -> Any:
    """The k-th smallest entry of every row [n, 1], k from 1 on."""
    xp = where.xp
    if array_api_compat.is_cupy_namespace(xp):
        return xp.partition(values, k - 1, axis=1)[:, k - 1 : k]
    if array_api_compat.is_torch_namespace(xp):
        return xp.kthvalue(values, k, dim=1, keepdim=True).values
    return xp.sort(values, axis=1)[:, k - 1 : k]


def smallest(values: Any, k: int, where: Where) -> Any:
    """Positions [n, k] of the k smallest entries of every row, in the order of the positions.

    Of equal entries the first ones are taken. No entry is NaN.
    """
    xp = where.xp
    if array_api_compat.is_numpy_namespace(xp):
        return _on_host(values, k)
    limit = kth_smallest(values, k, where)
    below, at = values < limit, values == limit
    wanted = k - xp.sum(xp.astype(below, xp.int64), axis=1, keepdims=True)
    first = xp.cumulative_sum(xp.astype(at, xp.int64), axis=1) <= wanted
    return xp.reshape(xp.nonzero(below | (at & first))[1], (values.shape[0], k))


def _on_host(values: np.ndarray, k: int) -> np.ndarray:
    """The same in fewer passes: of groups of entries the least, the k-th smallest of which is above
    the k-th smallest entry, so that few entries are left to sort.
    """
    n, p = values.shape
    size = max(1, p // (GROUPS * k))
    starts = np.arange(0, p, size)
    least = np.minimum.reduceat(values, starts, axis=1)
    limit = np.partition(least, k - 1, axis=1)[:, k - 1 : k]
    row, column = np.divmod(np.flatnonzero(values <= limit), p)
    counts = np.bincount(row, minlength=n)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    left = np.full((n, counts.max()), np.inf)
    at = np.full((n, counts.max()), p)
    left[row, place], at[row, place] = values[row, column], column
    order = np.argsort(left, axis=1, kind="stable")[:, :k]
    return np.sort(np.take_along_axis(at, order, axis=1), axis=1)
