"""X of the rows of batches: what a fit asks of it is answered in passes over them.

    pass 1   the sample that edges are computed from, and keys (data/keys.py) where rows are drawn
    pass 2   codes of the training rows, and of the rows that are held apart to judge models

A sample that will be wanted later is taken along with codes (`foresee`). All answers are those that
the rows would give in one array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.arrays.positions import encode
from ensemble_gpu.arrays.streamed import Streamed
from ensemble_gpu.batches.decoded import CodedRows
from ensemble_gpu.batches.passes import Distinct, Gather, Hash, Keep, Place, Work
from ensemble_gpu.kernels.edges import sample_positions
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout

# (what a pass is for, features; None: all) -> blocks of floats, one batch after the other
Walk = Callable[[str, Sequence[int] | None], Iterator[np.ndarray]]


class Source:
    """Batches of floats, and what is known of them.

    `target` is that of all rows, for their keys. `values` are known categories, whose positions
    stand in their place (arrays/positions.py). `new_array(shape, dtype)` gives memory for codes.
    """

    def __init__(
        self,
        walk: Walk,
        shape: tuple[int, int],
        dtype: np.dtype,
        target: np.ndarray,
        new_array: Callable[[tuple[int, ...], Any], np.ndarray],
        values: Mapping[int, np.ndarray] | None = None,
    ) -> None:
        self.walk, self.shape, self.dtype, self.target = walk, shape, dtype, target
        self.new_array, self.values = new_array, dict(values or {})
        self.awaited: list[CodedRows] = []
        self.foreseen: list[Callable[[], np.ndarray | None]] = []
        self.wants_keys = False
        self._hash: Hash | None = None
        self._gathered: list[Gather] = []
        self._encoded: list[Source] = []

    def _pass(self, label: str, work: Sequence[Work]) -> None:
        """Show every block to all of the work, and make keys that are wanted."""
        every = list(work)
        fresh = None
        if self._hash is None and self.wants_keys:
            fresh = Hash(self.target, None)
            every.append(fresh)
        first = 0
        for block in self.walk(label, None):
            block = encode(block, self.values, NUMPY).view()
            block.flags.writeable = False  # as an engine's view: kernels are compiled for that
            for one in every:
                one(first, block)
            first += len(block)
            del block  # before the next one is read
        self._hash = fresh or self._hash

    def encoded(self, values: Mapping[int, np.ndarray]) -> Source:
        """The same rows with positions among these values; one source for one set of values."""
        for known in self._encoded:
            if _same(known.values, values):
                return known
        made = Source(self.walk, self.shape, self.dtype, self.target, self.new_array, values)
        self._encoded.append(made)
        return made

    def apart(self, at: np.ndarray) -> CodedRows:
        """Rows whose codes the next pass for codes makes."""
        rows = CodedRows(self, at, self.shape[1], self.dtype)
        self.awaited.append(rows)
        return rows

    def keys(self, target: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        if self._hash is None or not self._hash.known(target, weights):
            self._hash = Hash(target, weights)
            self._pass("keys", [self._hash])
        return self._hash.keys

    def distinct(self, features: Sequence[int] | None, at: np.ndarray | None) -> list[np.ndarray]:
        """Ascending values of these features (None: of all) in the rows at these positions."""
        marked = None
        if at is not None:
            marked = np.zeros(self.shape[0], dtype=bool)
            marked[at] = True
        if features is None:
            work = Distinct(self.shape[1], marked)
            self._pass("values", [work])
            return work.values
        work, first = Distinct(len(features), marked), 0
        for block in self.walk("categories", features):
            work(first, block)
            first += len(block)
        return work.values

    def rows_at(self, at: np.ndarray) -> np.ndarray:
        """The rows at these positions, as floats (of a sample, say)."""
        for known in self._gathered:
            if np.array_equal(known.at, at):
                return known.rows
        work = Gather(at, self.shape[1], self.dtype)
        self._pass("edges", [work])
        return work.rows

    def codes(
        self, engine: Engine, edges: list[np.ndarray], gaps: list[np.ndarray],
        at: np.ndarray | None, layout: Layout | None,
    ) -> Codes:  # fmt: skip
        """Codes of the rows at these positions (None: of all), in this order."""
        if engine.name != "cpu":
            raise ValueError(
                f"Batches are put into bins by the engine 'cpu'; the engine is {engine.name!r}."
            )
        place = Place(engine, edges, at, layout, self.shape[0], self.new_array)
        held = [Keep(engine, edges, gaps, rows) for rows in self.awaited]
        self.awaited = []
        later = [self._sample(rows()) for rows in self.foreseen] if self._hash else []
        if self.foreseen:  # keys were for that
            self.foreseen, self._hash, self.wants_keys = [], None, False
        self._pass("codes", [place, *held, *later])
        self._gathered = later
        return place.codes

    def _sample(self, at: np.ndarray | None) -> Gather:
        at = np.zeros(0, dtype=np.int64) if at is None else at[sample_positions(len(at))]
        return Gather(at, self.shape[1], self.dtype)


class Stream(Streamed):
    """The rows of a source at some positions (None: all of them)."""

    def __init__(self, source: Source, at: np.ndarray | None = None) -> None:
        self.source, self.at, self.dtype = source, at, source.dtype
        self.shape = source.shape if at is None else (len(at), source.shape[1])

    def _positions(self, rows: Any | None) -> np.ndarray | None:
        """Of some of these rows (None: of all) in the source."""
        if self.at is None or rows is None:
            return self.at if rows is None else np.asarray(rows)
        return self.at[rows]

    def __getitem__(self, at: np.ndarray) -> Stream:
        return Stream(self.source, self._positions(at))

    def apart(self, at: np.ndarray) -> CodedRows:
        found = self._positions(at)
        assert found is not None
        return self.source.apart(found)

    def encoded(self, values: Mapping[int, np.ndarray]) -> Stream:
        return Stream(self.source.encoded(values), self.at)

    def want_keys(self) -> None:
        self.source.wants_keys = True

    def distinct(self, features: Sequence[int], rows: Any | None) -> dict[int, np.ndarray]:
        found = self.source.distinct(features, self._positions(rows))
        return dict(zip(features, found, strict=True))

    def keys(self, target: Any, weights: np.ndarray | None) -> np.ndarray:
        if self.at is None:
            return self.source.keys(np.asarray(target), weights)
        every = np.zeros(self.source.shape[0], dtype=target.dtype)
        known = self.source.target
        if known.dtype == target.dtype and np.array_equal(known[self.at], target):
            every = known
        else:
            every[self.at] = target
        factors = None
        if weights is not None:
            factors = np.zeros(len(every))
            factors[self.at] = weights
        return self.source.keys(every, factors)[self.at]

    def gaps(self, engine: Engine, rows: Any | None, max_bins: int | None) -> list[np.ndarray]:
        at = self._positions(rows)
        if max_bins is None:
            found = self.source.distinct(None, at)
            return [np.stack([values[:-1], values[1:]]) for values in found]
        n = self.source.shape[0] if at is None else len(at)
        chosen = sample_positions(n)
        sample = self.source.rows_at(chosen if at is None else at[chosen])
        return engine.gaps(engine.view(sample), np.arange(len(sample)), max_bins)

    def codes(
        self, engine: Engine, edges: list[np.ndarray], gaps: list[np.ndarray], rows: Any | None,
        layout: Layout | None,
    ) -> Codes:  # fmt: skip
        return self.source.codes(engine, edges, gaps, self._positions(rows), layout)

    def foresee(self, rows: Callable[[], np.ndarray | None]) -> None:
        def positions() -> np.ndarray | None:
            found = rows()
            return None if found is None else self._positions(found)

        self.source.foreseen.append(positions)
        self.want_keys()


def _same(known: Mapping[int, np.ndarray], values: Mapping[int, np.ndarray]) -> bool:
    return known.keys() == values.keys() and all(
        np.array_equal(known[f], values[f]) for f in values
    )
