"""Parts of a frame by name: features, a label, a weight. And frames as arrays of floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.data.frames import frame_of

SMALL = ("int8", "uint8", "int16", "uint16", "float16", "float32", "bool", "boolean")


def names_of(frame: Any) -> list:
    return list(frame.columns)


def select(frame: Any, names: Sequence[Any]) -> Any:
    """Some columns of a frame, in this order."""
    if list(frame.columns) == list(names):
        return frame
    return frame.select(names) if hasattr(frame, "select") else frame[list(names)]


def values(frame: Any, name: Any) -> np.ndarray:
    """One column as an array; labels that are categories are objects."""
    column = frame[name]
    if hasattr(column, "to_physical"):  # polars
        import polars as pl

        if column.dtype in (pl.Categorical, pl.Enum):
            column = column.cast(pl.String)
        return column.to_numpy()
    return np.asarray(column)


def as_floats(frame: Any, dtype: np.dtype) -> np.ndarray:
    """Columns of numbers as an array, each feature in a piece; nulls are NaN."""
    found = np.empty(frame.shape, dtype=dtype, order="F")
    for f in range(frame.shape[1]):
        if hasattr(frame, "to_series"):  # polars
            found[:, f] = _filled(frame.to_series(f)).to_numpy()
        else:
            found[:, f] = frame.iloc[:, f].to_numpy(dtype=dtype, na_value=np.nan)
    return found


def _filled(column: Any) -> Any:
    if not column.null_count():
        return column
    import polars as pl

    return column.cast(pl.Float64).fill_null(float("nan"))


def float_type(frame: Any) -> np.dtype:
    """float32 where it holds all values of all columns, else float64."""
    table = frame_of(frame)
    assert table is not None
    small = all(str(kind).lower() in SMALL for kind in table.dtypes)
    return np.dtype(np.float32 if small else np.float64)
