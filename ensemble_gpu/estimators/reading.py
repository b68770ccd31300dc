"""The one reader: X, y and sample_weight of `fit`, for every estimator.

    read             the user's arrays -> Reading: validated rows, which of them take part, which
                     features are categories
    read_validation  the same for the rows of a validation loss
    Reading.encoded  codes in place of categories, learnt from the rows that take part
    training_data    -> TrainingData: encoded rows, and the engine that trains on them

`home` is where the user's X came from, and where results go. `where` is where the work is done: the
namespace and the device of the rows. An estimator class has the method that reads its target.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ensemble_gpu.arrays.devices import from_host, to_workplace
from ensemble_gpu.arrays.namespace import Where, check_same_place, locate
from ensemble_gpu.arrays.plain import unmasked
from ensemble_gpu.arrays.positions import encode
from ensemble_gpu.arrays.sparse import check_dense, is_sparse
from ensemble_gpu.data.categories import Categories, Chosen, learn
from ensemble_gpu.data.rows import Binned, Rows, bin_rows
from ensemble_gpu.data.validation import check_weights
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.protocol import Engine


class Reader(Protocol):
    """What the reader needs of an estimator."""

    device: str | None

    def _device_of_rows(self) -> str | None:
        """`device`, as far as it may move rows to a GPU."""
        ...

    def _read_features(self, X: Any) -> tuple[Any, Chosen]:
        """X of `fit` as floats, and which features are categories."""
        ...

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """(target, weights) of the training rows, validated; sets what predictions need."""
        ...


class ValidationReader(Reader, Protocol):
    """What it needs besides of an estimator that takes validation rows."""

    def _read_features_again(self, X: Any, chosen: Chosen, name: str) -> Any:
        """More rows as floats, once their columns are known to be those of `fit`."""
        ...

    def _read_validation_target(self, y: Any, n_rows: int, where: Where) -> Any: ...


@dataclass(frozen=True)
class Reading:
    """Validated rows; `keep` marks those that take part (None: all), `chosen` the categories."""

    rows: Rows
    keep: Any | None
    chosen: Chosen
    where: Where
    home: Where

    def seen_by(self, engine: Engine) -> Reading:
        """The same memory, as arrays that the engine takes."""
        rows = self.rows.seen_by(engine)
        keep = None if self.keep is None else engine.view(self.keep)
        return replace(self, rows=rows, keep=keep, where=locate(rows.X))

    def encoded(self, max_bins: Any) -> tuple[Rows, Categories]:
        """Rows with codes in place of categories, at most `max_bins` a feature (None: no limit)."""
        most = int(max_bins) if isinstance(max_bins, numbers.Integral) else MAX_BINS_LIMIT
        learnt_from = None if self.keep is None else self.where.xp.nonzero(self.keep)[0]
        categories = learn(self.rows.X, self.chosen, most, self.where, learnt_from)
        return encoded_by(categories, self.rows, self.where), categories


@dataclass(frozen=True)
class TrainingData:
    """Encoded rows as the engine takes them; `keep` marks those that take part (None: all)."""

    engine: Engine
    rows: Rows
    keep: Any | None
    categories: Categories
    where: Where

    def binned(self, max_bins: int | None, *, n_ranges: int | None) -> Binned:
        """The rows that take part, binned (data/rows.py)."""
        return bin_rows(
            self.engine, self.rows, self.keep, max_bins, self.categories, n_ranges=n_ranges
        )


def read(estimator: Reader, X: Any, y: Any, sample_weight: Any) -> Reading:
    """Training rows; those of weight zero take no part."""
    home = locate(X)
    X, y, w = _arrived(estimator.device, home, X=X, y=y, sample_weight=sample_weight)
    where = locate(X)
    X, chosen = estimator._read_features(unmasked(X))
    target, weights = estimator._read_target(y, X.shape[0], w, where)
    rows = _moved(Rows(X, target, weights), estimator._device_of_rows())
    keep = None if rows.weights is None else rows.weights > 0.0
    return Reading(rows, keep, chosen, locate(rows.X), home)


def read_validation(
    estimator: ValidationReader, X: Any, y: Any, sample_weight: Any, training: Reading
) -> Rows | None:
    """Rows of a validation loss beside those of training; None where X is None."""
    if X is None:
        if y is not None or sample_weight is not None:
            raise ValueError("y_val and sample_weight_val need X_val; X_val is None.")
        return None
    X, y, w = _arrived(
        estimator.device, training.home, X_val=X, y_val=y, sample_weight_val=sample_weight
    )
    where = locate(X)
    X = estimator._read_features_again(unmasked(X), training.chosen, "X_val")
    target = estimator._read_validation_target(y, X.shape[0], where)
    weights = check_weights(w, X.shape[0], where, "sample_weight_val")
    return _moved(Rows(X, target, weights), estimator._device_of_rows())


def training_data(reading: Reading, engine: Engine, max_bins: Any) -> TrainingData:
    """What the engine trains on, of rows that it sees already."""
    rows, categories = reading.encoded(max_bins)
    return TrainingData(engine, rows, reading.keep, categories, reading.where)


def encoded_by(categories: Categories, rows: Rows, where: Where) -> Rows:
    """Rows with codes in place of known categories."""
    return replace(rows, X=encode(rows.X, categories.values, where))


def _arrived(device: str | None, home: Where, **arrays: Any) -> list[Any]:
    """The user's arrays where they can be worked on; all must be of one library and device."""
    if device != "cpu":
        check_same_place(home, **arrays)
    return [to_workplace(array, device) for array in arrays.values()]


def _moved(rows: Rows, device: str | None) -> Rows:
    """Validated rows, moved once to the GPU where `device` asks for one; sparse ones stay."""
    if is_sparse(rows.X):
        if device == "cuda":
            check_dense(rows.X, "device='cuda'")
        return rows
    return Rows(*(from_host(array, device) for array in (rows.X, rows.target, rows.weights)))
