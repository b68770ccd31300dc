"""Batches to what a fit reads: targets and weights of all rows, X in passes.

The first walk is for y, the weights and the labels of categorical columns: of files, only these
columns are read. Every later one makes floats of each batch, as of all rows in one array.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, is_array, locate
from ensemble_gpu.arrays.plain import unmasked
from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.batches.bar import RowsBar
from ensemble_gpu.batches.batches import Batches, Part
from ensemble_gpu.batches.columns import SMALL, as_floats, float_type
from ensemble_gpu.batches.files import SMALL_NUMBERS, StoredColumns
from ensemble_gpu.batches.memory import Codebook
from ensemble_gpu.batches.stream import Source, Stream
from ensemble_gpu.data.categories import Chosen, found_labels, number, sorted_labels
from ensemble_gpu.data.frames import Table, check_columns, frame_of, table_of
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.validation import (
    check_length,
    check_numbers,
    check_offset,
    check_shape,
    naming,
    refuse_mask,
)
from ensemble_gpu.estimators.reading import Reading

# Whether a column is one of categories, the bits of floats that hold its values, and its type.
Kind = tuple[bool, int, str]
# Rows of a file from which the columns are known.
HEAD_ROWS = 100


def read_batches(
    batches: Batches, estimator: Any, y: Any, sample_weight: Any, init_score: Any, qid: Any
) -> Reading:
    """The rows of batches, read for an estimator."""
    _check(estimator, y=y, sample_weight=sample_weight, qid=qid)
    memory = Codebook(batches.codes_path)
    features = Features(estimator, batches)
    y, w = features.first_walk()
    n_rows = len(y)
    target, weights = estimator._read_target(y, n_rows, w, NUMPY)
    if init_score is not None:
        init_score = check_offset(
            to_workplace(init_score), n_rows, estimator._n_outputs(), NUMPY, "init_score"
        )
    features.n_rows = n_rows
    shape = n_rows, estimator.n_features_in_
    source = Source(features.walk, shape, features.dtype, target, memory)
    keep = None if weights is None else weights > 0.0
    rows = Rows(Stream(source), target, weights, init_score)
    return Reading(rows, keep, features.chosen, NUMPY, NUMPY)


def _check(estimator: Any, **beside: Any) -> None:
    """Raise where the estimator or what is given beside the batches does not go with them."""
    why = estimator._why_no_batches()
    if why is not None:
        raise TypeError(f"X must be an array, a frame or a list here; got Batches, but {why}.")
    for name, given in beside.items():
        if given is not None:
            raise ValueError(
                f"{name} must be None where X is Batches, which hold what belongs to their rows; "
                f"got {type(given).__name__}."
            )
    if estimator._device_of_rows() == "cuda":
        raise ValueError(
            "device must be None, 'cpu' or 'auto' where X is Batches, which the CPU trains on; got "
            "'cuda'."
        )


class Features:
    """What all batches have in common, learnt from the first, and each of them as floats."""

    n_rows: int

    def __init__(self, estimator: Any, batches: Batches) -> None:
        self.estimator, self.batches = estimator, batches
        with closing(batches.parts(batch_rows=min(HEAD_ROWS, batches.batch_rows))) as parts:
            head = next(parts, None)
            if head is None:
                raise ValueError("Batches hold no rows: at least one row is required.")
            X = self._arrived(head)
        with _about(head):
            read, self.chosen = estimator._read_features(X)
        frame = frame_of(X)
        self.first = head.name
        self.names = None if frame is None else list(frame.names)
        self.kinds = None if frame is None else [_kind(frame, f) for f in range(read.shape[1])]
        self.given_type = getattr(X, "dtype", None) if frame is None else None
        self.dtype = read.dtype if frame is None else float_type(number(X, self.chosen.labels))
        self.checked = False

    def first_walk(self) -> tuple[np.ndarray, np.ndarray | None]:
        """y and the weights of all rows; the labels of categories are learnt."""
        labelled = sorted(self.chosen.labels)
        columns = None if self.names is None else [self.names[f] for f in labelled]
        found: dict[int, dict[Any, None]] = {f: {} for f in labelled}
        targets: list[np.ndarray] = []
        bar = RowsBar("labels", self.batches.progress, self.batches.n_rows)
        weights: list[np.ndarray] = []
        for part in self.batches.parts(columns):
            self._check_named(part)
            targets.append(_target(part, targets))
            bar(len(targets[-1]))
            weights += _weights(part, len(targets[-1]), bool(weights), len(targets) == 1)
            for i, f in enumerate(labelled):
                table = self._table(part, f)
                own = f if self.names is None else i
                found[f] |= dict.fromkeys(found_labels(table, own))
        bar.close()
        labels = {f: sorted_labels(list(known)) for f, known in found.items()}
        self.chosen = Chosen(self.chosen.features, labels, self.chosen.names)
        return np.concatenate(targets), np.concatenate(weights) if weights else None

    def _check_named(self, part: Part) -> None:
        """Raise where y or the weights were named and are not there."""
        named = (("label", self.batches.label, part.y), ("weight", self.batches.weight, part.w))
        for parameter, name, found in named:
            if name is not None and found is None:
                raise ValueError(f"{parameter}={name!r} is no column of {part.name}.")

    def _table(self, part: Part, feature: int) -> Table:
        table = table_of(unmasked(part.loaded()))
        if table is None:
            raise ValueError(
                f"{part.name} must hold labels in categorical feature {feature}, as {self.first} "
                f"does; it holds {getattr(part.X, 'dtype', type(part.X).__name__)}."
            )
        return table

    def walk(self, label: str, features: Sequence[int] | None) -> Iterator[np.ndarray]:
        """Some features (None: all) of batch after batch, as floats."""
        columns = None
        if features is not None and self.names is not None:
            columns = [self.names[f] for f in features]
        first, bar = 0, RowsBar(label, self.batches.progress, lambda: self.n_rows)
        for part in self.batches.parts(columns, targets=False):
            block = self._floats(part, features)
            first += len(block)
            if first > self.n_rows:
                break
            bar(len(block))
            yield block
            del block  # before the next one is read
        bar.close()
        if first != self.n_rows:
            raise ValueError(
                f"Batches must give the same rows at every walk; they gave {self.n_rows:,} rows "
                f"first and {'more' if first > self.n_rows else f'{first:,}'} for the {label}."
            )
        self.checked |= features is None

    def _arrived(self, part: Part) -> Any:
        """X as an array of NumPy or as a frame."""
        X = unmasked(part.loaded())
        if is_sparse(X):
            raise TypeError(
                f"{part.name} is sparse; batches must be dense: arrays, frames or lists."
            )
        if is_array(X):
            where = locate(X)
            X = to_workplace(X, None)
            if locate(X) is not NUMPY:
                raise TypeError(
                    f"{part.name} is {where}; batches must be on the host. Copy each one there."
                )
        elif frame_of(X) is None:
            with naming(part.name):
                X = np.asarray(X)
        return X

    def _floats(self, part: Part, features: Sequence[int] | None) -> np.ndarray:
        every = range(self.estimator.n_features_in_) if features is None else features
        labels = {i: self.chosen.labels[f] for i, f in enumerate(every) if f in self.chosen.labels}
        stored = part.X
        if isinstance(stored, StoredColumns) and not labels and stored.holds_floats():
            kinds = [(False, _bits(stored.type_of(n)), stored.type_of(n)) for n in stored.columns]
            self._check_columns(part, stored.columns, kinds, features)
            X = stored.floats(self.dtype)
            self._check_finite(part, X)
            return X
        X = self._arrived(part)
        frame = frame_of(X)
        if (frame is None) != (self.names is None):
            raise ValueError(
                f"{part.name} is {'an array' if frame is None else 'a frame'}; {self.first} is "
                f"{'a frame' if frame is None else 'an array'}: batches must be of one kind."
            )
        if frame is None:
            self._check_array(part, X)
            X = X if features is None else X[:, list(features)]
            X = number(X, labels)
            with naming(part.name):
                X = X.astype(np.float64) if X.dtype.kind in "OUST" else X
            X = check_numbers(X, NUMPY, part.name)
        else:
            kinds = [_kind(frame, i) for i in range(len(frame.names))]
            self._check_columns(part, list(frame.names), kinds, features)
            with _about(part):
                X = number(X, labels)
                check_columns(X, "X", self.estimator._about_labels)
            X = as_floats(X, self.dtype)
        self._check_finite(part, X)
        return X

    def _check_finite(self, part: Part, X: np.ndarray) -> None:
        """In the first walk that reads all features."""
        if not self.checked:
            with _about(part):
                self.estimator._check_finite(X, NUMPY, "X")

    def _check_array(self, part: Part, X: np.ndarray) -> None:
        with _about(part):
            check_shape(X, "X")
        p = self.estimator.n_features_in_
        if X.shape[1] != p:
            raise ValueError(f"{part.name} has {X.shape[1]} features; {self.first} has {p}.")
        objects = X.dtype.kind in "OUST"
        read = np.float64 if objects else check_numbers(X[:0], NUMPY, part.name).dtype
        if read != self.dtype:
            raise ValueError(
                f"{part.name} has dtype {X.dtype}; {self.first} has dtype {self.given_type}."
            )

    def _check_columns(
        self, part: Part, found: list, kinds: Sequence[Kind], features: Sequence[int] | None
    ) -> None:
        """Raise where columns of these names and kinds are not those of the first batch."""
        assert self.names is not None
        assert self.kinds is not None
        at = range(len(self.names)) if features is None else features
        names = [self.names[f] for f in at]
        if found != names:
            raise ValueError(f"{part.name} has the features {found!r}; {self.first} has {names!r}.")
        for i, f in enumerate(at):
            known, own = self.kinds[f], kinds[i]
            plain = known[0] == own[0] and own[1] <= known[1]
            if not plain and f not in self.chosen.labels:
                raise ValueError(
                    f"{part.name} has dtype {own[2]} in feature {names[i]!r}; {self.first} has "
                    f"dtype {known[2]}."
                )


def _kind(frame: Any, feature: int) -> Kind:
    dtype = str(frame.dtypes[feature])
    return frame.is_category(feature), _bits(dtype), dtype


def _bits(dtype: str) -> int:
    """Of floats that hold the values of a column."""
    return 32 if dtype.lower() in (*SMALL, *SMALL_NUMBERS) else 64


class _about:
    """Errors about X in the block say which batch it is of."""

    def __init__(self, part: Part) -> None:
        self.name = part.name

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, ValueError | TypeError) and self.name not in str(error):
            raise type(error)(f"{self.name}: {error}") from error


def _target(part: Part, before: Sequence[np.ndarray]) -> np.ndarray:
    """y of a batch as an array of NumPy, of a kind that goes with those before."""
    if part.y is None:
        raise ValueError(
            f"{part.name} has no y: fit takes tuples (X, y), or columns of which label= names one."
        )
    refuse_mask(part.y, f"y of {part.name}")
    y = np.asarray(to_workplace(part.y, "cpu"))
    if y.ndim == 0:
        raise ValueError(f"y of {part.name} must be 1-dimensional; got a single value.")
    check_length(f"y of {part.name}", len(y), "X", part.n_rows)
    if before:
        old, new = (_group(array) for array in (before[0], y))
        if old != new or before[0].shape[1:] != y.shape[1:]:
            raise ValueError(
                f"y of {part.name} has dtype {y.dtype} and shape {y.shape}; that of the first "
                f"batch has dtype {before[0].dtype} and shape {before[0].shape}."
            )
    return y


def _group(array: np.ndarray) -> str:
    kind = array.dtype.kind
    return "numbers" if kind in "biufc" else "texts" if kind in "UT" else kind


def _weights(part: Part, n_rows: int, some: bool, is_first: bool) -> list[np.ndarray]:
    """The weights of a batch; all batches have them or none."""
    if part.w is None and not some:
        return []
    if part.w is None or (not some and not is_first):
        has, others = ("no", "have") if part.w is None else ("a", "have no")
        raise ValueError(
            f"{part.name} has {has} sample_weight; the batches before {others} "
            f"{'one' if part.w is None else 'such'}."
        )
    w = part.w
    refuse_mask(w, f"sample_weight of {part.name}")
    w = np.asarray(to_workplace(w, "cpu"))
    w = np.full(n_rows, w) if w.ndim == 0 else w
    check_length(f"sample_weight of {part.name}", len(w), "X", n_rows)
    return [w]
