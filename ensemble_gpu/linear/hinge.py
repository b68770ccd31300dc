"""The hinge's kink, rounded: what Newton's method and FISTA can minimise.

    phi_mu(v) = 0 for v >= 1,  (1 - v)^2 / (2 mu) for 1 - mu < v < 1,  1 - v - mu / 2 below

lies below (1 - v)_+ by mu / 2 at most, so that its minimum exceeds the least penalised hinge loss
by at most mu / 2 times the weight. mu falls from 1 on, each minimum is where the next begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.linear.solvers import Objective, Solution, solve
from ensemble_gpu.losses import Hinge
from ensemble_gpu.losses.margin import shortfall

# The last mu: Newton's steps do not mind curvature, FISTA's shorten with 1 / mu.
NEWTON_MU, FISTA_MU = 2.0**-20, 2.0**-10
FALL = 0.125


@dataclass(frozen=True, kw_only=True)
class RoundedHinge(Hinge):
    """phi_mu of the margin."""

    mu: float

    has_hessian = True
    straight = False

    @property
    def curvature(self) -> float:  # type: ignore[override]
        return 1.0 / self.mu

    def value(self, y: Any, F: Any) -> Any:
        short = shortfall(y, F)
        inside = self._inside(short)
        return inside * (short - 0.5 * inside) / self.mu

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        xp, short = locate(F).xp, shortfall(y, F)
        bent = xp.astype((short > 0.0) & (short < self.mu), F.dtype)
        return -y * (self._inside(short) / self.mu), bent / self.mu

    def _inside(self, short: Any) -> Any:
        where = locate(short)
        return where.xp.minimum(short, where.full(self.mu, short.dtype))


def solve_rounded(problem: Objective, B: Any, most_steps: int, share: float) -> Solution:
    """The minimiser of the last phi_mu, from B on."""
    last = NEWTON_MU if problem.l1 == 0.0 else FISTA_MU
    mu, n_steps = 1.0, 0
    while True:
        found = solve(replace(problem, loss=RoundedHinge(mu=mu)), B, most_steps - n_steps, share)
        B, n_steps = found.B, n_steps + found.n_steps
        if mu <= last or n_steps >= most_steps:
            return Solution(B, n_steps, found.converged and mu <= last)
        mu *= FALL
