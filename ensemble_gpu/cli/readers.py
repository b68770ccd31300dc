"""Files to tables: polars where it is installed, else pyarrow, else the csv module.

All of them give the same columns: integers, floats, bool and texts, by what the values look like.
"""

from __future__ import annotations

import csv
import glob
import gzip
import io
import sys
from collections.abc import Callable, Collection, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ensemble_gpu.cli.errors import BadInput, listed, one_line
from ensemble_gpu.cli.tables import MISSING, Table, Unsuitable, joined

STANDARD = "-"
PARQUET, ARROW, TEXT = "parquet", "arrow", "csv"
SUFFIXES = {
    ".csv": TEXT, ".tsv": TEXT, ".txt": TEXT, ".parquet": PARQUET, ".pq": PARQUET,
    ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW,
}  # fmt: skip
READERS = ("polars", "pyarrow", "csv")


def read_table(given: Sequence[str], texts: Collection[str] = ()) -> Table:
    """The rows of files, patterns of files (`part-*.csv`) or `-`, one below the other.

    `texts` are columns that are texts whatever they look like.
    """
    paths = _expanded(given)
    tables = [_read(path, texts) for path in paths]
    table = joined(tables, paths)
    if not table.n_rows:
        raise BadInput(f"there are no rows in {listed(paths)}")
    return table


def _expanded(given: Sequence[str]) -> list[str]:
    paths: list[str] = []
    for path in given:
        if path == STANDARD or Path(path).exists():
            paths.append(path)
        elif glob.has_magic(path):
            found = sorted(glob.glob(path, recursive=True))
            if not found:
                raise BadInput(f"no file matches {path!r}")
            paths += found
        else:
            raise BadInput(f"there is no file {path!r}")
    if paths.count(STANDARD) > 1:
        raise BadInput("standard input (-) can be read once")
    return paths


def reader() -> str:
    """The best library that is installed."""
    return next(name for name in READERS if name == "csv" or find_spec(name) is not None)


def _read(path: str, texts: Collection[str]) -> Table:
    source, kind, separator = _source(path)
    library = reader()
    if kind != TEXT and library == "csv":
        raise BadInput(f"{path}: {kind} files need polars: pip install 'ensemble_gpu[cli]'")
    try:
        return _WAYS[library](source, kind, separator, texts)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error
    except Exception as error:  # of three libraries, each with errors of its own
        raise BadInput(f"{path} cannot be read as {kind}: {one_line(error)[:200]}") from error


def _source(path: str) -> tuple[bytes, str, str]:
    """Bytes, what they are, and what separates the values of a text."""
    data = sys.stdin.buffer.read() if path == STANDARD else Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    kind = SUFFIXES.get(suffix)
    if data[:4] == b"PAR1":
        kind = PARQUET
    elif data[:6] == b"ARROW1":
        kind = ARROW
    elif kind is None and path != STANDARD:
        raise BadInput(f"{path}: files must end with one of {', '.join(SUFFIXES)} (or .gz besides)")
    kind = kind or TEXT
    if kind == TEXT and not data.strip():
        raise BadInput(f"{path} is empty")
    head = data.split(b"\n", 1)[0]
    guessed = max(b",\t;", key=lambda s: head.count(bytes([s])))
    return data, kind, "\t" if suffix == ".tsv" else chr(guessed)


def _by_polars(data: bytes, kind: str, separator: str, texts: Collection[str]) -> Table:
    import polars as pl

    if kind == PARQUET:
        frame = pl.read_parquet(io.BytesIO(data))
    elif kind == ARROW:
        frame = pl.read_ipc(io.BytesIO(data))
    else:
        frame = _csv_by_polars(data, separator, texts)
    columns = {name: _of_polars(frame[name], name in texts) for name in frame.columns}
    return Table(columns, frame.height)


def _csv_by_polars(data: bytes, separator: str, texts: Collection[str]) -> Any:
    import polars as pl

    header = _header(data, separator)
    options: dict[str, Any] = {
        "separator": separator, "null_values": list(MISSING),
        "schema_overrides": {name: pl.String for name in header if name in texts},
    }  # fmt: skip
    try:
        return pl.read_csv(io.BytesIO(data), infer_schema_length=10_000, **options)
    except pl.exceptions.ComputeError:  # types that change further below
        return pl.read_csv(io.BytesIO(data), infer_schema_length=None, **options)


