"""Which rows of a bag a tree grows from, and which judge it.

What is shared out are kinds of rows: equal rows are of one kind, and so are the draws of a row. So
no tree is judged by a copy of what it has seen, and a row of weight 3 does what three equal rows
do. Kinds are numbered in the order of the rows' keys (data/keys.py), hashes of what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.data.bags import draw_parts
from ensemble_gpu.data.keys import row_keys, sorted_rows

OUT_OF_BAG, HOLDOUT, FOLDS = VALIDATIONS = ("oob", "holdout", "cv")


@dataclass(frozen=True)
class Part:
    """Rows to grow from (None: all, once) and rows to judge by: how often each, int [rows]."""

    grown: np.ndarray | None
    judged: np.ndarray


@dataclass(frozen=True)
class Validation:
    """How trees are judged: by rows out of the bag, by a share of it, or by each of its folds.

    `kind` [rows] is the number of each row's kind; `repeats` how often each row is there to be
    drawn (None: once).
    """

    by: str
    share: float
    n_folds: int
    seed: int
    kind: np.ndarray
    repeats: np.ndarray | None

    @property
    def grows_anew(self) -> bool:
        """Whether the tree of the forest is grown from the whole bag once its capacity is known."""
        return self.by == FOLDS

    def parts(self, counts: np.ndarray | None, number: int) -> list[Part]:
        """Those of tree `number`, whose bag has each row as often as counts says (None: once)."""
        bag = np.ones(len(self.kind), dtype=np.int32) if counts is None else counts
        drawn = np.zeros(int(self.kind.max()) + 1, dtype=bool)
        drawn[self.kind[bag > 0]] = True
        if self.by == OUT_OF_BAG:
            each = 1 if self.repeats is None else self.repeats
            return [Part(counts, np.where(drawn[self.kind], 0, each))]
        kinds = np.flatnonzero(drawn)
        return [
            Part(np.where(held, np.int32(0), bag), np.where(held, bag, 0))
            for held in self._held(kinds, len(drawn), number)
        ]

    def _held(self, kinds: np.ndarray, n_kinds: int, number: int) -> list[np.ndarray]:
        """The rows of each part, of the kinds that are in the bag: bool [rows]."""
        n = len(kinds)
        if self.by == HOLDOUT:
            sizes = [min(max(1, round(self.share * n)), n - 1)]
        else:
            sizes = [(n + k) // self.n_folds for k in range(self.n_folds)] if n > 1 else []
        held = []
        for chosen in draw_parts(self.seed, number, n, sizes):
            own = np.zeros(n_kinds, dtype=bool)
            own[kinds[chosen]] = True
            held.append(own[self.kind])
        return held


def kinds_of(X: Any, target: Any, factor: np.ndarray | None) -> np.ndarray:
    """The number of the kind of every row: int64 [rows], on the host.

    `factor` is a weight of every row that is part of what it holds (None: none is).
    """
    keys = row_keys(target, X, factor)
    order = sorted_rows(keys)
    ordered = keys[order]
    kind = np.empty(len(keys), dtype=np.int64)
    kind[order] = np.cumsum(np.append(False, ordered[1:] != ordered[:-1]))
    return kind
