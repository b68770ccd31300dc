"""Several workers, one fit: each has some of the rows, and all run the same program on theirs.

What a program needs to know of all rows is a sum of integers (histograms, counts), a largest
value, or a few numbers that are gathered. None of it depends on who has which rows, so every worker
chooses the same splits, and ends with the model that one worker finds on all rows. A program that
knows of no other worker runs in a team of one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

# A float64 is (high 2^27 + low) 2^(e - 1127), e its place among these; the last three places count
# what is not finite: inf, -inf and NaN.
PLACES, LOW_BITS = 2103, 27


class Reduce(Protocol):
    """How workers meet. All call the same methods in the same order, with their own arrays."""

    rank: int
    size: int

    def sum(self, array: np.ndarray) -> np.ndarray:
        """The sum of everybody's int64 array, which have one shape; modulo 2^64."""
        ...

    def gather(self, array: np.ndarray, to_all: bool = True) -> list[np.ndarray]:
        """Everybody's array in the order of ranks; [] for others than the first unless `to_all`.

        They are of one dtype, of numbers or bytes; the first axis may differ in length.
        """
        ...


class OnlyOne:
    """The workers of a program that runs alone."""

    rank, size = 0, 1

    def sum(self, array: np.ndarray) -> np.ndarray:
        return array

    def gather(self, array: np.ndarray, to_all: bool = True) -> list[np.ndarray]:
        return [array]


@dataclass
class Journal:
    """What a fit has found so far; `earlier` is what it takes from one that was broken off."""

    earlier: Sequence[Any] = ()
    found: list[Any] = field(default_factory=list)


