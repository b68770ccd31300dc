"""Tables of predictions to files: CSV everywhere, Parquet with polars or pyarrow."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ensemble_gpu.cli.errors import BadInput
from ensemble_gpu.cli.readers import PARQUET, STANDARD, SUFFIXES, TEXT, reader


def check_writable(path: str) -> None:
    """Raise before the work where a table cannot be written to this file."""
    if path == STANDARD:
        return
    kind = SUFFIXES.get(Path(path).suffix.lower())
    if kind not in (TEXT, PARQUET):
        raise BadInput(f"predictions are written to .csv, .tsv or .parquet; got {path!r}")
    if kind == PARQUET and reader() == "csv":
        raise BadInput(f"{path}: Parquet files need polars: pip install 'ensemble_gpu[cli]'")
    check_folder(path)


def check_folder(path: str) -> None:
    folder = Path(path).parent
    if path != STANDARD and not folder.is_dir():
        raise BadInput(f"{path}: there is no folder {str(folder)!r}")


def write_table(columns: dict[str, np.ndarray], path: str) -> None:
    """Columns by name; `-` is standard output."""
    if path != STANDARD and SUFFIXES[Path(path).suffix.lower()] == PARQUET:
        _write_parquet(columns, path)
        return
    separator = "\t" if path.endswith(".tsv") else ","
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(
        zip(*(map(_cell, column.tolist()) for column in columns.values()), strict=True)
    )
    if path == STANDARD:
        sys.stdout.write(text.getvalue())
    else:
        Path(path).write_text(text.getvalue(), encoding="utf-8", newline="")


def _cell(value: Any) -> Any:
    """A value of CSV; floats to the last bit."""
    return repr(value) if isinstance(value, float) else "" if value is None else value


def _write_parquet(columns: dict[str, np.ndarray], path: str) -> None:
    plain = {name: column.tolist() if column.dtype == object else column
             for name, column in columns.items()}  # fmt: skip
    if reader() == "polars":
        import polars as pl

        pl.DataFrame(plain).write_parquet(path)
        return
    import pyarrow as pa
    import pyarrow.parquet as parquet

    parquet.write_table(pa.table(plain), path)
