"""Files to batches of rows: Parquet, Arrow and CSV, by pyarrow or polars, a part at a time.

A batch is a frame of polars where that is installed, else of pandas.
"""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

PARQUET, ARROW, TEXT = "parquet", "arrow", "csv"
SUFFIXES = {
    ".parquet": PARQUET, ".pq": PARQUET, ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW,
    ".csv": TEXT, ".tsv": TEXT, ".txt": TEXT,
}  # fmt: skip
# Types of pyarrow that floats hold, the first of them float32.
SMALL_NUMBERS = ("bool", "int8", "uint8", "int16", "uint16", "halffloat", "float")
NUMBERS = (*SMALL_NUMBERS, "int32", "uint32", "int64", "uint64", "double")
# What stands for a missing value in a text.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
# Letters of an error of a library that are shown.
MOST_LETTERS = 300
# Bytes of a column of Parquet that are read at once.
BUFFER_BYTES = 1 << 20
# Bytes of a text that are parsed at once; rows of it that types are guessed from.
BLOCK_BYTES, GUESSED_ROWS = 1 << 24, 10_000


def expanded(given: Sequence[Any]) -> list[Path]:
    """Files and patterns of files (`part-*.parquet`, sorted by name) as files that exist."""
    paths: list[Path] = []
    for one in map(str, given):
        if Path(one).is_file():
            found = [one]
        elif glob.has_magic(one):
            found = sorted(path for path in glob.glob(one, recursive=True) if Path(path).is_file())
        else:
            raise FileNotFoundError(f"source: there is no file {one!r}.")
        if not found:
            raise FileNotFoundError(f"source: no file matches {one!r}.")
        paths += map(Path, found)
    for path in paths:
        kind_of(path)
    return paths


def kind_of(path: Path) -> str:
    """What a file holds, by its suffix."""
    name = path.name.removesuffix(".gz")
    kind = SUFFIXES.get(Path(name).suffix.lower())
    if kind is None or (kind != TEXT and name != path.name):
        raise ValueError(
            f"source: files must end with one of {', '.join(SUFFIXES)} (texts with .gz besides); "
            f"got {str(path)!r}."
        )
    return kind


