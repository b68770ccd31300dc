"""Predictions batch by batch, into a file."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import is_array, to_numpy
from ensemble_gpu.batches.bar import RowsBar
from ensemble_gpu.batches.batches import Batches, Part
from ensemble_gpu.data.parameters import check_choice

METHODS = ("predict", "predict_proba", "decision_function")
PREDICTION, PROBABILITY, DECISION = NOUNS = ("prediction", "probability", "decision")


def predict_batches(estimator: Any, batches: Batches, path: Any, *, method: str = "predict") -> int:
    """Predict batch by batch into a file; one batch and its predictions are in memory at a time.

    Parameters
    ----------
    estimator : fitted estimator
        Of this package or with scikit-learn's interface.
    batches : Batches
        Batches of X; y and weights that they have are left aside. Where columns have names and the
        estimator knows those of its features, these are taken.
    path : path
        ``.parquet`` (needs pyarrow), ``.csv``, or ``.npy`` (numbers: an array [n] or [n, K]). The
        columns are "prediction", or one for each class: "probability_a", "decision_a", and of
        several quantiles "prediction_0.05". A file that exists is replaced once all predictions
        are there; an error leaves it as it was.
    method : {"predict", "predict_proba", "decision_function"}, default="predict"

    Returns
    -------
    int
        How many rows were predicted.

    Examples
    --------
    >>> from ensemble_gpu import BoostingRegressor, Batches, predict_batches
    >>> import numpy as np
    >>> parts = [(np.arange(10.0)[:, None] + k, np.arange(10.0)) for k in range(2)]
    >>> model = BoostingRegressor(n_estimators=2).fit(Batches(parts))
    >>> predict_batches(model, Batches(parts), "predictions.npy")
    20
    """
    if not isinstance(batches, Batches):
        raise TypeError(f"batches must be Batches; got {type(batches).__name__}.")
    check_choice("method", method, METHODS)
    if not hasattr(estimator, method):
        raise TypeError(f"method={method!r} is none of a {type(estimator).__name__}.")
    path = Path(path)
    kind = WRITERS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"path must end with one of {', '.join(WRITERS)}; got {str(path)!r}.")
    names = getattr(estimator, "feature_names_in_", None)
    features = None if names is None or batches.features is not None else list(names)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    writer, n_rows = kind(beside), 0
    bar = RowsBar("predict", batches.progress, batches.n_rows)
    try:
        for part in batches.parts(features=features):
            found = _predicted(estimator, method, part)
            writer.write(found, _names(estimator, method, found))
            n_rows += len(found)
            bar(len(found))
        writer.close()
        if n_rows == 0:
            raise ValueError("Batches hold no rows: at least one row is required.")
        os.replace(beside, path)
    finally:
        bar.close()
        with suppress(Exception):
            writer.close()
        beside.unlink(missing_ok=True)
    return n_rows


def _predicted(estimator: Any, method: str, part: Part) -> np.ndarray:
    try:
        found = getattr(estimator, method)(part.loaded())
    except (TypeError, ValueError) as error:
        raise type(error)(f"{part.name}: {error}") from error
    return to_numpy(found) if is_array(found) else np.asarray(found)


def _names(estimator: Any, method: str, found: np.ndarray) -> list[str]:
    """Names of the columns."""
    noun = NOUNS[METHODS.index(method)]
    if found.ndim == 1:
        return [noun]
    ends = getattr(estimator, "classes_", None)
    if ends is None:
        ends = getattr(estimator, "quantile", None)
    ends = range(found.shape[1]) if ends is None else np.asarray(ends).tolist()
    return [f"{noun}_{end:g}" if isinstance(end, float) else f"{noun}_{end}" for end in ends]


class Writer(Protocol):
    def __init__(self, path: Path) -> None: ...

    def write(self, found: np.ndarray, names: list[str]) -> None:
        """Predictions [n] or [n, columns] of a batch."""
        ...

    def close(self) -> None: ...


def _columns(found: np.ndarray) -> list[np.ndarray]:
    return [found] if found.ndim == 1 else list(found.T)


class ParquetWriter:
    def __init__(self, path: Path) -> None:
        if find_spec("pyarrow") is None:
            raise ImportError("path: files of Parquet need pyarrow: pip install pyarrow")
        self.path = path
        self.file: Any = None

    def write(self, found: np.ndarray, names: list[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        columns = [pa.array(np.ascontiguousarray(column)) for column in _columns(found)]
        table = pa.table(columns, names=names)
        if self.file is None:
            self.file = parquet.ParquetWriter(self.path, table.schema)
        self.file.write_table(table)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


class TextWriter:
    """Numbers as Python writes them: reading them back gives the same bits."""

    def __init__(self, path: Path) -> None:
        import csv

        self.file = path.open("w", newline="", encoding="utf-8")
        self.lines, self.begun = csv.writer(self.file, lineterminator="\n"), False

    def write(self, found: np.ndarray, names: list[str]) -> None:
        if not self.begun:
            self.lines.writerow(names)
            self.begun = True
        self.lines.writerows(found.reshape(len(found), -1).tolist())

    def close(self) -> None:
        self.file.close()


class ArrayWriter:
    """An array of NumPy; the header is written again when the number of rows is known."""

    def __init__(self, path: Path) -> None:
        self.file, self.n_rows = path.open("wb"), 0
        self.like = np.zeros(0)

    def write(self, found: np.ndarray, names: list[str]) -> None:
        if found.dtype.kind not in "biuf":
            raise ValueError(
                f"path: a .npy file holds numbers; predictions have dtype {found.dtype}. Write "
                ".parquet or .csv."
            )
        if self.n_rows == 0:
            self.like = found[:0]
            self._head(0)
        self.n_rows += len(found)
        self.file.write(np.ascontiguousarray(found, dtype=self.like.dtype).data)

    def _head(self, n_rows: int) -> None:
        """Its length does not depend on the number of rows."""
        told = {
            "descr": np.lib.format.dtype_to_descr(self.like.dtype), "fortran_order": False,
            "shape": (n_rows, *self.like.shape[1:]),
        }  # fmt: skip
        self.file.seek(0)
        np.lib.format.write_array_header_1_0(self.file, told)

    def close(self) -> None:
        if self.file.closed:
            return
        if self.n_rows:
            self._head(self.n_rows)
        self.file.close()


WRITERS: dict[str, type[Writer]] = {
    ".parquet": ParquetWriter, ".csv": TextWriter, ".npy": ArrayWriter,
}  # fmt: skip
