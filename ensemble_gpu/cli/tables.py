"""Columns of numbers and texts by name, as they come from files and go to estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from ensemble_gpu.cli.errors import BadInput, listed

# What stands for a missing value in a text file.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")


@dataclass(frozen=True)
class Unsuitable:
    """A column of a type that is neither numbers nor texts."""

    kind: str
    n: int


@dataclass(frozen=True)
class Table:
    """columns[name] is an array of integers, floats (NaN is missing), bool, or texts (None is)."""

    columns: dict[str, Any]
    n_rows: int

    @property
    def names(self) -> list[str]:
        return list(self.columns)

    def column(self, name: str) -> np.ndarray:
        found = self.columns.get(name)
        if found is None:
            raise BadInput(f"there is no column {name!r}; there are {listed(self.names)}")
        if isinstance(found, Unsuitable):
            raise BadInput(
                f"column {name!r} has type {found.kind}, which is neither number nor text"
            )
        return found

    def take(self, rows: np.ndarray) -> Table:
        columns = {
            name: Unsuitable(column.kind, len(rows))
            if isinstance(column, Unsuitable)
            else column[rows]
            for name, column in self.columns.items()
        }
        return Table(columns, len(rows))


def is_text(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype == object


def joined(tables: Sequence[Table], paths: Sequence[str]) -> Table:
    """Rows of several files, whose columns are those of the first in any order."""
    first = tables[0]
    for table, path in zip(tables[1:], paths[1:], strict=True):
        missing = [name for name in first.names if name not in table.columns]
        if missing:
            raise BadInput(f"{path} has no columns {listed(missing)}, which {paths[0]} has")
    columns = {
        name: _joined_column([table.columns[name] for table in tables], name)
        for name in first.names
    }
    return Table(columns, sum(table.n_rows for table in tables))


def _joined_column(parts: list[Any], name: str) -> Any:
    unsuitable = [part for part in parts if isinstance(part, Unsuitable)]
    if unsuitable:
        return Unsuitable(unsuitable[0].kind, sum(len_of(part) for part in parts))
    texts = [is_text(part) for part in parts]
    if any(texts) and not all(texts):
        empty = [text or bool(np.isnan(part.astype(float)).all())
                 for text, part in zip(texts, parts, strict=True)]  # fmt: skip
        if not all(empty):
            raise BadInput(f"column {name!r} holds numbers in one file and texts in another")
        parts = [part if text else np.full(len(part), None)
                 for text, part in zip(texts, parts, strict=True)]  # fmt: skip
    return np.concatenate(parts)


def len_of(part: Any) -> int:
    return part.n if isinstance(part, Unsuitable) else len(part)


def features(table: Table, names: Sequence[str]) -> Any:
    """X for an estimator: a polars frame, texts as categories; without polars an array.

    An array is of floats, or of objects where a column holds texts.
    """
    columns = {name: table.column(name) for name in names}
    if find_spec("polars") is None:
        return _array(list(columns.values()), table.n_rows)
    import polars as pl

    series = [
        pl.Series(name, column.tolist(), dtype=pl.String).cast(pl.Categorical)
        if is_text(column)
        else pl.Series(name, column.astype(np.float64))
        for name, column in columns.items()
    ]
    return pl.DataFrame(series)


def _array(columns: list[np.ndarray], n: int) -> np.ndarray:
    texts = any(map(is_text, columns))
    X = np.empty((n, len(columns)), dtype=object if texts else np.float64)
    for f, column in enumerate(columns):
        X[:, f] = column if is_text(column) else column.astype(np.float64)
    return X


def texts_among(table: Table, names: Sequence[str]) -> list[int]:
    """Positions of the columns of texts."""
    return [f for f, name in enumerate(names) if is_text(table.column(name))]
