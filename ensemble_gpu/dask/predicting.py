"""Predictions of Dask collections: chunk by chunk, when they are asked for."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np


def predicted(estimator: Any, method: str, X: Any) -> da.Array:
    """A method of a fitted estimator for every partition of X, as a Dask Array."""
    shape, dtype = _form(estimator, method, X)
    model = dask.delayed(estimator)
    if isinstance(X, da.Array):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        pieces, rows = X.to_delayed().reshape(-1).tolist(), X.chunks[0]
    else:
        pieces = list(X.to_delayed())
        rows = (np.nan,) * len(pieces)
    answer = dask.delayed(_answer)
    meta = np.empty((0, *shape), dtype=dtype)
    chunks = [
        da.from_delayed(answer(model, method, piece, meta), (n, *shape), meta=meta)
        for piece, n in zip(pieces, rows, strict=True)
    ]
    return da.concatenate(chunks, allow_unknown_chunksizes=True)


def _form(estimator: Any, method: str, X: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Shape beyond the rows, and type, of what the method answers: as it is of a row made up.

    Where such a row has other categories than there can be, as it must be.
    """
    try:
        one = getattr(estimator, method)(_one_row(X))
        return np.shape(one)[1:], one.dtype
    except (ValueError, TypeError):
        n_classes = len(getattr(estimator, "classes_", ()))
        if method == "predict":
            labels = getattr(estimator, "classes_", np.zeros(0))
            return (), labels.dtype
        flat = method == "decision_function" and n_classes == 2
        return () if flat else (n_classes,), np.dtype(np.float64)


def _one_row(X: Any) -> Any:
    """A row like those of X: zeros, or a frame's example."""
    if isinstance(X, da.Array):
        return np.zeros((1, X.shape[1]), dtype=X.dtype)
    return X._meta_nonempty.head(1)


def _answer(estimator: Any, method: str, X: Any, none: np.ndarray) -> Any:
    return getattr(estimator, method)(X) if len(X) else none
