"""SAMME's loss where rows abstain.

R = mean of exp(-F_y), where a stump answers 1 for the class that a leaf votes for and -1 / (K - 1)
for the others, times b, and 0 for rows that abstain. SAMME gives an abstaining row the weight of a
right one, but its loss stays what it was while that of right rows falls: R is then no product of
factors of the weights. It is followed row by row, which costs a pass over one column a round.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.kernels.fixedpoint import UNIT
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, Codes, Engine, Layout
from ensemble_gpu.learners.stump import Stump


class VoteLoss:
    """-F_y of every row, in the order of the codes (by class)."""

    def __init__(
        self, engine: Engine, codes: Codes, layout: Layout, log_weights: Any | None
    ) -> None:
        where, xp = engine.where, engine.where.xp
        self.engine, self.codes = engine, codes
        self.classes = [slice(int(a), int(b)) for a, b in pairwise(layout.starts)]
        self.logs = where.zeros(codes.n_rows, xp.float64)
        w = self.logs + 1.0
        if log_weights is not None:
            logs = where.as_float64(log_weights) / UNIT
            top = engine.team.largest(float(xp.max(logs)))[0]
            w = xp.exp((logs - top) * float(np.log(2.0)))
        self.weights = w / self._sum(w)

    def _sum(self, values: Any) -> float:
        """Over the rows of all workers."""
        own = float(self.engine.where.xp.sum(values))
        return self.engine.team.fsum(np.array([own]))

    def _changed(self, stump: Stump) -> Any:
        """-F_y after a stump."""
        where, xp, n_outputs = self.engine.where, self.engine.where.xp, len(stump.values)
        b = stump.alpha * (n_outputs - 1) / n_outputs
        codes = np.arange(self.codes.width)
        leaf_of = np.where(codes <= stump.bin, LEFT, RIGHT)
        leaf_of[-1] = stump.missing_leaf
        column = xp.astype(self.engine.column(self.codes, stump.feature), xp.int64)
        parts = []
        for k, rows in enumerate(self.classes):
            change = np.where(stump.values[k] == stump.alpha, -b, b / (n_outputs - 1))
            change[ABSTAIN] = 0.0
            parts.append(self.logs[rows] + xp.take(where.put(change[leaf_of]), column[rows]))
        return xp.concat(parts)

    def after(self, stump: Stump) -> float:
        """R after a stump that has not been followed."""
        xp = self.engine.where.xp
        return self._sum(self.weights * xp.exp(self._changed(stump)))

    def follow(self, stump: Stump) -> None:
        self.logs = self._changed(stump)
