"""Bins that several fits on parts of the same rows share: made once, from all of the rows."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from ensemble_gpu.data.matrix import gaps_of
from ensemble_gpu.kernels.edges import edges_of
from ensemble_gpu.kernels.host.gram import accumulate
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout

# Bytes of tables that are kept for the fits to come.
MEMORY = 2**30


class SharedBins:
    """The gaps between values that bins are cut at, of the rows `rows` of X (None: of all).

    They are found when they are first asked for, once for each number of bins; so are tables of
    pairs of codes (boosting/gram.py). Fits in several threads may ask at the same time.
    """

    def __init__(self, engine: Engine, X: Any, rows: Any | None) -> None:
        self.engine, self.X, self.rows = engine, X, rows
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

    def codes(self, max_bins: int | None, rows: Any | None = None) -> Codes:
        """The codes of some rows (None: of all) in their order."""
        rows = self._all if rows is None else rows
        layout = Layout(np.array([0, rows.shape[0]]), np.zeros((1, 1), dtype=np.int64))
        return self.engine.encode(self.X, edges_of(self.gaps(max_bins)), rows, layout)

    def table(self, max_bins: int | None, feature: int) -> np.ndarray:
        """Rows with a code up to c in `feature` and code b in f, [c, f, b]; of all rows."""

        def made() -> np.ndarray:
            codes = self.once(("codes", max_bins), lambda: self.codes(max_bins))
            return cumulated(self.engine, codes, feature)

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
    """Bins that are shared by a fit to all rows but those at the positions `held`.

    The tables of the rows that are left are those of all minus those of the held: integers, so
    they are exactly what the rows themselves would give.
    """

    def __init__(self, bins: SharedBins, held: np.ndarray) -> None:
        self.bins, self.held = bins, held

    def gaps(self, max_bins: int | None) -> list[np.ndarray]:
        """Those of all rows."""
        return self.bins.gaps(max_bins)

    def held_codes(self, max_bins: int | None) -> Codes:
        """The codes of the rows that are held out, in the order of `held`."""
        bins = self.bins
        rows = bins.engine.where.put(self.held)
        return bins.once(("codes", max_bins, self), lambda: bins.codes(max_bins, rows))

    def held_table(self, max_bins: int | None, feature: int) -> np.ndarray:
        """`SharedBins.table` of the rows that are held out."""
        engine = self.bins.engine.single()

        def made() -> np.ndarray:
            return cumulated(engine, self.held_codes(max_bins), feature)

        return self.bins.once(("table", max_bins, feature, self), made)

    def table(self, max_bins: int | None, feature: int) -> np.ndarray:
        """`SharedBins.table` of the rows that are left."""
        return self.bins.table(max_bins, feature) - self.held_table(max_bins, feature)


def cumulated(engine: Engine, codes: Codes, feature: int) -> np.ndarray:
    """Counts of pairs of codes, summed along the codes of `feature` but for missing values."""
    table = np.ascontiguousarray(engine.pair_counts(codes, feature, None))
    accumulate(table)
    return table