def _header(data: bytes, separator: str) -> list[str]:
    lines = io.StringIO(data[: 1 << 20].decode("utf-8-sig", errors="replace"))
    header = next(csv.reader(lines, delimiter=separator), [])
    double = sorted({name for name in header if header.count(name) > 1})
    if double:
        raise BadInput(f"columns {listed(double)} are there more than once")
    return header


def _of_polars(series: Any, as_text: bool) -> Any:
    import polars as pl

    kind = series.dtype
    if as_text and kind not in (pl.String, pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
        kind = series.dtype
    if kind in (pl.String, pl.Categorical, pl.Enum):
        return np.array([*series.cast(pl.String).to_list(), None], dtype=object)[:-1]
    if kind == pl.Null:
        return np.full(len(series), np.nan)
    if kind.is_decimal():
        series = series.cast(pl.Float64)
    elif not kind.is_numeric() and kind != pl.Boolean:
        return Unsuitable(str(kind), len(series))
    if series.null_count():
        return series.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return series.to_numpy()


def _by_pyarrow(data: bytes, kind: str, separator: str, texts: Collection[str]) -> Table:
    import pyarrow as pa

    if kind == PARQUET:
        import pyarrow.parquet as parquet

        table = parquet.read_table(pa.BufferReader(data))
    elif kind == ARROW:
        table = pa.ipc.open_file(pa.BufferReader(data)).read_all()
    else:
        from pyarrow import csv as reading

        kinds = {name: pa.string() for name in _header(data, separator) if name in texts}
        table = reading.read_csv(
            pa.BufferReader(data),
            parse_options=reading.ParseOptions(delimiter=separator),
            convert_options=reading.ConvertOptions(
                null_values=list(MISSING), strings_can_be_null=True, column_types=kinds,
                timestamp_parsers=[], quoted_strings_can_be_null=True,
            ),
        )  # fmt: skip
    columns = {name: _of_arrow(table[name], name in texts) for name in table.column_names}
    return Table(columns, table.num_rows)


def _of_arrow(column: Any, as_text: bool) -> Any:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if as_text or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        column = column.cast(pa.string())
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not numeric and not pa.types.is_boolean(kind):
        return Unsuitable(str(kind), len(column))
    if column.null_count:
        values = [np.nan if v is None else float(v) for v in column.to_pylist()]
        return np.array(values, dtype=np.float64)
    return np.asarray(column.to_numpy())


def _by_csv(data: bytes, kind: str, separator: str, texts: Collection[str]) -> Table:
    header = _header(data, separator)
    lines = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=separator)
    next(lines)
    rows = [row for row in lines if row]
    wrong = [k for k, row in enumerate(rows) if len(row) != len(header)]
    if wrong:
        raise BadInput(
            f"line {wrong[0] + 2} has {len(rows[wrong[0]])} values, the header has {len(header)}"
        )
    values = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    columns = {
        name: _parsed(column, name in texts) for name, column in zip(header, values, strict=True)
    }
    return Table(columns, len(rows))


def _parsed(values: Sequence[str], as_text: bool) -> np.ndarray:
    """Integers, floats, bool or texts, whichever all values are."""
    missing = [value in MISSING for value in values]
    if as_text:
        return _texts(values, missing)
    present = [value for value, gone in zip(values, missing, strict=True) if not gone]
    if present and all(value.lower() in ("true", "false") for value in present):
        if not any(missing):
            return np.array([value.lower() == "true" for value in values])
        return np.array([np.nan if gone else float(value.lower() == "true")
                         for value, gone in zip(values, missing, strict=True)])  # fmt: skip
    try:
        if present and not any(missing):
            return np.array([int(value) for value in values], dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    try:
        return np.array([np.nan if gone else float(value)
                         for value, gone in zip(values, missing, strict=True)])  # fmt: skip
    except ValueError:
        return _texts(values, missing)


def _texts(values: Sequence[str], missing: Sequence[bool]) -> np.ndarray:
    found = [None if gone else value for value, gone in zip(values, missing, strict=True)]
    return np.array([*found, None], dtype=object)[:-1]


_WAYS: dict[str, Callable[[bytes, str, str, Collection[str]], Table]] = {
    "polars": _by_polars, "pyarrow": _by_pyarrow, "csv": _by_csv,
}  # fmt: skip
