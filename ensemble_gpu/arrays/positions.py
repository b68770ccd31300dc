"""Values of a column replaced by their positions among known values, in any array library.

That is how a category becomes a number: estimators encode X before they bin it, and a forest
encodes the X that it is called with, by the same function.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import array_api_extra as xpx
import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.streamed import Decoded, Streamed


def encode(X: Any, values: Mapping[int, np.ndarray], where: Where) -> Any:
    """X with the position of the category in values[f] in column f, for every such f.

    NaN where the category is missing or not among the values. float32 and float64 stay what they
    are, other numbers become float64; X itself is returned where no feature is categorical, and is
    never written to. float32 is compared exactly: it is encoded as its float64 copy is.
    """
    if not values:
        return X
    if isinstance(X, Decoded | Streamed):
        return X.encoded(values)
    if X.dtype not in (where.xp.float32, where.xp.float64):
        X = where.as_float64(X)
    out = X
    for f, known in values.items():
        column = _positions(X[:, f], known, where)
        out = xpx.at(out)[:, f].set(column, copy=True if out is X else None)
    return out


def _positions(column: Any, values: np.ndarray, where: Where) -> Any:
    xp, dtype = where.xp, column.dtype
    narrow = dtype == xp.float32
    position = np.arange(len(values))
    if narrow:  # a value that float32 cannot hold equals none, so float64 is not needed
        with np.errstate(over="ignore"):
            position = position[values.astype(np.float32) == values]
        values = values[position].astype(np.float32)
    nan = where.full(np.nan, dtype)
    if not len(values):
        return xp.broadcast_to(nan, column.shape)
    known = where.put(values)
    present = xp.where(xp.isnan(column), known[0], column)
    nearest = xp.searchsorted(known, present)
    nearest = xp.minimum(nearest, where.full(len(values) - 1, nearest.dtype))
    code = xp.take(where.put(position.astype(values.dtype)), nearest)
    return xp.where(xp.take(known, nearest) == column, code, nan)
