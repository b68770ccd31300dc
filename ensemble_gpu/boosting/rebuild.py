"""The rebuild strategy: the learner that fits the gradients of any loss best, round by round.

A round takes the gradients of all rows (boosting/gradients.py), asks for the best learner of
their sums, decides how far to go along it (boosting/steps.py), and lets F follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from ensemble_gpu.boosting.gradients import Gradients
from ensemble_gpu.boosting.leaf_steps import LeafSteps
from ensemble_gpu.boosting.steps import LEAF_STEP, line_search
from ensemble_gpu.learners.protocol import Candidate, GradientLearner, Leaves

# A line search of this share of the usual one is short: the learner is stuck at a kink. Other
# features are tried then, a few, because each costs a line search. The usual step forgets a tenth
# a round.
SHORT = 0.05
MOST_STUMPS = 4
FORGET = 0.9
# Five points in [0, 1] and their weights: the rule of Gauss and Legendre.
GAUSS = (
    (0.04691007703066802, 0.11846344252809454), (0.23076534494715845, 0.23931433524968324),
    (0.5, 0.28444444444444444), (0.7692346550528415, 0.23931433524968324),
    (0.953089922969332, 0.11846344252809454),
)  # fmt: skip
# Rounds that may be drawn anew because their rows had no learner.
MOST_DRAWS = 100


@dataclass(frozen=True)
class DescentTrail:
    """Where the descent stands after a round, besides F.

    `number` counts the draws of rows up to the round's own, `guess` is where the next line search
    begins, `usual` the length of the steps so far, `random_state` that of the learner.
    """

    number: int
    guess: float
    usual: float
    random_state: Any


@dataclass(frozen=True)
class _Looked:
    """F after a round that has not been followed, and its loss."""

    round_: Any
    F: Any
    loss: float


class Rebuild:
    """The rebuild strategy on one engine."""

    def __init__(
        self,
        gradients: Gradients,
        learner: GradientLearner,
        step: str,
        learning_rate: float,
        candidates: int = 1,
    ) -> None:
        self.gradients, self.learner = gradients, learner
        self.step, self.rate, self.candidates = step, learning_rate, candidates
        self.leaf_steps = LeafSteps(gradients) if step == LEAF_STEP else None
        self.intercept, self.quantum = gradients.intercept, gradients.quantum
        problem = gradients.problem
        curvature = problem.loss.curvature
        self.guess = 1.0 / curvature if curvature else problem.scale
        self.usual = 0.0
        self.reason = ""
        # Found on the way to the last round; it could be found from the round as well.
        self.found: tuple[Any, Leaves] | None = None
        self.looked: _Looked | None = None

    def best(self) -> Any | None:
        """The round's learner; rows are drawn again where those that were drawn lead nowhere."""
        gradients = self.gradients
        for _ in range(1 if gradients.sampling.share == 1.0 else MOST_DRAWS):
            found = gradients.ready() and self.learner.seek(gradients)
            best = self._best_jointly() if found and self.candidates > 1 else None
            best = self._best_of_few() if found and best is None else best
            if best is not None:
                return best
            gradients.round += 1
        self.reason = f"no {self.learner.name} lowers the loss any further"
        return None

    def _best_jointly(self) -> Any | None:
        """h and alpha chosen together: of the candidates with the largest gains, each at the end of
        its own step, the one where the loss has fallen most.
        """
        guess, barred, most = self.guess, list[int](), 0.0
        best: tuple[Candidate, np.ndarray, float, float] | None = None
        for _ in range(self.candidates):
            candidate = self.learner.best(barred)
            if candidate is None:
                break
            self.guess = guess
            values, alpha = self._step(candidate)
            fall = self._fall(candidate, values / self.rate)
            if fall > most:
                best, most = (candidate, values, alpha, self.guess), fall
            barred += candidate.bars
        if best is None:
            self.guess = guess
            return None
        candidate, values, alpha, self.guess = best
        return self._made(candidate, values, alpha, float(np.abs(values).max()))

    def _fall(self, candidate: Candidate, values: np.ndarray) -> float:
        """R(F) - R(F + values) in the round's units: the integral of minus the slope along it.

            int_0^1 <values, S(s values)> ds,    S the sums of -gradient at F + s values

        by the rule of Gauss and Legendre: sums of integers, which are the same on every engine, and
        exact for a slope that is a polynomial up to degree 9.
        """
        if not values.any():
            return 0.0
        parts = [
            weight * math.fsum((values * self.gradients.leaf_sums(candidate.leaves, s * values))
                               .ravel())
            for s, weight in GAUSS
        ]  # fmt: skip
        return math.fsum(parts)

    def _best_of_few(self) -> Any | None:
        """The best candidate; where it leads nowhere, other features are tried.

        A line search can be stuck at a kink of the loss: then the longest step of a few. Steps of
        single leaves are not, and any of them lowers the loss: then the first that is not 0.
        """
        loss, short = self.gradients.problem.loss, 0.0
        tries: Any = range(1)
        if self.leaf_steps is not None:
            tries = count()
        elif self.step == "line_search" and not loss.has_hessian:
            tries, short = range(MOST_STUMPS), SHORT * self.usual
        best: tuple[Candidate, np.ndarray, float] | None = None
        longest = 0.0
        barred: list[int] = []
        for _ in tries:
            candidate = self.learner.best(barred)
            if candidate is None:
                break
            values, alpha = self._step(candidate)
            length = float(np.abs(values).max())
            if length > longest:
                best, longest = (candidate, values, alpha), length
            if longest > short or not candidate.bars:
                break
            barred += candidate.bars
        return None if best is None else self._made(*best, longest)

    def _made(self, candidate: Candidate, values: np.ndarray, alpha: float, length: float) -> Any:
        """The round of a candidate."""
        unit_g, unit_h = self.gradients.units
        gain = candidate.gain * unit_g * (unit_g / unit_h)
        usual = max(FORGET * self.usual, length)
        trail = DescentTrail(self.gradients.round, self.guess, usual, self.learner.random_state())
        round_ = candidate.made(values, alpha, gain, trail)
        self.found = round_, candidate.leaves
        return round_

    def _step(self, candidate: Candidate) -> tuple[np.ndarray, float]:
        """(nu alpha h, nu alpha): as far along a candidate as the step rule says."""
        gradients = self.gradients
        if self.leaf_steps is not None:
            return gradients.rounded(self.rate * self.leaf_steps(candidate)), self.rate
        loss, (unit_g, unit_h) = gradients.problem.loss, gradients.units
        h = candidate.c * (unit_g / unit_h)
        alpha = 1.0
        if self.step == "line_search":
            alpha = self._search(candidate, h)
        elif self.step == "constant":
            alpha = 1.0 / (loss.curvature or 1.0)
        elif self.step == "newton":
            h = np.clip(h, -loss.longest_step, loss.longest_step)
        return gradients.rounded(self.rate * alpha * h), self.rate * alpha

    def _search(self, candidate: Candidate, h: np.ndarray) -> float:
        """alpha of R(F + alpha h); slopes are sums of integers, the same in any order.

        S are the sums at alpha = 0, if all rows have taken part in them.
        """
        gradients = self.gradients

        def slope(alpha: float) -> float:
            if alpha == 0.0 and gradients.sampling.share == 1.0:
                sums = candidate.S
            else:
                sums = gradients.leaf_sums(candidate.leaves, alpha * h)
            return -math.fsum((h * sums.astype(np.float64)).ravel())

        largest = float(np.abs(h).max())
        problem = gradients.problem
        limit = min(problem.loss.longest_step / largest, 2.0**60 * problem.scale)
        alpha = line_search(slope, self.guess, limit)
        self.guess = alpha or self.guess
        return alpha

    def _leaves(self, round_: Any) -> Leaves:
        if self.found is not None and self.found[0] is round_:
            return self.found[1]
        return self.learner.leaves(round_)

    def training_loss(self, round_: Any) -> float:
        if self.looked is None or self.looked.round_ is not round_:
            F, loss = self.gradients.moved(self._leaves(round_), round_.values)
            self.looked = _Looked(round_, F, loss)
        return self.looked.loss

    def follow(self, round_: Any) -> None:
        gradients, trail = self.gradients, round_.trail
        if self.looked is not None and self.looked.round_ is round_:
            gradients.adopt(self.looked.F)
        else:  # moves F together with the next gradients
            gradients.settle()
            gradients.pending = self._leaves(round_), round_.values
        self.found = self.looked = None
        gradients.round = trail.number + 1
        self.guess, self.usual = trail.guess, trail.usual
        self.learner.restore(trail.random_state)
