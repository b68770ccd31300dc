"""Bins that several fits on parts of the same rows share: made once, from all of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from ensemble_gpu.data.matrix import BinnedMatrix, gaps_of
from ensemble_gpu.data.pair_tables import PairTables, SignedTables, count_type, counted
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout

ONE = np.ones(1, dtype=np.int64)


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
        self._lock = Lock()

    def gaps(self, max_bins: int | None) -> list[np.ndarray]:
        """A feature each [2, edges]: the values below and above its edges."""

        def made() -> list[np.ndarray]:
            rows = self._all if self.rows is None else self.rows
            return gaps_of(self.engine, self.X, rows, max_bins)

        return self.once(("gaps", max_bins), made)

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

    def tables(self, max_bins: int | None) -> PairTables:
        """Tables of pairs of codes of all rows."""
        return self.once(("tables", max_bins), lambda: counted(self.engine, [self.codes(max_bins)]))

    def tables_of_parts(self, max_bins: int | None) -> PairTables:
        """The same of what each part of the partition holds out."""

        def made() -> PairTables:
            kind = count_type(self.codes(max_bins))
            codes = [part.held_codes(max_bins) for part in self.partition]
            return counted(self.engine, codes, dtype=kind)

        return self.once(("tables of parts", max_bins), made)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives, made once."""
        with self._lock:
            lock = self._locks.setdefault(key, Lock())
        with lock:
            if key not in self._made:
                self._made[key] = make()
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
        every, counts = self.bins.codes(max_bins), None
        if self.held is not None and order is None:  # and so of one range
            counts = every.counts - self.held_codes(max_bins).counts
        codes = engine.take(every, rows, layout, counts)
        return BinnedMatrix(codes, edges_of(gaps), gaps)

    def held_codes(self, max_bins: int | None) -> Codes:
        """The codes of the rows that are held out, in the order of `held`."""
        bins, held = self.bins, self.held
        assert held is not None

        def made() -> Codes:
            rows = bins.engine.where.put(held)
            return bins.engine.take(bins.codes(max_bins), rows, one_range(len(held)))

        return bins.once(("codes", max_bins, self), made)

    def held_tables(self, max_bins: int | None) -> SignedTables:
        """Tables of pairs of codes of the rows that are held out."""
        bins = self.bins
        if self in bins.partition:
            return SignedTables(bins.tables_of_parts(max_bins), self._among(bins.partition))

        def made() -> PairTables:
            return counted(bins.engine, [self.held_codes(max_bins)])

        return SignedTables(bins.once(("tables", max_bins, self), made), ONE)

    def train_tables(self, max_bins: int | None) -> SignedTables:
        """The same of the rows that are trained on.

        They are the sum of what the other parts of a partition hold out, or those of all rows minus
        those of the rows held out: integers, so they are exactly what the rows themselves give.
        """
        bins = self.bins
        if self in bins.partition:
            return SignedTables(bins.tables_of_parts(max_bins), 1 - self._among(bins.partition))
        every, held = bins.tables(max_bins), self.held_tables(max_bins).tables

        def fill(feature: int, part: int, out: np.ndarray) -> bool:
            known = every.has(feature) and held.has(feature)
            if known:
                whole, without = every.of(feature)[part], held.of(feature)[part]
                np.subtract(whole, without, out=out, dtype=out.dtype)
            return known

        codes = bins.codes(max_bins)
        shape = 1, codes.n_features, codes.width
        return SignedTables(PairTables(fill, shape, every.space.dtype), ONE)

    def _among(self, partition: Sequence[PartBins]) -> np.ndarray:
        """1 for this part, 0 for the others."""
        return np.array([int(part is self) for part in partition])


@dataclass(frozen=True)
class PartTables:
    """Tables of pairs of codes for a fit to the training rows of a part."""

    part: PartBins
    max_bins: int | None

    @property
    def n_held(self) -> int:
        assert self.part.held is not None
        return len(self.part.held)

    def signed(self) -> SignedTables:
        return self.part.train_tables(self.max_bins)


def one_range(n: int) -> Layout:
    """n rows of one class."""
    return Layout(np.array([0, n]), np.zeros((1, 1), dtype=np.int64))
