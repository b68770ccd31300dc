"""Bins that several fits on parts of the same rows share: made once, from all of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.data.matrix import BinnedMatrix, gaps_of
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.host.gram import accumulate
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout

# Bytes of tables that are kept for the fits to come.
MEMORY = 2**30


class SharedBins:
    """The gaps between values that bins are cut at, of the rows `rows` of X (None: of all).

    They are found when they are first asked for, once for each number of bins; so are the codes of
    all rows, and tables of pairs of codes (boosting/gram.py). Fits in several threads may ask at
    the same time. `partition` are parts that hold out every row once between them.
    """

    def __init__(self, engine: Engine, X: Any, rows: Any | None) -> None:
        self.engine, self.X, self.rows = engine, X, rows
        self.partition: Sequence[PartBins] = ()
        self._made: dict[Any, Any] = {}
        self._locks: dict[Any, Lock] = {}
        self._lock, self._left = Lock(), MEMORY

    def gaps(self, max_bins: int | None) -> list[np.ndarray]:
        """A feature each [2, edges]: the values below and above its edges."""
        rows = self._all if self.rows is None else self.rows
        return self.once(("gaps", max_bins), lambda: gaps_of(self.engine, self.X, rows, max_bins))

    @property
    def _all(self) -> Any:
        where = self.engine.where
        return where.xp.arange(self.X.shape[0], device=where.device)

    def codes(self, max_bins: int | None) -> Codes:
        """The codes of all rows, in one range."""

        def made() -> Codes:
            edges, n = edges_of(self.gaps(max_bins)), self.X.shape[0]
            return self.engine.encode(self.X, edges, self._all, one_range(n))

        return self.once(("codes", max_bins), made)

    def table(self, max_bins: int | None, feature: int) -> np.ndarray:
        """Rows with a code up to c in `feature` and code b in f, [c, f, b]; of all rows."""

        def made() -> np.ndarray:
            return cumulated(self.engine, self.codes(max_bins), feature)

        return self.once(("table", max_bins, feature), made)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once; made again where tables have taken all of the memory."""
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._made:
                made = make()
                size = made.nbytes if isinstance(made, np.ndarray) else 0
                with self._lock:
                    if size > self._left:
                        return made
                    self._left -= size
                    self._made[key] = made
            return self._made[key]


class PartBins:
    """Bins that are shared by a fit to the rows at the positions `train`.

    `held` are the positions of all other rows (None: not of all).
    """

    def __init__(self, bins: SharedBins, train: np.ndarray, held: np.ndarray | None) -> None:
        self.bins, self.train, self.held = bins, train, held

    def gaps(self, max_bins: int | None) -> list[np.ndarray]:
        """Those of all rows."""
        return self.bins.gaps(max_bins)

    def matrix(
        self, engine: Engine, max_bins: int | None, order: Any | None, layout: Layout
    ) -> BinnedMatrix:
        """The training rows in an order (None: as they are), their codes taken from all rows'."""
        where, gaps = engine.where, self.gaps(max_bins)
        rows = where.put(self.train)
        rows = rows if order is None else where.xp.take(rows, engine.adopt(order))
        codes = engine.take(self.bins.codes(max_bins), rows, layout)
        return BinnedMatrix(codes, edges_of(gaps), gaps)

    def held_codes(self, max_bins: int | None) -> Codes:
        """The codes of the rows that are held out, in the order of `held`."""
        bins, held = self.bins, self.held
        assert held is not None

        def made() -> Codes:
            rows = bins.engine.where.put(held)
            return bins.engine.take(bins.codes(max_bins), rows, one_range(len(held)))

        return bins.once(("codes", max_bins, self), made)

    def held_table(self, max_bins: int | None, feature: int) -> np.ndarray:
        """`SharedBins.table` of the rows that are held out."""

        def made() -> np.ndarray:
            return cumulated(self.bins.engine, self.held_codes(max_bins), feature)

        return self.bins.once(("table", max_bins, feature, self), made)

    def counted(self, max_bins: int | None, feature: int, sign: int) -> Counted:
        """The same, to be added (1) or subtracted (-1)."""
        codes = self.held_codes(max_bins)
        return Counted(self.held_table(max_bins, feature), rows_by_code(codes), sign)


class Counted(NamedTuple):
    """A table of pairs of codes, the rows with each code [f, b], and whether they count or not."""

    table: np.ndarray
    rows: np.ndarray
    sign: int


@dataclass(frozen=True)
class PartTables:
    """Pairs of codes of the training rows of a part; for one fit, which keeps what it uses.

    They are those of all rows minus those of the rows held out, or the sum of what the other parts
    of a partition hold out: integers, so they are exactly what the rows themselves would give.
    """

    part: PartBins
    max_bins: int | None
    known: dict[int, list[Counted]] = field(default_factory=dict)

    @property
    def n_held(self) -> int:
        assert self.part.held is not None
        return len(self.part.held)

    def of(self, feature: int) -> list[Counted]:
        """The tables of a feature that add up to that of the training rows."""
        if feature not in self.known:
            part, bins, m = self.part, self.part.bins, self.max_bins
            if part in bins.partition:
                found = [other.counted(m, feature, 1) for other in bins.partition if other != part]
            else:
                every = Counted(bins.table(m, feature), rows_by_code(bins.codes(m)), 1)
                found = [every, part.counted(m, feature, -1)]
            self.known[feature] = found
        return self.known[feature]


def one_range(n: int) -> Layout:
    """n rows of one class."""
    return Layout(np.array([0, n]), np.zeros((1, 1), dtype=np.int64))


def rows_by_code(codes: Codes) -> np.ndarray:
    """Rows with each code of each feature."""
    return np.ascontiguousarray(codes.counts.sum(axis=0))


def cumulated(engine: Engine, codes: Codes, feature: int) -> np.ndarray:
    """Counts of pairs of codes, summed along the codes of `feature` but for missing values.

    A cell counts no more rows than have its second code: 16 bits mostly hold it.
    """
    table = np.ascontiguousarray(engine.pair_counts(codes, feature, None))
    accumulate(table)
    return table.astype(np.uint16) if rows_by_code(codes).max() < 2**16 else table
