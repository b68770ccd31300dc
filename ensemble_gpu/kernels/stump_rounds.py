"""Whole rounds of AdaBoost by an engine: records of them, and why there is no further one."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

# Why there is no further stump.
NO_SPLIT, NO_GAIN = 1, 2


class StumpRecords(NamedTuple):
    """Rounds of AdaBoost as arrays, one after the other.

    places [round, (feature, bin, missing leaf, perfect)], values [round, output, leaf], numbers
    [round, (alpha, error, shares of the weight: abstaining, right, wrong)], and trails [round,
    (totals, largest), group], the integer weights before the round.
    """

    places: np.ndarray
    values: np.ndarray
    numbers: np.ndarray
    trails: np.ndarray


class StumpRounds(Protocol):
    """Runs whole rounds of AdaBoost; it holds weights, tables and scales between the calls."""

    def records(self, n: int) -> StumpRecords:
        """Space for n rounds, zeros."""
        ...

    def __call__(self, records: StumpRecords, follows: bool, n: int) -> tuple[int, int, float]:
        """Up to n rounds into records 1 ... n; `follows`: record 0 is followed first.

        All that are found are followed but the last, and a perfect stump is the last. Returns how
        many were found, and if fewer than n and the last is not perfect NO_SPLIT, or NO_GAIN and
        the score of the best split over the weight.
        """
        ...


@runtime_checkable
class SkippedRounds(StumpRounds, Protocol):
    """An engine whose rows can catch up: `cumulated` are rows up to each code [class, .., code]."""

    cumulated: np.ndarray

    def skip(
        self, place: tuple[int, int, int], values: np.ndarray, alpha: float,
        trail: tuple[np.ndarray, np.ndarray],
    ) -> None:  # fmt: skip
        """Let tables follow a stump, and no row: a later round requantises all of them."""
        ...
