"""The descend strategy: any loss along the answers of any learner (AnyBoost, MATHS 4).

Round t: g = dl/dF at the rows; a learner h is fitted to it (learners/directions.py);

    alpha = argmin over the reals of R(F + alpha h),    F <- F + nu alpha h.

For the squared loss alpha = <r, h> / <h, h>, r = y - F, and a round lowers the sum of r^2 by
nu (2 - nu) <r, h>^2 / <h, h>. Other losses are searched along the side where they fall, so that R
does not rise for a convex loss and nu <= 1. The rounds end where h is no direction of descent:
|<g, h>| <= 1e-12 |g| |h|.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ensemble_gpu.boosting.problem import Problem, Sampling
from ensemble_gpu.boosting.steps import line_search
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.learners.directions import Direction, Directions, Part
from ensemble_gpu.losses import Squared, SquaredMargin

# The cosine between g and h below which h leads nowhere.
NO_DESCENT = 1e-12
# A step of this share of the outputs' scale is a rounding error.
SHORTEST = 2.0**-50
# Rounds that may be drawn anew because the learner of their rows leads nowhere.
MOST_DRAWS = 10


@dataclass(frozen=True)
class DescendTrail:
    """Where the descent stands: the draws so far, and where the next line search begins."""

    number: int
    guess: float


@dataclass(frozen=True)
class _Looked:
    """F after a round that has not been followed, and its loss, once it is known."""

    round_: Direction
    F: Any
    loss: float | None = None


class Descend:
    """The descend strategy on the device of the rows."""

    def __init__(
        self, engine: Engine, learner: Directions, problem: Problem, step: str, rate: float,
        sampling: Sampling,
    ) -> None:  # fmt: skip
        self.engine, self.learner, self.step, self.rate = engine, learner, step, rate
        self.problem = replace(problem, loss=replace(problem.loss, exp=engine.exp))
        self.sampling, self.intercept = sampling, problem.start
        xp, where = engine.where.xp, engine.where
        weights = problem.weights
        self.weights = None if weights is None else (weights / xp.max(weights))[None, :]
        n_rows = problem.y.shape[-1]
        start = where.put(problem.start)[:, None]
        self.F = where.zeros((len(problem.start), n_rows), xp.float64) + start
        if problem.offset is not None:
            self.F = self.F + problem.offset
        curvature = problem.loss.curvature
        self.guess = 1.0 / curvature if curvature else problem.scale
        self.number, self.reason = 0, ""
        self.looked: _Looked | None = None

    def best(self) -> Direction | None:
        """The round's learner; rows are drawn again where those that were drawn lead nowhere."""
        drawn = self.learner.draws or self.sampling.draws is not None
        for _ in range(MOST_DRAWS if drawn else 1):
            found = self._found()
            if found is not None:
                return found
            self.number += 1
        self.reason = "no learner lowers the loss any further"
        return None

    def _found(self) -> Direction | None:
        xp = self.engine.where.xp
        g = self._gradient(self.F)
        top = float(xp.max(xp.abs(g)))
        if not math.isfinite(top):
            raise ValueError(
                f"loss {self.problem.loss.name!r} gave a derivative that is not finite after "
                f"{self.number} rounds; a loss must be finite for every finite y and F."
            )
        if top == 0.0:
            return None
        learner = self.learner.fitted(g, self.number, self._part())
        h = self._answers(learner)
        alpha, gain = self._alpha(g, h)
        if abs(alpha) * float(xp.max(xp.abs(h))) <= SHORTEST * self.problem.scale:
            return None
        alpha = self.rate * alpha
        round_ = Direction(learner, alpha, gain, DescendTrail(self.number, self.guess))
        self.looked = _Looked(round_, self.F + alpha * h)
        return round_

    def _part(self) -> Part:
        """The rows that take part in a round, and their weights."""
        weights, counts = self.problem.weights, self.sampling.counts(self.number)
        if counts is None:
            return Part(None, weights)
        xp = self.engine.where.xp
        at = xp.nonzero(counts)[0]
        return Part(at, xp.astype(counts, xp.float64) if self.sampling.whole else weights)

    def _answers(self, learner: Any) -> Any:
        """h of the training rows [outputs, rows]."""
        own = self.learner
        h = self.engine.adopt(own.answers(learner, own.X, own.where))
        return self.engine.where.xp.permute_dims(h, (1, 0))

    def _gradient(self, F: Any) -> Any:
        """dl/dF [outputs, rows], by a kernel where the engine has one."""
        problem = self.problem
        g, _ = self.engine.derivatives(problem.loss, problem.y, problem.argument(F))
        return problem.in_outputs(g)

    def _inner(self, a: Any, b: Any) -> float:
        """<a, b>, the sum of w_i a_i b_i, the largest weight being 1."""
        xp, products = self.engine.where.xp, a * b
        return float(xp.sum(products if self.weights is None else self.weights * products))

    def _alpha(self, g: Any, h: Any) -> tuple[float, float]:
        """alpha, 0 where h leads nowhere, and the gain <g, h>^2 / <h, h>."""
        slope, size = self._inner(g, h), self._inner(h, h)
        if not abs(slope) > NO_DESCENT * math.sqrt(size) * math.sqrt(self._inner(g, g)):
            return 0.0, 0.0
        gain, loss = slope * (slope / size), self.problem.loss
        if self.step == "constant":
            return (1.0 / (loss.curvature or 1.0) if slope < 0.0 else 0.0), gain
        if isinstance(loss, Squared | SquaredMargin):
            return -slope / (2.0 * size), gain
        sign = -math.copysign(1.0, slope)
        return sign * self._searched(sign * h, abs(slope)), gain

    def _searched(self, h: Any, fall: float) -> float:
        """The alpha > 0 with the least R(F + alpha h); -`fall` is the slope at 0."""
        xp, problem = self.engine.where.xp, self.problem

        def slope(alpha: float) -> float:
            return self._inner(self._gradient(self.F + alpha * h), h) if alpha else -fall

        largest = float(xp.max(xp.abs(h)))
        limit = min(problem.loss.longest_step / largest, 2.0**60 * problem.scale)
        alpha = line_search(slope, self.guess, limit)
        self.guess = alpha or self.guess
        return alpha

    def _after(self, round_: Direction) -> _Looked:
        if self.looked is None or self.looked.round_ is not round_:
            F = self.F + round_.alpha * self._answers(round_.learner)
            self.looked = _Looked(round_, F)
        return self.looked

    def training_loss(self, round_: Direction) -> float:
        looked = self._after(round_)
        loss = self.problem.mean_loss(looked.F) if looked.loss is None else looked.loss
        self.looked = replace(looked, loss=loss)
        return loss

    def follow(self, round_: Direction) -> None:
        self.F, self.looked = self._after(round_).F, None
        self.number, self.guess = round_.trail.number + 1, round_.trail.guess
