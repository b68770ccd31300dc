"""The smallest entries of every row, which the array API standard can only sort for."""

from __future__ import annotations

from typing import Any

import array_api_compat

from ensemble_gpu.arrays.namespace import Where


def kth_smallest(values: Any, k: int, where: Where) -> Any:
    """The k-th smallest entry of every row [n, 1], k from 1 on."""
    xp = where.xp
    if array_api_compat.is_numpy_namespace(xp) or array_api_compat.is_cupy_namespace(xp):
        return xp.partition(values, k - 1, axis=1)[:, k - 1 : k]
    if array_api_compat.is_torch_namespace(xp):
        return xp.kthvalue(values, k, dim=1, keepdim=True).values
    return xp.sort(values, axis=1)[:, k - 1 : k]


def smallest(values: Any, k: int, where: Where) -> Any:
    """Positions [n, k] of the k smallest entries of every row, in the order of the positions.

    Of equal entries the first ones are taken.
    """
    xp = where.xp
    limit = kth_smallest(values, k, where)
    below, at = values < limit, values == limit
    wanted = k - xp.sum(xp.astype(below, xp.int64), axis=1, keepdims=True)
    first = xp.cumulative_sum(xp.astype(at, xp.int64), axis=1) <= wanted
    return xp.reshape(xp.nonzero(below | (at & first))[1], (values.shape[0], k))
