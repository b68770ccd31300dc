"""The one reader: X, y and sample_weight of `fit`, for every estimator.

    read             the user's arrays -> Reading: validated rows, which of them take part, which
                     features are categories
    read_validation  the same for the rows of a validation loss
    Reading.encoded  codes in place of categories, learnt from the rows that take part
    shared_bins      bins of all rows, for several fits on some of them
    training_data    -> TrainingData: encoded rows, and the engine that trains on them

`home` is where the user's X came from, and where results go. `where` is where the work is done: the
namespace and the device of the rows. An estimator class has the method that reads its target.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

from ensemble_gpu.arrays.devices import from_host, to_workplace
from ensemble_gpu.arrays.namespace import Where, check_same_place, locate
from ensemble_gpu.arrays.plain import unmasked
from ensemble_gpu.arrays.positions import encode
from ensemble_gpu.arrays.sparse import check_dense, is_sparse
from ensemble_gpu.arrays.streamed import RowSource
from ensemble_gpu.data.bins import PartBins, PartTables, SharedBins
from ensemble_gpu.data.categories import Categories, Chosen, learn
from ensemble_gpu.data.groups import Groups, read_groups, read_weights
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import (
    Binned,
    OrderedRows,
    Rows,
    bin_by,
    bin_rows,
    order_rows,
    positions,
)
from ensemble_gpu.data.validation import check_offset, check_weights
from ensemble_gpu.kernels.edges import MAX_BINS_LIMIT
from ensemble_gpu.kernels.protocol import Engine, Layout
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.kernels.team import Team, current_team


class Reader(Protocol):
    """What the reader needs of an estimator."""

    device: str | None
    n_jobs: int | None
    max_bins: int | None
    _bins: SharedBins | PartBins | None

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

    _needs_queries: bool

    def _read_features_again(self, X: Any, chosen: Chosen, name: str) -> Any:
        """More rows as floats, once their columns are known to be those of `fit`."""
        ...

    def _read_validation_target(self, y: Any, n_rows: int, where: Where, name: str) -> Any: ...

    def _n_outputs(self) -> int:
        """Outputs of the model, once the target has been read."""
        ...


@dataclass(frozen=True)
class Reading:
    """Validated rows; `keep` marks those that take part (None: all), `chosen` the categories."""

    rows: Rows
    keep: Any | None
    chosen: Chosen
    where: Where
    home: Where
    bins: SharedBins | PartBins | None = None

    def seen_by(self, engine: Engine) -> Reading:
        """The same memory, as arrays that the engine takes."""
        rows = self.rows.seen_by(engine)
        keep = None if self.keep is None else engine.view(self.keep)
        return replace(self, rows=rows, keep=keep, where=locate(rows.X))

    def encoded(self, max_bins: Any) -> tuple[Rows, Categories]:
        """Rows with codes in place of categories, at most `max_bins` a feature (None: no limit)."""
        most = int(max_bins) if isinstance(max_bins, numbers.Integral) else MAX_BINS_LIMIT
        learnt_from = None if self.keep is None else self.where.xp.nonzero(self.keep)[0]
        team = current_team()
        categories = learn(self.rows.X, self.chosen, most, self.where, learnt_from, team)
        return encoded_by(categories, self.rows, self.where), categories


@dataclass(frozen=True)
class TrainingData:
    """Encoded rows as the engine takes them; `keep` marks those that take part (None: all)."""

    engine: Engine
    rows: Rows
    keep: Any | None
    categories: Categories
    where: Where
    bins: SharedBins | PartBins | None = None

    def binned(self, max_bins: int | None, *, n_ranges: int | None, keyed: bool = False) -> Binned:
        """The rows that take part, binned (data/rows.py)."""
        bins = self.bins
        if isinstance(bins, PartBins) and n_ranges is not None and not self.categories.values:
            return self._taken(bins, max_bins, n_ranges, keyed)
        gaps = None if bins is None else bins.gaps(max_bins)
        return bin_rows(
            self.engine, self.rows, self.keep, max_bins, self.categories, n_ranges=n_ranges,
            keyed=keyed, gaps=gaps,
        )  # fmt: skip

    def _taken(self, bins: PartBins, max_bins: int | None, n_ranges: int, keyed: bool) -> Binned:
        """The same with codes that are those of all rows already."""

        def made(order: Any | None, layout: Layout | None) -> BinnedMatrix:
            assert layout is not None
            return bins.matrix(self.engine, max_bins, order, layout)

        engine, rows, keep = self.engine, self.rows, self.keep
        binned = bin_by(engine, rows, keep, made, n_ranges=n_ranges, keyed=keyed)
        plain = keep is None and rows.weights is None and bins.held is not None
        return replace(binned, tables=PartTables(bins, max_bins) if plain else None)

    def ordered(self, *, keyed: bool = False) -> OrderedRows:
        """The rows that take part, for learners that do without these codes (data/rows.py)."""
        return order_rows(self.engine, self.rows, self.keep, keyed=keyed)

    def taking_part(self) -> Rows:
        """The rows that take part, with their features, in the order of `ordered`."""
        at = positions(self.rows, self.keep)
        return self.rows if at is None else self.rows.take(at)


@dataclass(frozen=True)
class GivenRows:
    """Validation rows as the user gave them, and what errors call the parts."""

    X: Any
    y: Any
    sample_weight: Any = None
    init_score: Any = None
    qid: Any = None
    names: tuple[str, ...] = ("X_val", "y_val", "sample_weight_val", "init_score_val", "qid_val")

    def check_nothing_given(self) -> None:
        """Raise where something belongs to an X that is None."""
        parts = (self.y, self.sample_weight, self.init_score, self.qid)
        for part, name in zip(parts, self.names[1:], strict=True):
            if part is not None:
                raise ValueError(
                    f"{name} was given, and needs {self.names[0]}; {self.names[0]} is None."
                )


def read(
    estimator: Reader, X: Any, y: Any, sample_weight: Any, init_score: Any = None, qid: Any = None
) -> Reading:
    """Training rows; those of weight zero take no part. An init_score is for a ValidationReader,
    queries are for a ranking. Batches of rows read themselves.
    """
    if isinstance(X, RowSource):
        return X.reading(estimator, y, sample_weight, init_score, qid)
    home = locate(X)
    X, y, w, offset, qid = _arrived(
        estimator.device,
        home,
        X=X,
        y=y,
        sample_weight=sample_weight,
        init_score=init_score,
        qid=qid,
    )
    where = locate(X)
    X, chosen = estimator._read_features(unmasked(X))
    X = _as_of_all(X, current_team())
    groups = None
    if qid is not None:
        groups, w = _read_groups(qid, w, X.shape[0], where, "qid", "sample_weight")
    target, weights = estimator._read_target(y, X.shape[0], w, where)
    if offset is not None:
        n_outputs = cast(ValidationReader, estimator)._n_outputs()
        offset = check_offset(offset, X.shape[0], n_outputs, where, "init_score")
    current_team().settle(X.shape[0])
    rows = _moved(Rows(X, target, weights, offset, groups), estimator._device_of_rows())
    keep = None if rows.weights is None else rows.weights > 0.0
    return Reading(rows, keep, chosen, locate(rows.X), home, estimator._bins)


def _as_of_all(X: Any, team: Team) -> Any:
    """X in the type that the rows of all workers would have together."""
    if team.alone:
        return X
    narrow, xp = X.dtype == locate(X).xp.float32, locate(X).xp
    found = team.each([X.shape[1], narrow])
    if any(n != X.shape[1] for n, _ in found):
        raise ValueError(
            "X must have the same features for every worker; the numbers of features are "
            f"{[n for n, _ in found]}."
        )
    return X if all(own for _, own in found) or not narrow else xp.astype(X, xp.float64)


def _read_groups(
    qid: Any, weights: Any, n_rows: int, where: Where, name: str, weight_name: str
) -> tuple[Groups, Any]:
    """Groups, with their weights where `weights` are of groups, and the weights of rows."""
    index, n_groups = read_groups(qid, n_rows, where, name)
    of_rows, of_groups = read_weights(weights, n_rows, n_groups, where, weight_name)
    return Groups(index, of_groups), of_rows


def shared_bins(
    estimator: Reader, X: Any, y: Any, sample_weight: Any, qid: Any = None
) -> SharedBins:
    """Bins of all rows that take part, for fits on some of them (`ArrayEstimator._sharing`)."""
    reading = read(estimator, X, y, sample_weight, qid=qid)
    engine = engine_for(reading.where, estimator.n_jobs)
    reading = reading.seen_by(engine)
    rows, _ = reading.encoded(estimator.max_bins)
    at = None if reading.keep is None else reading.where.xp.nonzero(reading.keep)[0]
    return SharedBins(engine, rows.X, at)


def read_validation(estimator: ValidationReader, given: GivenRows, training: Reading) -> Rows:
    """Rows of a validation set beside those of training."""
    parts = (given.X, given.y, given.sample_weight, given.init_score, given.qid)
    X, y, w, offset, qid = _arrived(
        estimator.device, training.home, **dict(zip(given.names, parts, strict=True))
    )
    features, target_name, weight_name, offset_name, group_name = given.names
    where = locate(X)
    X = estimator._read_features_again(unmasked(X), training.chosen, features)
    groups = None
    if estimator._needs_queries:
        groups, w = _read_groups(qid, w, X.shape[0], where, group_name, weight_name)
    target = estimator._read_validation_target(y, X.shape[0], where, target_name)
    weights = check_weights(w, X.shape[0], where, weight_name)
    if (offset is None) != (training.rows.offset is None):
        has = "has an init_score" if offset is None else "has none"
        raise ValueError(
            f"{offset_name} is {'None' if offset is None else 'given'}, but training {has}: give "
            "init_score for training and validation rows, or for none of them."
        )
    offset = check_offset(offset, X.shape[0], estimator._n_outputs(), where, offset_name)
    return _moved(Rows(X, target, weights, offset, groups), estimator._device_of_rows())


def training_data(reading: Reading, engine: Engine, max_bins: Any) -> TrainingData:
    """What the engine trains on, of rows that it sees already."""
    rows, categories = reading.encoded(max_bins)
    return TrainingData(engine, rows, reading.keep, categories, reading.where, reading.bins)


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
    groups = rows.groups
    if groups is not None:
        groups = replace(groups, index=from_host(groups.index, device))
    arrays = (rows.X, rows.target, rows.weights, rows.offset)
    X, target, weights, offset = (from_host(array, device) for array in arrays)
    return Rows(X, target, weights, offset, groups)