class Team:
    """The workers of a fit, as one of them sees it.

    Its rows are the parts `numbers` (ascending) of all rows, of `sizes` rows, one after the other
    (None: it has one part, which has the number of its rank).
    """

    def __init__(
        self,
        reduce: Reduce,
        numbers: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.reduce, self.journal = reduce, journal
        self._numbers, self._sizes = numbers, sizes
        self._found_starts: np.ndarray | None = None

    @property
    def alone(self) -> bool:
        return self.reduce.size == 1

    @property
    def first(self) -> bool:
        """Whether this worker does what one of them has to do."""
        return self.reduce.rank == 0

    def sum(self, array: Any) -> np.ndarray:
        """Sums of integers over all workers, int64."""
        return self.reduce.sum(np.asarray(array, dtype=np.int64))

    def count(self, n: int) -> int:
        """The sum of a number of each worker."""
        return n if self.alone else int(self.sum([n])[0])

    def any(self, fact: bool) -> bool:
        """Whether it holds for one of the workers at least."""
        return fact if self.alone else self.count(int(fact)) > 0

    def largest(self, *values: float) -> list[float]:
        """The largest of each value over all workers; NaN where one is."""
        if self.alone:
            return list(values)
        return self.largest_of(np.array(values, dtype=np.float64)).tolist()

    def largest_of(self, values: np.ndarray) -> np.ndarray:
        """`largest`, of the entries of an array of 64-bit numbers.

        Each worker has a place of its own in a sum: one message, whatever the numbers are.
        """
        if self.alone:
            return values
        own = np.zeros((self.reduce.size, *values.shape), dtype=np.int64)
        own[self.reduce.rank] = values.view(np.int64)
        every: np.ndarray = self.sum(own).view(values.dtype)
        return every.max(axis=0)

    def ends(self, low: float, high: float) -> tuple[float, float]:
        """The least of the low values and the largest of the high ones."""
        least, most = self.largest(-low, high)
        return -least, most

    def fsum(self, values: np.ndarray) -> float:
        """The sum of all values of all workers, rounded once, as math.fsum has it."""
        if self.alone:
            return math.fsum(values)
        high, low = self.sum(_places(np.asarray(values, dtype=np.float64))).tolist()
        *_, up, down, unknown = high
        if up or down or unknown:
            return math.nan if unknown or (up and down) else math.inf if up else -math.inf
        total = sum(
            ((a << LOW_BITS) + b) << place
            for place, (a, b) in enumerate(zip(high, low, strict=True))
            if a or b
        )
        return float(Fraction(total, 1 << 1127))

    def concatenated(self, array: np.ndarray, to_all: bool = True) -> np.ndarray:
        """Everybody's rows in the order of ranks; others than the first have none of them, unless
        `to_all`.
        """
        found = self.reduce.gather(array, to_all)
        return np.concatenate(found) if found else array[:0]

    def each(self, value: Any) -> list[Any]:
        """A value of every worker: what JSON can hold."""
        if self.alone:
            return [value]
        text = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        return [json.loads(one.tobytes()) for one in self.reduce.gather(text)]

    def labels(self, own: Sequence[Any], name: str) -> list[list[Any]]:
        """The labels of every worker, which JSON has to hold."""
        plain = [label.item() if isinstance(label, np.generic) else label for label in own]
        if not self.alone:
            for label in plain:
                if not isinstance(label, str | int | float):
                    raise TypeError(
                        f"{name} must hold strings, numbers or bool where several workers have the "
                        f"rows; got {label!r}, a {type(label).__name__}."
                    )
        return self.each(plain)

    def from_first(self, make: Callable[[], Any]) -> Any:
        """What the first worker makes, for everybody: what JSON can hold."""
        if self.alone:
            return make()
        return self.each(make() if self.first else None)[0]

    @property
    def _starts(self) -> np.ndarray:
        """Parts of this worker [part, (its first row here, its first row among all)]."""
        if self._found_starts is None:
            self._found_starts = self._find_starts()
        return self._found_starts

    def _find_starts(self) -> np.ndarray:
        assert self._numbers is not None
        assert self._sizes is not None
        mine = np.array([self._numbers, self._sizes], dtype=np.int64).T
        every = self.concatenated(mine)
        every = every[np.argsort(every[:, 0])]
        before = np.cumsum(every[:, 1]) - every[:, 1]
        here = np.cumsum(mine[:, 1]) - mine[:, 1]
        return np.stack([here, before[np.searchsorted(every[:, 0], mine[:, 0])]], axis=1)

    def settle(self, n_rows: int) -> None:
        """Say how many rows this worker has turned out to have."""
        if self._numbers is None:
            self._numbers, self._sizes = [self.reduce.rank], [n_rows]

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """The places among all rows of some rows of this worker."""
        if self.alone:
            return rows
        here, among_all = self._starts.T
        part = np.searchsorted(here, rows, side="right") - 1
        return rows - here[part] + among_all[part]

    def places(self, rows: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """The places of this worker's rows among those that all workers list.

        `rows` are listed in ranges `starts[r]` to `starts[r + 1]`, ascending in each; all list the
        rows of a range by their position.
        """
        if self.alone:
            return np.arange(len(rows))
        here = self._starts[:, 0]
        part = np.searchsorted(here, rows, side="right") - 1
        n_ranges, n_parts = len(starts) - 1, len(here)
        which = np.repeat(np.arange(n_ranges), np.diff(starts))
        own = np.zeros((n_parts, n_ranges + 1), dtype=np.int64)
        own[:, 0] = np.array(self._numbers, dtype=np.int64)
        np.add.at(own, (part, which + 1), 1)
        every = self.concatenated(own)
        every = every[np.argsort(every[:, 0])]
        in_order = every[:, 1:].T.reshape(-1)  # range by range, part by part
        before = (np.cumsum(in_order) - in_order).reshape(n_ranges, -1).T
        at = np.searchsorted(every[:, 0], own[:, 0])
        return before[at[part], which] + along_runs(which * n_parts + part)


def along_runs(values: np.ndarray) -> np.ndarray:
    """0, 1, 2, ... along every run of equal values."""
    at = np.arange(len(values))
    new = np.ones(len(values), dtype=bool)
    new[1:] = values[1:] != values[:-1]
    return at - np.maximum.accumulate(np.where(new, at, 0))


ALONE = Team(OnlyOne())
_TEAM: ContextVar[Team] = ContextVar("ensemble_gpu_team", default=ALONE)


def current_team() -> Team:
    """The workers with whom the fits of this thread share their rows."""
    return _TEAM.get()


@contextmanager
def joined(team: Team) -> Iterator[None]:
    """Fits inside the block are parts of one fit: each worker has some of its rows."""
    token = _TEAM.set(team)
    try:
        yield
    finally:
        _TEAM.reset(token)


def _places(values: np.ndarray) -> np.ndarray:
    """Sums of the upper and of the lower bits of floats with the same exponent: [2, place].

    A value is (high 2^27 + low) 2^(place - 1127), 0 <= low < 2^27: exact, and so are the sums.
    """
    out = np.zeros((2, PLACES), dtype=np.int64)
    finite = np.isfinite(values)
    if not finite.all():
        out[0, -3:] = (values == np.inf).sum(), (values == -np.inf).sum(), np.isnan(values).sum()
        values = values[finite]
    fraction, exponent = np.frexp(values)
    whole = np.ldexp(fraction, 53).astype(np.int64)  # value = whole 2^(exponent - 53)
    place = exponent.astype(np.int64) + (1127 - 53)
    low = whole & ((1 << LOW_BITS) - 1)
    np.add.at(out[0], place, whole >> LOW_BITS)
    np.add.at(out[1], place, low)
    return out
