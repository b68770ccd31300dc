"""What a model takes: arrays of rows. Frames and labels are read by the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, Where, is_array, locate
from ensemble_gpu.arrays.plain import unmasked, widened
from ensemble_gpu.arrays.sparse import canonical, in_blocks, is_sparse


def rows_at_work(X: Any, n_features: int) -> tuple[Any, Where, Where]:
    """X checked and moved to where it is worked on; where it came from, and where it is now."""
    X = rows_of(X, n_features)
    if type(X) is np.ndarray and X.dtype.char in "fd":  # one row costs little more than this
        return X, NUMPY, NUMPY
    source, X = locate(X), to_workplace(X)
    return X, source, locate(X)


def check_complete(X: Any, where: Where, who: str) -> None:
    """Raise where a cell of X is missing, which `who` cannot work with."""
    if bool(where.xp.any(where.xp.isnan(X))):
        raise ValueError(
            f"X contains NaN, which {who} cannot take; drop the rows, or fill the cells in."
        )


def rows_of(X: Any, n_features: int) -> Any:
    """X [rows, n_features] as an array of real numbers; a list of rows is read into NumPy.

    A sparse matrix stays one.
    """
    usual = type(X) is np.ndarray and X.dtype.kind == "f"  # one row costs little more than this
    if not usual:
        X = _read(X) if isinstance(X, list | tuple) else widened(unmasked(X))
    if not usual and not is_array(X) and not in_blocks(X):
        raise TypeError(
            "X must be an array of NumPy or another array-API library, a matrix of scipy.sparse, "
            f"or a list of rows; got {type(X).__name__}. Frames are taken by the methods of the "
            "estimator."
        )
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must have shape (rows, {n_features}); got {tuple(X.shape)}.")
    if not usual and not locate(X).xp.isdtype(X.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"X must hold floats, integers or bool; got dtype {X.dtype}.")
    return canonical(X) if is_sparse(X) else X


def _read(rows: Any) -> np.ndarray:
    try:
        return np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = str(error).rstrip(".")
        raise TypeError(f"X must hold numbers, rows of one length: {text}.") from error
