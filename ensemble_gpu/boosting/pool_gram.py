"""The gram strategy of a pool: squared loss at a cost per round of one number a member.

As in boosting/gram.py residuals r_i and coefficients v are integers, multiples of a quantum u. With
S_l = sum_i w_i r_i h_l(x_i) and A_l = sum_i w_i h_l(x_i)^2 member l has the coefficient
v = rint(nu S_l / A_l), which takes 2 v S_l - v^2 A_l from sum w r^2, and

    S_m -= v G_ml,    G_ml = sum_i w_i h_m(x_i) h_l(x_i)

for every member m. A column of G is added up when its member is first chosen: later rounds on the
member do not look at the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.boosting.gram import IntegerTargets
from ensemble_gpu.learners.pool import PoolMembers
from ensemble_gpu.learners.votes import Vote


class PoolTrail(NamedTuple):
    """A round's coefficient in multiples of the quantum, and what it takes from sum w r^2."""

    units: int
    fall: float


class PoolGram:
    """The gram strategy on the answers of a pool."""

    def __init__(self, targets: IntegerTargets, members: PoolMembers, rate: float) -> None:
        xp = members.engine.where.xp
        self.members, self.rate, self.quantum = members, rate, targets.quantum
        self.intercept = targets.intercept
        r = targets.residuals[0, :]
        self.weights = xp.ones_like(r) if targets.weights is None else targets.weights
        weighted = r * self.weights
        self.S, self.A = members.edges(weighted), members.sizes(self.weights)
        squares = xp.astype(r, xp.float64) * xp.astype(weighted, xp.float64)
        self.squares = float(xp.sum(squares))
        self.total_weight = float(targets.total_weight)
        self.columns: dict[int, np.ndarray] = {}
        self.reason = ""

    def best(self) -> Vote | None:
        best = self.members.best_of(self.S, self.A)
        if best is None:
            self.reason = "no voter lowers the loss any further"
            return None
        S, A = float(self.S[best]), float(self.A[best])
        units = int(np.rint(self.rate * (S / A)))
        if units == 0:
            self.reason = "what is left of the residuals is below their resolution"
            return None
        gain = S * (S / A) * self.quantum * self.quantum
        trail = PoolTrail(units, units * (2.0 * S - units * A))
        return Vote(best, units * self.quantum, gain, trail=trail)

    def follow(self, vote: Vote) -> None:
        if vote.key not in self.columns:
            self.columns[vote.key] = self.members.gram(vote.key, self.weights)
        self.S = self.S - vote.trail.units * self.columns[vote.key]
        self.squares -= vote.trail.fall

    def training_loss(self, vote: Vote) -> float:
        left = self.squares - vote.trail.fall
        return left / self.total_weight * self.quantum * self.quantum
