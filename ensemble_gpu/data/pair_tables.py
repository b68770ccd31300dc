"""Tables of pairs of codes: how codes of one feature and of all others occur together."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.kernels.host.gram import FeatureTables, accumulate
from ensemble_gpu.kernels.protocol import Codes, Engine

# Bytes of tables, at most.
MEMORY = 2**30
# Where there is a choice, memory that belongs to the process alone.
PRIVATE: dict[str, Any] = {"flags": mmap.MAP_PRIVATE} if hasattr(mmap, "MAP_PRIVATE") else {}

# Writes the table [c, f, b] of a feature and part; False: there is none of it.
Fill = Callable[[int, int, np.ndarray], bool]


@dataclass
class _Making:
    """Tables of a feature that are being made: threads that want them take a part each."""

    slot: int
    next_part: int = 0
    unfinished: int = 0
    failed: bool = False


class PairTables:
    """Tables of parts of the rows, made when a feature is first asked for, within `memory` bytes.

    `space[slots[j], part, c, f, b]` are the rows of a part with a code up to c in feature j and
    code b in feature f; the last c counts missing values of j alone. slots[j] is -1 where there is
    no table of j. Fits in several threads may ask at the same time: they share the parts.
    """

    def __init__(
        self, fill: Fill, shape: tuple[int, int, int], dtype: Any, memory: int = MEMORY
    ) -> None:
        n_parts, p, width = shape
        of_feature = (n_parts, width, p, width)
        size = math.prod(of_feature) * np.dtype(dtype).itemsize
        self.space = unwritten((min(p, memory // size), *of_feature), np.dtype(dtype))
        self.slots = np.full(p, -1, dtype=np.int64)
        self._fill, self._change = fill, Condition()
        self._making: dict[int, _Making] = {}

    def has(self, feature: int) -> bool:
        """Whether there are tables of the feature, which are made now if they can be."""
        with self._change:
            making = self._making.get(feature)
            if making is None:
                if len(self._making) == len(self.space):
                    return False
                making = _Making(len(self._making), 0, self.space.shape[1])
                self._making[feature] = making
        while (part := self._next_part(making)) is not None:
            made = False
            try:
                made = self._fill(feature, part, self.space[making.slot, part])
            finally:
                self._note(feature, making, made)
        with self._change:
            self._change.wait_for(lambda: making.failed or making.unfinished == 0)
        return not making.failed

    def _next_part(self, making: _Making) -> int | None:
        with self._change:
            if making.failed or making.next_part == self.space.shape[1]:
                return None
            making.next_part += 1
            return making.next_part - 1

    def _note(self, feature: int, making: _Making, made: bool) -> None:
        with self._change:
            making.unfinished -= 1
            making.failed = making.failed or not made
            if making.unfinished == 0 and not making.failed:
                self.slots[feature] = making.slot
            self._change.notify_all()

    def of(self, feature: int) -> np.ndarray:
        """The tables [part, c, f, b] of a feature that has them."""
        return self.space[self.slots[feature]]


class SignedTables(NamedTuple):
    """The sum over parts of sign[part] times their tables."""

    tables: PairTables
    signs: np.ndarray

    @property
    def by_slot(self) -> FeatureTables:
        """As kernels take them."""
        return FeatureTables(self.tables.space, self.tables.slots, self.signs)


def counted(
    engine: Engine,
    parts: Sequence[Codes],
    weights: Any | None = None,
    *,
    dtype: Any = None,
    memory: int = MEMORY,
) -> PairTables:
    """Tables of the rows of each part; with `weights`, of a single part, sums of these."""
    first = parts[0]
    if engine.team.count(first.n_rows) >= 2**31:
        memory = 0
    if len(parts) > 1:  # the threads that want a table share its parts
        engine = engine.single()

    def fill(feature: int, part: int, out: np.ndarray) -> bool:
        counts = engine.pair_counts(parts[part], feature, weights)
        accumulate(np.ascontiguousarray(counts), out)
        return True

    if dtype is None:
        dtype = np.dtype(np.int64) if weights is not None else count_type(first)
    return PairTables(fill, (len(parts), first.n_features, first.width), dtype, memory)


def count_type(codes: Codes) -> Any:
    """A cell counts no more rows than have its second code: 16 bits mostly hold it."""
    return np.dtype(np.uint16 if rows_by_code(codes).max() < 2**16 else np.int32)


def rows_by_code(codes: Codes) -> np.ndarray:
    """Rows with each code of each feature."""
    return np.ascontiguousarray(codes.counts.sum(axis=0))


def unwritten(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array of zeros, of which only what is written takes memory, a small page at a time.

    NumPy asks for large pages, which for a table here and there of many cost more than they bring:
    5 to 10 ms instead of 1.6 ms for 3.7 MB on a virtual machine.
    """
    size = math.prod(shape) * dtype.itemsize
    if size == 0:
        return np.zeros(shape, dtype)
    return np.frombuffer(mmap.mmap(-1, size, **PRIVATE), dtype).reshape(shape)
