"""Second derivatives of R between the members of a sum: the quadratic that a round minimises.

    Q_jm = d2R / da_j da_m = mean of d2l / dF_k dF_l h_j h_m,    h_j in output k, h_m in output l

over a sample of the rows: sums of integers. They are those of some rounds ago, unless new ones
cost little beside a look at all rows; a member that is new has its own at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.l1.dictionaries import Dictionary, Key
from ensemble_gpu.l1.rows import BallRows, Curvatures

# Additions that a round may spend on new second derivatives, in the mean over rounds, besides the
# share of those that a look at all rows takes.
CHEAP, CHEAP_SHARE = 4_000_000, 0.5
# Added to the diagonal, as a share of its largest entry: two columns that are the same on the
# sample need not be the same on all rows.
RIDGE, RIDGE_OF_SAMPLE = 1e-12, 1e-3


class Metric:
    """Q of all members that a sum has had, in places of their own; a place may be used again."""

    def __init__(self, rows: BallRows, dictionary: Dictionary) -> None:
        self.rows, self.sample = rows, dictionary.sample(rows.sample)
        self.allowance = CHEAP + int(CHEAP_SHARE * rows.n * dictionary.width)
        self.keys: list[Key] = []
        self.place: dict[Key, int] = {}
        self.Q = np.zeros((0, 0))
        self.curves: Curvatures | None = None
        self.saved = 0

    def of(self, keys: list[Key], F: Any) -> np.ndarray:
        """Q of the keys, at F or at an F of some rounds ago."""
        self.saved += self.allowance
        if self.curves is None or self.sample.cost(len(keys)) <= self.saved:
            before, self.saved = self.curves, 0
            self.curves = self.rows.curvatures(F)
            if not self.curves.same(before):
                self.keys, self.place, self.Q = [], {}, np.zeros((0, 0))
        self._take_in([key for key in keys if key not in self.place], set(keys))
        at = np.array([self.place[key] for key in keys])
        Q = self.Q[np.ix_(at, at)]
        largest = float(Q.diagonal().max())
        share = RIDGE_OF_SAMPLE if self.rows.sampled else RIDGE
        Q.flat[:: len(keys) + 1] += share * largest if largest > 0.0 else 1.0
        return Q

    def _take_in(self, new: list[Key], used: set[Key]) -> None:
        """Places for new keys, first those of keys that are not used any more."""
        if not new:
            return
        free = [i for i, key in enumerate(self.keys) if key not in used]
        more = max(0, len(new) - len(free))
        at = free[: len(new)] + list(range(len(self.keys), len(self.keys) + more))
        self.keys += [None] * more
        for i, key in zip(at, new, strict=True):
            self.place.pop(self.keys[i], None)
            self.keys[i], self.place[key] = key, i
        if len(self.keys) > len(self.Q):
            Q = np.zeros((2 * len(self.keys), 2 * len(self.keys)))
            Q[: len(self.Q), : len(self.Q)] = self.Q
            self.Q = Q
        assert self.curves is not None
        rows = self.curves.scale * self.sample.products(new, self.keys, self.curves)
        n = len(self.keys)
        self.Q[at, :n] = rows
        self.Q[:n, at] = rows.T
