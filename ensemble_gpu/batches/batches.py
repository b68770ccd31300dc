"""`Batches`: rows that are read a part at a time, from files or from the user's program."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ensemble_gpu.arrays.streamed import RowSource
from ensemble_gpu.batches.columns import names_of, select, values
from ensemble_gpu.batches.files import (
    File,
    StoredColumns,
    expanded,
    frame_of_arrow,
    is_arrow,
)
from ensemble_gpu.data.frames import frame_of
from ensemble_gpu.data.parameters import check_flag, check_integer

# Names that a message lists.
MOST_NAMES = 10


@dataclass(frozen=True)
class Part:
    """One batch: X, and y and w where it has them; `name` is for errors.

    X is an array, a frame or a list; or columns of a file.
    """

    name: str
    n_rows: int
    X: Any
    y: Any
    w: Any

    def loaded(self) -> Any:
        """X in memory."""
        return self.X.frame() if isinstance(self.X, StoredColumns) else self.X


class Batches(RowSource):
    """Rows in batches, for a `fit` whose X does not fit into memory.

    ``fit(Batches(...))`` gives the model that ``fit(X, y)`` gives of all rows in one array, bit
    for bit. What is kept of the rows is a byte a cell (its bin) and at most 32 bytes a row beside
    what the fit itself needs; a batch is there as floats one at a time. The batches are walked at
    least twice: for edges of bins, and for codes.

    Parameters
    ----------
    source : path, pattern, list of these; list of batches; or callable
        - Files of Parquet, Arrow or CSV (.parquet, .pq, .arrow, .feather, .ipc, .csv, .tsv; texts
          also .gz), or patterns of them (``"train-*.parquet"``, in order of their names): their
          columns are taken by name. Read by pyarrow, or by polars where that is missing.
        - A list, or another object that can be iterated over as often as wanted, of batches: a
          tuple ``(X, y)`` or ``(X, y, sample_weight)`` of arrays or frames; or a frame of pandas
          or polars, a record batch or a table of pyarrow, whose columns are taken by name.
        - A callable without arguments that returns an iterator over batches, from the start at
          every call.

        A generator can be walked once only, and is refused: pass the function that makes it. Every
        walk must give the same rows in the same order.
    label, weight : str or None
        Columns of y and of the sample weights, where columns have names.
    features : list of str or None
        Columns of X; None: all others. They must be the same in all batches.
    batch_rows : int, default=1,048,576
        Rows that are read from a file at a time; of Parquet, row groups of at most so many take
        the least memory. The model does not depend on it.
    codes_path : path or None
        A file that must not exist: it is made for the codes, in place of memory, and is gone once
        the fit has ended, however it ends. The system keeps in memory what it has room for.
    progress : bool, default=False
        A bar on standard error for each pass.

    Notes
    -----
    `fit` of AdaBoostClassifier, BoostingClassifier and BoostingRegressor (without `estimator`),
    of decision trees and of random forests (without `oob_score` and `capacity`) takes batches. It
    trains on the CPU.

    Examples
    --------
    >>> import numpy as np
    >>> from ensemble_gpu import AdaBoostClassifier, Batches
    >>> def batches():
    ...     for seed in range(3):
    ...         X = np.random.default_rng(seed).normal(size=(100, 2))
    ...         yield X, X[:, 0] > X[:, 1]
    >>> AdaBoostClassifier(n_estimators=10).fit(Batches(batches)).n_features_in_
    2
    """

    def __init__(
        self,
        source: Any,
        *,
        label: str | None = None,
        weight: str | None = None,
        features: Sequence[str] | None = None,
        batch_rows: int = 1 << 20,
        codes_path: Any = None,
        progress: bool = False,
    ) -> None:
        self.source, self.label, self.weight, self.features = source, label, weight, features
        self.batch_rows, self.codes_path, self.progress = batch_rows, codes_path, progress
        check_integer("batch_rows", batch_rows, 1)
        check_flag("progress", progress)
        for name, value in (("label", label), ("weight", weight)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} must be the name of a column or None; got {value!r}.")
        if features is not None:
            _check_features(features, label, weight)
        if codes_path is not None and not isinstance(codes_path, str | os.PathLike):
            raise TypeError(f"codes_path must be a path or None; got {codes_path!r}.")
        self._files = _files(source)
        if self._files is None:
            _check_walkable(source)

    def reading(self, estimator: Any, y: Any, sample_weight: Any, init_score: Any, qid: Any) -> Any:
        from ensemble_gpu.batches.reading import read_batches

        return read_batches(self, estimator, y, sample_weight, init_score, qid)

    def n_rows(self) -> int | None:
        """How many there are, where that is known without reading them."""
        rows = [File(path, ()).n_rows() for path in self._files or ()]
        known = [n for n in rows if n is not None]
        return sum(known) if rows and len(known) == len(rows) else None

    def parts(
        self, columns: Sequence[Any] | None = None, batch_rows: int | None = None,
        features: Sequence[Any] | None = None, targets: bool = True,
    ) -> Generator[Part]:  # fmt: skip
        """The batches that have rows.

        `columns` (None: all) are the features that X must have at least, where columns have names;
        `features` stand in for those of the parameter. Without `targets`, files are read without.
        """
        if self._files is not None:
            rows = batch_rows or self.batch_rows
            yield from self._of_files(columns, rows, features, targets)
            return
        walk: Iterable[Any] = self.source() if callable(self.source) else self.source
        if not hasattr(walk, "__iter__"):
            raise TypeError(
                f"source() must return an iterator over batches; got {type(walk).__name__}."
            )
        for number, batch in enumerate(walk):
            part = self._part(f"batch {number}", batch, columns, features)
            if part.n_rows:
                yield part

    def _of_files(
        self, columns: Sequence[Any] | None, batch_rows: int, features: Sequence[Any] | None,
        targets: bool,
    ) -> Iterator[Part]:  # fmt: skip
        number = 0
        kept = [name for name in (self.label, self.weight) if name is not None]
        assert self._files is not None
        for path in self._files:
            file = File(path, kept[:1])
            names = file.names()
            own = self._features_among(names, str(path), features)
            own = own if columns is None else list(columns)
            there = [name for name in kept if name in names and targets]
            wanted = [*own, *(name for name in there if name not in own)]
            for frame in file.frames(wanted, batch_rows):
                part = self._of_frame(f"batch {number} ({path.name})", frame, own)
                number += 1
                if part.n_rows:
                    yield part

    def _part(
        self, name: str, batch: Any, columns: Sequence[Any] | None, features: Sequence[Any] | None
    ) -> Part:
        if isinstance(batch, tuple):
            if not 1 <= len(batch) <= 3:
                raise ValueError(
                    f"{name} must be (X, y) or (X, y, sample_weight); got a tuple of {len(batch)}."
                )
            X, y, w = (*batch, None, None)[:3]
            X = frame_of_arrow(X) if is_arrow(X) else X
            if columns is not None and frame_of(X) is not None:
                X = select(X, columns)
            return Part(name, _n_rows(X), X, _column(y), _column(w))
        batch = frame_of_arrow(batch) if is_arrow(batch) else batch
        if frame_of(batch) is None:
            if not hasattr(batch, "shape"):
                raise TypeError(
                    f"{name} must be (X, y), (X, y, sample_weight), a frame, a record batch of "
                    f"pyarrow, or to predict an array; got {type(batch).__name__}."
                )
            return Part(name, _n_rows(batch), batch, None, None)
        own = self._features_among(names_of(batch), name, features)
        return self._of_frame(name, batch, own if columns is None else columns)

    def _of_frame(self, name: str, frame: Any, columns: Sequence[Any]) -> Part:
        named = [one for one in (self.label, self.weight) if one is not None]
        kept = [one for one in named if one in names_of(frame)]
        targets = frame
        if isinstance(frame, StoredColumns) and kept:
            targets = frame.select(kept).frame()
        y, w = (values(targets, one) if one in kept else None for one in (self.label, self.weight))
        return Part(name, len(frame), select(frame, columns), y, w)

    def _features_among(self, names: list, where: str, features: Sequence[Any] | None) -> list[Any]:
        """The features in a file or frame that has columns of these names."""
        wanted = self.features if features is None else features
        if wanted is None:
            return [name for name in names if name not in (self.label, self.weight)]
        absent = [name for name in wanted if name not in names]
        if absent:
            raise ValueError(
                f"{where} lacks the features {_listed(absent)}; it has the columns "
                f"{_listed(names)}."
            )
        return list(wanted)


def _files(source: Any) -> list[Path] | None:
    """The files that are meant, None where none are."""
    if isinstance(source, str | os.PathLike):
        return expanded([source])
    named = isinstance(source, list | tuple) and len(source) > 0
    paths = [isinstance(one, str | os.PathLike) for one in source] if named else [False]
    return expanded(source) if all(paths) else None


def _check_walkable(source: Any) -> None:
    """Raise unless the batches can be walked more than once."""
    if callable(source) and not hasattr(source, "__iter__"):
        return
    if frame_of(source) is not None or is_arrow(source) or isinstance(source, np.ndarray | dict):
        raise TypeError(
            f"source must be paths, a list of batches or a callable; got a {type(source).__name__}:"
            " put it into a list, as its only batch."
        )
    if not hasattr(source, "__iter__"):
        raise TypeError(
            "source must be paths, batches that can be iterated over, or a callable that returns "
            f"an iterator over them; got {source!r}."
        )
    if hasattr(source, "__next__"):
        raise TypeError(
            f"source is a {type(source).__name__}, which can be walked once only; batches are "
            "walked at least twice. Give the function that makes it (without calling it), or a "
            "list."
        )


def _check_features(features: Any, label: str | None, weight: str | None) -> None:
    if isinstance(features, str) or not isinstance(features, Sequence) or not len(features):
        raise TypeError(f"features must be a list of names of columns or None; got {features!r}.")
    double = sorted({str(name) for name in features if list(features).count(name) > 1})
    if double:
        raise ValueError(f"features names columns more than once: {double!r}.")
    for name, value in (("label", label), ("weight", weight)):
        if value is not None and value in features:
            raise ValueError(f"features holds {value!r}, which is the {name}.")


def _column(array: Any) -> Any:
    """y or weights of a tuple; those of pyarrow as an array."""
    module = type(array).__module__.split(".")[0]
    return np.asarray(array) if module in ("pyarrow", "polars") else array


def _n_rows(X: Any) -> int:
    """One where X is a single value: it is refused further on."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X) if hasattr(X, "__len__") else 1
    return int(shape[0]) if len(shape) else 1


def _listed(names: Sequence[Any]) -> str:
    rest = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return ", ".join([*map(repr, names[:MOST_NAMES]), *rest])
