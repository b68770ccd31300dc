"""Gradients of any loss at the training rows, as integers, anew each round.

Round t: g_i = w_i l'(y_i, F_i) and h_i = w_i l''(y_i, F_i) (Newton) or w_i (least squares) become
integers relative to the largest of the round (boosting/integers.py). An engine that has the loss
as a kernel does all of it in one pass over the rows (`GradientPass`); else array calls do, block
by block, with the same bits.

Leaf values are rounded to multiples of a power of two so small that F, a float64, is an exact sum
of them: F does not depend on the order of anything, and staged predictions end in the prediction.
With the engines' common exp (kernels/exponential.py) all of a round is the same to the last bit on
every engine for the losses of this package; a user's loss that calls its library's exp or log is
as portable as those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.boosting.integers import Fine, Packed, format_for, unit_of
from ensemble_gpu.boosting.problem import Problem, Sampling
from ensemble_gpu.kernels.gradient_pass import GradientPass, LossPass
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.learners.protocol import Leaves, LookedUp

# Leaf values are multiples of 2^-VALUE_BITS of the outputs' scale.
VALUE_BITS = 40


class Gradients:
    """F of the training rows, and the integers of a round."""

    def __init__(
        self, engine: Engine, n_rows: int, problem: Problem, step: str, sampling: Sampling
    ) -> None:
        xp, where = engine.where.xp, engine.where
        self.engine, self.n_rows, self.step, self.sampling = engine, n_rows, step, sampling
        self.problem = replace(problem, loss=replace(problem.loss, exp=engine.exp))
        self.quantum = problem.scale * 2.0**-VALUE_BITS
        outputs = len(problem.start)
        start = np.rint(problem.start / self.quantum) * self.quantum
        self.intercept = start
        self.F = where.zeros((outputs, n_rows), xp.float64) + where.put(start)[:, None]
        if problem.offset is not None:
            self.F = self.F + xp.round(problem.offset / self.quantum) * self.quantum
        steady = problem.loss.straight and sampling.share == 1.0
        n_everywhere = engine.team.count(n_rows)
        self.format = format_for(engine, n_everywhere, problem.weights, steady)
        self.packed = where.zeros((self.format.planes * outputs, n_rows), xp.int64)
        self.pending: tuple[Leaves, np.ndarray] | None = None
        self.spare: Any = None
        self.round = 0
        self.units = 0.0, 0.0
        self.heaviest: float | None = None
        if problem.weights is not None:
            self.heaviest = engine.team.largest(float(xp.max(problem.weights)))[0]
        self._shares: tuple[Any, float] | None = None
        self.zero = where.full(0.0)
        self.present = _present(problem.weights, xp)
        self.present_rows = None if self.present is None else xp.nonzero(self.present)[0]
        self.flat = False
        self._drawn: tuple[int, Any] | None = None

    def rounded(self, values: np.ndarray) -> np.ndarray:
        """Leaf values as F can add them up exactly."""
        return np.rint(values / self.quantum) * self.quantum

    def by_block(self, function: Callable[[slice], Any]) -> list[Any]:
        """The function of blocks of rows; of all of them, where rows depend on each other."""
        if not self.problem.loss.by_row:
            return [function(slice(0, self.n_rows))]
        return self.engine.by_block(function, self.n_rows)

    def _stored(self, whole: Any, rows: slice, value: Any, place: Any) -> Any:
        """`whole` with the value of a block, unless the engine has written it into its place."""
        if value is place:
            return whole
        if rows == slice(0, self.n_rows):
            return value
        place[...] = value
        return whole

    def move(self, rows: slice, leaves: Leaves, values: np.ndarray) -> None:
        """F follows a learner."""
        F = self.F[:, rows]
        self.F = self._stored(self.F, rows, leaves.moved(F, rows, values, F), F)

    def _differentiate(self, rows: slice, F: Any) -> tuple[Any, Any]:
        """Gradient and second derivative [outputs, rows] (ones where the step needs none)."""
        problem, y = self.problem, self.problem.y[..., rows]
        argument = problem.argument(F)
        if self.step == "newton":
            g, h = self.engine.derivatives(problem.loss, y, argument)
            return problem.in_outputs(g), problem.in_outputs(h)
        return problem.in_outputs(problem.loss.gradient(y, argument)), None

    def _refresh_rows(self, rows: slice) -> tuple[float, float]:
        """Move F, pack the gradients of a block; returns their largest |g| and h.

        Packed in the units of the round before, which are mostly this round's as well.
        """
        if self.pending is not None:
            self.move(rows, *self.pending)
        g, h, part = self._gradients(rows)
        xp, bits = self.engine.where.xp, self.format.bits
        tops = max(float(xp.max(g)), -float(xp.min(g))), float(xp.max(h))
        pairs = zip(tops, self.units, strict=True)
        if all(unit > 0.0 and top < math.inf and unit_of(top, bits) <= unit for top, unit in pairs):
            self._pack(rows, g, h, part)
        return tops

    def _pack_rows(self, rows: slice) -> None:
        self._pack(rows, *self._gradients(rows))

    def _pack(self, rows: slice, g: Any, h: Any, part: Any) -> None:
        place = self.packed[:, rows]
        packed = self.format.pack(g, h, part, self.units, place)
        self.packed = self._stored(self.packed, rows, packed, place)

    def _gradients(self, rows: slice) -> tuple[Any, Any, Any]:
        """g, h >= 0 [outputs, rows] of a block, and the rows' weight in this round."""
        xp = self.engine.where.xp
        g, h = self._differentiate(rows, self.F[:, rows])
        if h is None or self.flat:
            h = xp.ones_like(g)
        elif self.problem.loss.kernel is None:
            h = xp.maximum(h, self.zero)
        part = self._taking_part(rows)
        return self.format.weighed(g, part), self.format.weighed(h, part), part

    def _taking_part(self, rows: slice) -> Any | None:
        """Weight of every row in this round: its sample weight, as far as it was drawn."""
        weights = None if self.format.weights is None else self.format.weights[rows]
        counts = self._counts()
        if counts is None:
            return weights
        counts = counts[rows]
        xp, fine = self.engine.where.xp, isinstance(self.format, Fine)
        if weights is None:
            return xp.astype(counts, xp.int64 if fine else xp.float64)
        if self.sampling.whole:
            return counts if fine else xp.astype(counts, xp.float64) / self.heaviest
        return xp.where(counts > 0, weights, xp.zeros_like(weights))

    def _counts(self) -> Any | None:
        """How often each row takes part in this round; None: all as they are."""
        if self._drawn is None or self._drawn[0] != self.round:
            self._drawn = self.round, self.sampling.counts(self.round)
        return self._drawn[1]

    def _pass(self) -> tuple[float, float] | None:
        """Move F and pack the gradients of all rows at once, if the engine can; else None."""
        if not isinstance(self.format, Packed) or self.problem.loss.kernel is None:
            return None
        move = self._lookup()
        weights, taken = self.format.weights, self._counts()
        if self.sampling.whole:
            weights, taken = self._taking_part(slice(0, self.n_rows)), None
        elif taken is not None and weights is not None:
            taken = taken > 0
        problem, flat = self.problem, self.flat or self.step != "newton"
        return self.engine.gradient_pass(
            GradientPass(
                problem.loss, problem.y, self.F, self.packed, self.units, problem.joint, flat,
                weights, taken, move,
            )
        )  # fmt: skip

    def _lookup(self) -> tuple[Any, np.ndarray] | None:
        """The move that F has not made yet; it is made at once if leaves cannot be looked up."""
        if self.pending is None:
            return None
        leaves, values = self.pending
        if isinstance(leaves, LookedUp):
            return leaves.lookup(values)
        self.settle()
        return None

    def _refresh(self) -> tuple[float, float]:
        """Gradients of all rows; their largest |g| and h."""
        self._counts()  # once, before threads ask for them
        tops = self._pass()
        largest = self.by_block(self._refresh_rows) if tops is None else [tops]
        self.pending = None
        top_g, top_h = self.engine.team.largest(*np.max(largest, axis=0).tolist())
        self._check_finite(top_g, top_h)
        return top_g, top_h

    def ready(self) -> bool:
        """Integers of a new round; False where g vanishes."""
        self.flat = False
        top_g, top_h = self._refresh()
        if top_h == 0.0 < top_g:  # no second derivative anywhere: least squares for this round
            self.flat = True
            top_g, top_h = self._refresh()
        if top_g == 0.0 or top_h == 0.0:
            return False
        units = unit_of(top_g, self.format.bits), unit_of(top_h, self.format.bits)
        if units != self.units:
            self.units = units
            if self._pass() is None:
                self.by_block(self._pack_rows)
        return True

    def drawn(self) -> Any | None:
        """Positions of the rows that take part in this round; None: all."""
        xp = self.engine.where.xp
        counts = self._counts()
        if counts is None:
            return self.present_rows
        return xp.nonzero(counts if self.present is None else (counts > 0) & self.present)[0]

    def _check_finite(self, *derivatives: float) -> None:
        if not all(map(math.isfinite, derivatives)):
            raise ValueError(
                f"loss {self.problem.loss.name!r} gave a derivative that is not finite after "
                f"{self.round} rounds; a loss must be finite for every finite y and F."
            )

    def leaf_sums(self, leaves: Leaves, values: np.ndarray) -> np.ndarray:
        """Sums [output, leaf] of -g at F + values, in the round's units."""
        parts = self.by_block(lambda rows: self._leaf_sums(rows, leaves, values))
        sums, units = zip(*parts, strict=True)
        return self.engine.team.sum(np.sum(sums, axis=0)) * (units[0] / self.units[0])

    def _leaf_sums(
        self, rows: slice, leaves: Leaves, values: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """Sums of a block, and their unit, which is the same for all blocks."""
        xp = self.engine.where.xp
        g, _ = self._differentiate(rows, leaves.moved(self.F[:, rows], rows, values))
        top, unit = max(float(xp.max(g)), -float(xp.min(g))), self.units[0]
        if isinstance(self.format, Fine):  # one block for each worker
            top = self.engine.team.largest(top)[0]
            unit = max(unit, unit_of(top, self.format.bits))
        self._check_finite(top)
        weights = None if self.format.weights is None else self.format.weights[rows]
        q = self.format.integers(g, weights, -unit)
        return leaves.sums(q, rows), unit

    def _weighed(self) -> tuple[Any, float]:
        """Weights of the rows, the heaviest is 1 (None: all are), and the sum of all workers'.

        Found when the loss is first asked for.
        """
        if self._shares is None:
            weights, team = self.problem.weights, self.engine.team
            if weights is None:
                self._shares = None, float(team.count(self.n_rows))
            else:
                packed = isinstance(self.format, Packed)
                shares = self.format.weights if packed else weights / self.heaviest
                total = float(self.engine.where.xp.sum(shares))
                self._shares = shares, team.fsum(np.array([total]))
        return self._shares

    def moved(self, leaves: Leaves, values: np.ndarray) -> tuple[Any, float]:
        """F + values of the leaves, and the mean loss there; F itself stays where it is."""
        self.settle()
        problem, xp, team = self.problem, self.engine.where.xp, self.engine.team
        shares, total = self._weighed()
        spare = xp.empty_like(self.F) if self.spare is None else self.spare
        self.spare = None
        if isinstance(leaves, LookedUp) and not problem.joint:
            move = leaves.lookup(values)
            sums = self.engine.loss_pass(
                LossPass(problem.loss, problem.y, self.F, spare, move, shares)
            )
            if sums is not None:
                return spare, team.fsum(sums) / total

        def look(rows: slice) -> tuple[Any, float]:
            place = spare[:, rows]
            F = leaves.moved(self.F[:, rows], rows, values, place)
            moved = self._stored(spare, rows, F, place)
            value = problem.loss.value(problem.y[..., rows], problem.argument(F))
            if value.ndim > 1:
                value = xp.sum(value, axis=0)
            if shares is not None:
                value = value * shares[rows]
            return moved, float(xp.sum(value))

        moved, sums_of_blocks = zip(*self.by_block(look), strict=True)
        return moved[0], team.fsum(np.array(sums_of_blocks)) / total

    def adopt(self, F: Any) -> None:
        """F from `moved` in place of the old one, whose memory serves the next `moved`."""
        self.spare, self.F = self.F, F

    def settle(self) -> None:
        """Let F follow the rounds that it has not followed yet."""
        if self.pending is not None:
            leaves, values = self.pending
            self.by_block(lambda rows: self.move(rows, leaves, values))
            self.pending = None


def _present(weights: Any | None, xp: Any) -> Any | None:
    """Which rows have weight; None: all. Bags share rows, and leave some out."""
    if weights is None or bool(xp.min(weights) > 0.0):
        return None
    return weights > 0.0
