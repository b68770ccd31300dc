"""Files to batches of rows: Parquet, Arrow and CSV, by pyarrow or polars, a part at a time.

A batch is a frame of polars where that is installed, else of pandas.
"""

from __future__ import annotations

import glob
from collections.abc import Collection, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PARQUET, ARROW, TEXT = "parquet", "arrow", "csv"
SUFFIXES = {
    ".parquet": PARQUET, ".pq": PARQUET, ".arrow": ARROW, ".feather": ARROW, ".ipc": ARROW,
    ".csv": TEXT, ".tsv": TEXT, ".txt": TEXT,
}  # fmt: skip
# What stands for a missing value in a text.
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL")
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
        if find_spec("pyarrow") is None:
            return self._lazy().collect_schema().names()
        return self._schema().names

    def n_rows(self) -> int | None:
        """How many rows there are, where the file says so."""
        if self.kind != PARQUET or find_spec("pyarrow") is None:
            return None
        import pyarrow.parquet as parquet

        return parquet.read_metadata(self.path).num_rows

    def frames(self, columns: Sequence[str], batch_rows: int) -> Iterator[Any]:
        """The rows in order, these columns of them, at most so many at a time."""
        if find_spec("pyarrow") is None:
            yield from self._by_polars(columns, batch_rows)
            return
        for batch in self._arrow_batches(columns, batch_rows):
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

            with parquet.ParquetFile(self.path) as file:
                yield from file.iter_batches(batch_rows, columns=list(columns))
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
