"""Residuals of the rows in each leaf: which leaf a row is in, and how residuals are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Slots:
    """Rows in slots, such as leaves: row i in slot table[index[i]], in none where that is < 0.

    `index` is an integer array where the rows are, `table` int64 on the host.
    """

    index: Any
    table: np.ndarray


@dataclass(frozen=True)
class Ruler:
    """Residuals as places on a ruler of `n_marks` marks: k = rint((r - base[slot]) per_unit).

    k is cut to 0 ... `last`; mark m holds the places k with k >> shift = m.
    """

    base: np.ndarray
    per_unit: float
    shift: int
    n_marks: int

    @property
    def last(self) -> int:
        return (self.n_marks << self.shift) - 1
