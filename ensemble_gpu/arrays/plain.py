"""Arrays of NumPy that are not quite NumPy's: masks, and floats that NumPy itself does not know."""

from __future__ import annotations

from typing import Any

import numpy as np

# Whose types are narrower than float32, which holds all their values: bfloat16, float8, int4, ...
NARROW_TYPES = "ml_dtypes"


def widened(array: Any) -> Any:
    """The array itself, or as float32 where its type is one of `NARROW_TYPES`."""
    if not isinstance(array, np.ndarray) or array.dtype.type.__module__ != NARROW_TYPES:
        return array
    return array.astype(np.float32)


def unmasked(X: Any) -> Any:
    """Features without a mask: masked cells are missing, NaN (None among objects)."""
    if not isinstance(X, np.ma.MaskedArray):
        return X
    if not np.ma.is_masked(X):
        return np.asarray(X)
    if X.dtype.kind in "OUST":
        return np.where(np.ma.getmaskarray(X), np.array(None), np.asarray(X, dtype=object))
    kind = X.dtype if X.dtype.kind in "fc" else np.dtype(np.float64)
    return np.where(np.ma.getmaskarray(X), kind.type(np.nan), np.asarray(X, dtype=kind))
