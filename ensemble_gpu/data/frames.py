"""Columns that may hold labels: pandas and polars frames, and arrays of objects.

The only file that knows frame libraries; none is imported unless the user has a frame of it.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import is_array

# Columns that a message names.
MOST_SHOWN = 4


class Table(Protocol):
    """Columns that may hold labels: a frame, or an array of objects."""

    shape: tuple[int, ...]

    @property
    def names(self) -> list | None: ...

    def is_category(self, feature: int) -> bool:
        """Whether the column's type says that it holds categories."""
        ...

    def is_plain(self, feature: int) -> bool:
        """Whether the column's type says that it holds numbers."""
        ...

    def factors(self, feature: int) -> tuple[np.ndarray, list]:
        """Each row's position among the distinct labels, -1 where missing, and those labels."""
        ...

    def replaced(self, columns: dict[int, np.ndarray]) -> Any:
        """The same kind of table with other columns; the user's own is left as it is."""
        ...


class Pandas:
    names: list
    shape: tuple[int, ...]

    def __init__(self, frame: Any) -> None:
        self.frame, self.shape, self.names = frame, frame.shape, list(frame.columns)
        self.dtypes = frame.dtypes.tolist()

    def is_category(self, feature: int) -> bool:
        return str(self.dtypes[feature]) == "category"

    def is_plain(self, feature: int) -> bool:
        import pandas as pd

        return bool(pd.api.types.is_numeric_dtype(self.dtypes[feature]))

    def holds_numbers(self, feature: int) -> bool:
        """Whether the column can be read as floats."""
        if self.is_plain(feature):
            return True
        if self.dtypes[feature].kind in "mM":  # to NumPy a date is a number
            return False
        try:
            np.asarray(self.frame.iloc[:, feature], dtype=np.float64)
        except (TypeError, ValueError):
            return False
        return True

    def factors(self, feature: int) -> tuple[np.ndarray, list]:
        codes, labels = self.frame.iloc[:, feature].factorize()
        return codes, labels.tolist()

    def replaced(self, columns: dict[int, np.ndarray]) -> Any:
        frame = self.frame.copy(deep=False)
        for feature, column in columns.items():
            frame.isetitem(feature, column)
        return frame


class Polars:
    names: list
    shape: tuple[int, ...]

    def __init__(self, frame: Any) -> None:
        self.frame, self.shape, self.names = frame, frame.shape, list(frame.columns)
        self.dtypes = frame.dtypes

    def is_category(self, feature: int) -> bool:
        import polars as pl

        return self.dtypes[feature] in (pl.Categorical, pl.Enum)

    def is_plain(self, feature: int) -> bool:
        import polars as pl

        dtype = self.dtypes[feature]  # decimals become objects in NumPy
        return dtype in (pl.Boolean, pl.Null) or (dtype.is_numeric() and not dtype.is_decimal())

    holds_numbers = is_plain

    def factors(self, feature: int) -> tuple[np.ndarray, list]:
        import polars as pl

        column = self.frame.to_series(feature)
        if column.dtype.is_nested():
            raise TypeError(f"the column has type {column.dtype}")
        labels = column.unique().drop_nulls()
        places = pl.Series(range(len(labels)), dtype=pl.Int64)
        codes = column.replace_strict(labels, places, default=-1, return_dtype=pl.Int64)
        return codes.to_numpy(), labels.to_list()

    def replaced(self, columns: dict[int, np.ndarray]) -> Any:
        import polars as pl

        return self.frame.with_columns(
            [pl.Series(self.frame.columns[f], column) for f, column in columns.items()]
        )


class Objects:
    """A two-dimensional NumPy array of objects; any of its columns may hold labels."""

    names: list | None = None
    shape: tuple[int, ...]

    def __init__(self, array: np.ndarray) -> None:
        self.array, self.shape = array, array.shape

    def is_category(self, feature: int) -> bool:
        return False

    def is_plain(self, feature: int) -> bool:
        return False

    def factors(self, feature: int) -> tuple[np.ndarray, list]:
        number: dict[Any, int] = {}
        codes = [
            -1 if _is_missing(label) else number.setdefault(label, len(number))
            for label in self.array[:, feature].tolist()
        ]
        return np.array(codes, dtype=np.int64), list(number)

    def replaced(self, columns: dict[int, np.ndarray]) -> Any:
        array = self.array.copy()
        for feature, column in columns.items():
            array[:, feature] = column
        return array


def _is_missing(label: Any) -> bool:
    """None, NaN, NaT, or the NA of pandas, which cannot be compared."""
    return label is None or type(label).__name__ == "NAType" or label != label


def frame_of(X: Any) -> Pandas | Polars | None:
    """A frame's columns; None where X is none. A frame has imported its library."""
    kinds: tuple[tuple[str, type[Pandas] | type[Polars]], ...]
    kinds = (("pandas", Pandas), ("polars", Polars))
    for library, kind in kinds:
        if library in sys.modules and isinstance(X, sys.modules[library].DataFrame):
            return kind(X)
    return None


def table_of(X: Any) -> Table | None:
    """X as columns that may hold labels; None where it is an array of numbers, or no table."""
    frame = frame_of(X)
    if frame is not None:
        return frame
    if is_array(X) and not isinstance(X, np.ndarray):
        return None
    try:
        array = np.asarray(X)
        if array.ndim != 2 or array.dtype.kind not in "OUST":
            return None
        return Objects(np.asarray(X, dtype=object))
    except ValueError:
        return None


def count_columns(X: Any) -> int | None:
    """The number of columns; None where X is not two-dimensional."""
    try:
        shape = X.shape if hasattr(X, "shape") else np.asarray(X, dtype=object).shape
    except ValueError:
        return None
    return int(shape[1]) if len(shape) == 2 else None


def check_columns(X: Any, name: str, hint: str) -> None:
    """Refuse the columns of a frame that hold no numbers; `hint` says what to do with labels."""
    frame = frame_of(X)
    if frame is None:
        return
    wrong = [f for f in range(frame.shape[1]) if not frame.holds_numbers(f)]
    if not wrong:
        return
    shown = [f"{frame.names[f]!r} (dtype {frame.dtypes[f]})" for f in wrong[:MOST_SHOWN]]
    rest = [f"{len(wrong) - MOST_SHOWN} more"] if len(wrong) > MOST_SHOWN else []
    columns = "column" if len(wrong) == 1 else "columns"
    raise ValueError(
        f"{name} must hold numbers (floats, integers, bool; NaN is missing); it has {columns} "
        f"{', '.join([*shown, *rest])}. {hint}"
    )