class File:
    """One file, read by pyarrow or else by polars.

    Numbers in a text are floats, as whole ones may be followed by others; but for the columns
    `as_guessed`, which may hold labels.
    """

    def __init__(self, path: Path, as_guessed: Collection[str]) -> None:
        self.path, self.kind, self.as_guessed = path, kind_of(path), as_guessed
        if find_spec("pyarrow") is None and find_spec("polars") is None:
            raise ImportError("Batches of files need pyarrow or polars: pip install pyarrow polars")
        self._types: dict[str, Any] | None = None  # of the columns of a text

    def names(self) -> list[str]:
        """The columns."""
        with _reading(self.path):
            if find_spec("pyarrow") is None:
                return self._lazy().collect_schema().names()
            return self._schema().names

    def n_rows(self) -> int | None:
        """How many rows there are, where the file says so."""
        if self.kind != PARQUET or find_spec("pyarrow") is None:
            return None
        import pyarrow.parquet as parquet

        with _reading(self.path):
            return parquet.read_metadata(self.path).num_rows

    def frames(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        """The rows in order, these columns of them, at most so many at a time.

        Frames, or columns that are read when they are asked for, while the next ones are not.
        """
        with _reading(self.path):
            yield from self._frames(columns, batch_rows)

    def _frames(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        if find_spec("pyarrow") is None:
            yield from self._by_polars(columns, batch_rows)
            return
        for batch in self._arrow_batches(columns, batch_rows):
            if isinstance(batch, StoredColumns):
                yield batch
                continue
            for start in range(0, batch.num_rows, batch_rows):
                yield frame_of_arrow(batch.slice(start, batch_rows))

    def _schema(self) -> Any:
        import pyarrow as pa

        if self.kind == PARQUET:
            import pyarrow.parquet as parquet

            return parquet.read_schema(self.path)
        if self.kind == ARROW:
            with pa.memory_map(str(self.path)) as source:
                return pa.ipc.open_file(source).schema
        with self._open_text(None) as reader:
            return reader.schema

    def _arrow_batches(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        import pyarrow as pa

        if self.kind == PARQUET:
            import pyarrow.parquet as parquet

            with parquet.ParquetFile(self.path, buffer_size=BUFFER_BYTES) as file:
                yield from self._row_groups(file, columns, batch_rows)
        elif self.kind == ARROW:
            with pa.memory_map(str(self.path)) as source:
                file = pa.ipc.open_file(source)
                for k in range(file.num_record_batches):
                    yield file.get_batch(k).select(list(columns))
        else:
            with self._open_text(list(columns)) as reader:
                waiting: list[Any] = []
                for batch in reader:
                    waiting.append(batch)
                    if sum(one.num_rows for one in waiting) >= batch_rows:
                        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
                        waiting = []
                if waiting:
                    yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()

    def _row_groups(self, file: Any, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        """Row groups of a file of Parquet, some small ones together, large ones in parts."""
        import pyarrow as pa

        sizes = [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)]
        first = 0
        while first < len(sizes):
            last, rows = first + 1, sizes[first]
            while last < len(sizes) and rows + sizes[last] <= batch_rows:
                rows += sizes[last]
                last += 1
            groups = list(range(first, last))
            first = last
            pa.default_memory_pool().release_unused()  # which keeps more than a batch
            if rows > batch_rows:
                yield from file.iter_batches(batch_rows, row_groups=groups, columns=list(columns))
            else:
                yield StoredColumns(self.path, file, groups, columns, rows)
        pa.default_memory_pool().release_unused()

    def _open_text(self, columns: list[str] | None) -> Any:
        """A reader of record batches."""
        import pyarrow as pa
        from pyarrow import csv

        if columns is not None and self._types is None:
            self._types = {
                field.name: pa.float64()
                for field in self._schema()
                if pa.types.is_integer(field.type) or pa.types.is_null(field.type)
                if field.name not in self.as_guessed
            }
        separator = "\t" if self.path.name.removesuffix(".gz").lower().endswith(".tsv") else ","
        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
            parse_options=csv.ParseOptions(delimiter=separator),
            convert_options=csv.ConvertOptions(
                null_values=list(MISSING), strings_can_be_null=True, include_columns=columns,
                timestamp_parsers=[], column_types=self._types,
            ),
        )  # fmt: skip

    def _lazy(self) -> Any:
        import polars as pl

        if self.kind == PARQUET:
            return pl.scan_parquet(self.path, glob=False)
        if self.kind == ARROW:
            return pl.scan_ipc(self.path)
        tabs = self.path.name.removesuffix(".gz").lower().endswith(".tsv")
        options: dict[str, Any] = {
            "separator": "\t" if tabs else ",", "null_values": list(MISSING),
            "infer_schema_length": GUESSED_ROWS, "glob": False,
        }  # fmt: skip
        guessed = pl.scan_csv(self.path, **options).collect_schema()
        numbers = {
            name: pl.Float64
            for name, kind in guessed.items()
            if kind.is_integer() and name not in self.as_guessed
        }
        return pl.scan_csv(self.path, schema_overrides=numbers, **options)

    def _by_polars(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        lazy = self._lazy().select(list(columns))
        for frame in lazy.collect_batches(chunk_size=batch_rows, maintain_order=True):
            yield from frame.iter_slices(batch_rows)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Errors of two libraries, each with types of its own, say which file it is."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:MOST_LETTERS]
        raise ValueError(f"{path} cannot be read as {kind_of(path)}: {text}") from error


class StoredColumns:
    """Row groups of a file of Parquet that is open: columns are read when they are asked for.

    One after the other: pyarrow takes several times the memory of a batch to read all at once.
    """

    def __init__(
        self, path: Path, file: Any, groups: list[int], columns: Sequence[str], n_rows: int
    ) -> None:
        self.path, self.file, self.groups, self.columns = path, file, groups, list(columns)
        self.shape = n_rows, len(columns)

    def __len__(self) -> int:
        return self.shape[0]

    def select(self, columns: Sequence[str]) -> StoredColumns:
        return StoredColumns(self.path, self.file, self.groups, columns, self.shape[0])

    def type_of(self, name: str) -> str:
        """As pyarrow calls it."""
        return str(self.file.schema_arrow.field(name).type)

    def holds_floats(self) -> bool:
        """Whether all columns are numbers or bool."""
        return all(self.type_of(name) in NUMBERS for name in self.columns)

    def floats(self, dtype: Any) -> np.ndarray:
        """All columns, each in a piece; nulls are NaN."""
        import pyarrow as pa

        found = np.empty(self.shape, dtype=dtype, order="F")
        for f, name in enumerate(self.columns):
            column = self._read(name)
            if column.null_count:  # of bool and integers, which NumPy has none of
                column = column.cast(pa.float32() if dtype == np.float32 else pa.float64())
            first = 0
            for chunk in column.chunks:
                found[first : first + len(chunk), f] = chunk.to_numpy(zero_copy_only=False)
                first += len(chunk)
        return found

    def _read(self, name: str) -> Any:
        with _reading(self.path):
            return self.file.read_row_groups(self.groups, [name], use_threads=False).column(0)

    def frame(self) -> Any:
        """All columns as a frame."""
        import pyarrow as pa

        return frame_of_arrow(pa.table({name: self._read(name) for name in self.columns}))


def is_arrow(batch: Any) -> bool:
    """A record batch or a table of pyarrow."""
    module = type(batch).__module__
    return module.split(".")[0] == "pyarrow" and hasattr(batch, "schema")


def frame_of_arrow(batch: Any) -> Any:
    """A record batch or a table as a frame."""
    if find_spec("polars") is not None:
        import polars as pl

        return pl.from_arrow(batch)
    if find_spec("pandas") is not None:
        return batch.to_pandas()
    raise ImportError("Batches of pyarrow need polars or pandas: pip install polars")
