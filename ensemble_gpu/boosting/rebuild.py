"""The rebuild strategy: the learner that fits the gradients of any loss best, round by round.

A round takes the gradients of all rows (boosting/gradients.py), asks for the best stump or tree of
their sums, decides how far to go along it (boosting/steps.py), and lets F follow.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.boosting.gradients import Gradients, Leaves, StumpLeaves
from ensemble_gpu.boosting.steps import line_search
from ensemble_gpu.boosting.strategy import Stump
from ensemble_gpu.kernels.protocol import Codes, Cut
from ensemble_gpu.learners.stump import StumpLearner

# A step of this share of the usual one is short: the learner is stuck at a kink. Other features are
# tried then, a few, because each costs a line search. The usual step forgets a tenth a round.
SHORT = 0.05
MOST_STUMPS = 4
FORGET = 0.9
# Rounds that may be drawn anew because their rows had no learner.
MOST_DRAWS = 100


@dataclass(frozen=True)
class Candidate:
    """A learner h that fits -gradient: h[output, leaf] is `c` in units of the round.

    `S` [output, leaf] are the sums of -gradient, `gain` what the fit is worth; `made(values, alpha,
    error)` is the round that adds `values` [output, leaf]. `bars`: features that a second candidate
    must not use.
    """

    c: np.ndarray
    S: np.ndarray
    gain: float
    leaves: Leaves
    made: Callable[[np.ndarray, float, float], Any]
    bars: list[int]


class Learner(Protocol):
    """Finds candidates. `seek` adds up a round's gradients; False where there is nothing to fit."""

    name: str

    def seek(self, gradients: Gradients) -> bool: ...

    def best(self, barred: list[int]) -> Candidate | None: ...


class Stumps:
    """Stumps from sums per (output, feature, code)."""

    name = "stump"

    def __init__(self, codes: Codes, learner: StumpLearner) -> None:
        self.codes, self.learner = codes, learner

    def seek(self, gradients: Gradients) -> bool:
        G, H = gradients.format.sums(self.codes, gradients.packed)
        self.engine, self.sums = gradients.engine, (-G, H)
        return bool(G.any())

    def best(self, barred: list[int]) -> Candidate | None:
        split = self.learner.best(*self.sums, barred)
        if split is None:
            return None
        missing_leaf = self.learner.missing_leaf(split)
        cut = Cut(split.bin, self.codes.width - 1, missing_leaf)
        leaves = StumpLeaves(self.engine, self.engine.column(self.codes, split.feature), cut)

        def made(values: np.ndarray, alpha: float, error: float) -> Stump:
            return Stump(split.feature, split.bin, missing_leaf, values, alpha, error)

        return Candidate(split.c, split.S, split.gain, leaves, made, [split.feature])


class Rebuild:
    """The rebuild strategy on one engine."""

    def __init__(
        self, gradients: Gradients, learner: Learner, step: str, learning_rate: float
    ) -> None:
        self.gradients, self.learner = gradients, learner
        self.step, self.rate = step, learning_rate
        self.intercept = gradients.intercept
        problem = gradients.problem
        curvature = problem.loss.curvature
        self.guess = 1.0 / curvature if curvature else problem.scale
        self.moved = False
        self.usual = 0.0
        self.reason = ""

    def best(self) -> Any | None:
        """The round's learner; rows are drawn again where those that were drawn lead nowhere."""
        gradients = self.gradients
        for _ in range(1 if gradients.sampling.share == 1.0 else MOST_DRAWS):
            found = gradients.ready() and self.learner.seek(gradients)
            best = self._best_of_few() if found else None
            if best is not None:
                return best
            gradients.round += 1
        self.reason = f"no {self.learner.name} lowers the loss any further"
        return None

    def _best_of_few(self) -> Any | None:
        """Where the loss has kinks a stump can be stuck at one: then the best of other features."""
        loss = self.gradients.problem.loss
        has_kinks = self.step == "line_search" and not loss.has_hessian
        best, best_length = None, 0.0
        barred: list[int] = []
        for _ in range(MOST_STUMPS if has_kinks else 1):
            candidate = self.learner.best(barred)
            if candidate is None:
                break
            round_ = self._stepped(candidate)
            length = float(np.abs(round_.values).max())
            if length > best_length:
                best, best_length, self.leaves = round_, length, candidate.leaves
            if best_length > SHORT * self.usual or not candidate.bars:
                break
            barred += candidate.bars
        if best is not None:
            self.usual = max(FORGET * self.usual, best_length)
        return best

    def _stepped(self, candidate: Candidate) -> Any:
        """The round that a candidate makes, as far along it as the step rule says."""
        gradients = self.gradients
        loss, (unit_g, unit_h) = gradients.problem.loss, gradients.units
        h = candidate.c * (unit_g / unit_h)
        alpha = 1.0
        if self.step == "line_search":
            alpha = self._search(candidate, h)
        elif self.step == "constant":
            alpha = 1.0 / (loss.curvature or 1.0)
        elif self.step == "newton":
            h = np.clip(h, -loss.longest_step, loss.longest_step)
        values = gradients.rounded(self.rate * alpha * h)
        gain = candidate.gain * unit_g * (unit_g / unit_h)
        return candidate.made(values, self.rate * alpha, gain)

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

    def follow(self, round_: Any) -> None:
        if not self.moved:  # moves F together with the next gradients
            self.gradients.pending = self.leaves, round_.values
        self.moved = False
        self.gradients.round += 1

    def training_loss(self, round_: Any) -> float:
        self.moved = True
        return self.gradients.moved_loss(self.leaves, round_.values)
