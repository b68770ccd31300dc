"""The rebuild strategy: gradients of any loss, anew each round.

Round t: g_i = w_i l'(y_i, F_i) and h_i = w_i l''(y_i, F_i) (Newton) or w_i (least squares) become
integers relative to the largest of the round (boosting/integers.py), are added per (output,
feature, code), and the best stump of the sums moves F.

Leaf values are rounded to multiples of a power of two so small that F, a float64, is an exact sum
of them: F does not depend on the order of anything, and staged predictions end in the prediction.
With the engines' common exp (kernels/exponential.py) all of a round is the same to the last bit on
every engine for the losses of this package; a user's loss that calls its library's exp or log is
as portable as those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.boosting.integers import Fine, format_for, unit_of
from ensemble_gpu.boosting.learner import StumpLearner
from ensemble_gpu.boosting.steps import line_search
from ensemble_gpu.boosting.strategy import Stump
from ensemble_gpu.data.sampling import drawn_rows
from ensemble_gpu.kernels.protocol import Codes, Cut, Engine
from ensemble_gpu.losses import Loss

# Leaf values are multiples of 2^-VALUE_BITS of the outputs' scale.
VALUE_BITS = 40
# A step of this share of the usual one is short: the stump is stuck at a kink. Other features are
# tried then, a few, because each costs a line search. The usual step forgets a tenth a round.
SHORT = 0.05
MOST_STUMPS = 4
FORGET = 0.9
# Rounds that may be drawn anew because no row was in them.
MOST_DRAWS = 100


@dataclass(frozen=True)
class Problem:
    """What is to be minimised: the mean of w_i loss(y_i, F_i), from F = `start` on.

    `y` is [rows], or [outputs, rows] where every output has a target of its own; `weights` is None
    or [rows]; `scale` a power of two, the order of magnitude of F.
    """

    loss: Loss
    y: Any
    weights: Any | None
    start: np.ndarray
    scale: float

    @property
    def joint(self) -> bool:
        """Several outputs share a target: the loss takes F as [rows, outputs]."""
        return self.y.ndim == 1 and len(self.start) > 1


@dataclass(frozen=True)
class Sampling:
    """Each row takes part in a round with probability `share`, by a hash of (seed, round, row)."""

    share: float
    seed: int


class Rebuild:
    """The rebuild strategy on one engine."""

    def __init__(
        self,
        engine: Engine,
        codes: Codes,
        problem: Problem,
        learner: StumpLearner,
        step: str,
        learning_rate: float,
        sampling: Sampling,
    ) -> None:
        xp, where = engine.where.xp, engine.where
        self.engine, self.codes, self.learner = engine, codes, learner
        self.problem = replace(problem, loss=replace(problem.loss, exp=engine.exp))
        self.step, self.rate, self.sampling = step, learning_rate, sampling
        self.quantum = problem.scale * 2.0**-VALUE_BITS
        outputs = len(problem.start)
        start = np.rint(problem.start / self.quantum) * self.quantum
        self.intercept = start
        self.F = where.zeros((outputs, codes.n_rows), xp.float64) + where.put(start)[:, None]
        self.format = format_for(engine, codes.n_rows, problem.weights)
        self.packed = where.zeros((self.format.planes * outputs, codes.n_rows), xp.int64)
        self.pending: Stump | None = None
        self.moved = False
        self.round = 0
        self.units = 0.0, 0.0
        self.heaviest = None if problem.weights is None else xp.max(problem.weights)
        curvature = problem.loss.curvature
        self.guess = 1.0 / curvature if curvature else problem.scale
        self.zero = where.full(0.0)
        self.flat = False
        self.usual = 0.0
        self.reason = ""

    # --- rows -------------------------------------------------------------------------------

    def _by_block(self, function: Callable[[slice], Any]) -> list[Any]:
        return self.engine.by_block(function, self.codes.n_rows)

    def _store(self, name: str, rows: slice, value: Any, place: Any) -> None:
        """Rows of self.F or packed, unless the engine has written them into their place."""
        if value is place:
            return
        if rows == slice(0, self.codes.n_rows):
            setattr(self, name, value)
        else:
            place[...] = value

    def _cut(self, stump: Stump) -> Cut:
        return Cut(stump.bin, self.codes.width - 1, stump.missing_leaf)

    def _move(self, rows: slice, stump: Stump) -> None:
        """F follows the stump."""
        F, column, cut = self.F[:, rows], self.column[rows], self._cut(stump)
        self._store("F", rows, self.engine.move(F, column, cut, stump.values, F), F)

    def _argument(self, F: Any) -> Any:
        """F as the loss takes it: [rows], [outputs, rows], or [rows, outputs] where joint."""
        if self.problem.joint:
            return self.engine.where.xp.permute_dims(F, (1, 0))
        return F[0, :] if F.shape[0] == 1 else F

    def _differentiate(self, rows: slice, F: Any) -> tuple[Any, Any]:
        """Gradient and second derivative [outputs, rows] (ones where the step needs none)."""
        xp, loss, y = self.engine.where.xp, self.problem.loss, self.problem.y[..., rows]
        argument = self._argument(F)
        if self.step == "newton":
            g, h = self.engine.derivatives(loss, y, argument)
        else:
            g, h = loss.gradient(y, argument), None
        if self.problem.joint:
            g, h = (None if a is None else xp.permute_dims(a, (1, 0)) for a in (g, h))
        elif F.shape[0] == 1:
            g, h = (None if a is None else a[None, :] for a in (g, h))
        return g, h

    def _refresh_rows(self, rows: slice) -> tuple[float, float]:
        """Move F, pack the gradients of a block; returns their largest |g| and h.

        Packed in the units of the round before, which are mostly this round's as well.
        """
        if self.pending is not None:
            self._move(rows, self.pending)
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
        self._store("packed", rows, self.format.pack(g, h, part, self.units, place), place)

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
        """Weight of every row in this round: its sample weight, or 0 where it was not drawn."""
        weights = None if self.format.weights is None else self.format.weights[rows]
        if self.sampling.share == 1.0:
            return weights
        where, xp = self.engine.where, self.engine.where.xp
        drawn = drawn_rows(self.sampling.seed, self.round, rows, self.sampling.share, where)
        if weights is None:
            return xp.astype(drawn, xp.int64 if isinstance(self.format, Fine) else xp.float64)
        return xp.where(drawn, weights, xp.zeros_like(weights))

    # --- a round ----------------------------------------------------------------------------

    def _refresh(self) -> tuple[float, float]:
        """Gradients of all rows; their largest |g| and h."""
        largest = self._by_block(self._refresh_rows)
        for tops in largest:  # before max, which overlooks a NaN that is not the first
            self._check_finite(*tops)
        top_g, top_h = (max(values) for values in zip(*largest, strict=True))
        return top_g, top_h

    def _sums(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Integer sums of -g and h per (output, feature, code); None where g vanishes."""
        self.flat = False
        top_g, top_h = self._refresh()
        self.pending = None
        if top_h == 0.0 < top_g:  # no second derivative anywhere: least squares for this round
            self.flat = True
            top_g, top_h = self._refresh()
        if top_g == 0.0 or top_h == 0.0:
            return None
        units = unit_of(top_g, self.format.bits), unit_of(top_h, self.format.bits)
        if units != self.units:
            self.units = units
            self._by_block(self._pack_rows)
        G, H = self.format.sums(self.codes, self.packed)
        return -G, H

    def _check_finite(self, *derivatives: float) -> None:
        if not all(map(math.isfinite, derivatives)):
            raise ValueError(
                f"loss {self.problem.loss.name!r} gave a derivative that is not finite after "
                f"{self.round} rounds; a loss must be finite for every finite y and F."
            )

    def best_stump(self) -> Stump | None:
        """Where the loss has kinks a stump can be stuck at one: then the best of other features."""
        has_kinks = self.step == "line_search" and not self.problem.loss.has_hessian
        best: Stump | None = None
        barred: list[int] = []
        sums = self._drawn_sums()
        while sums is not None and len(barred) < (MOST_STUMPS if has_kinks else 1):
            stump = self._stump(sums, barred)
            if stump is None:
                break
            if best is None or _length(stump) > _length(best):
                best = stump
            if _length(best) > SHORT * self.usual:
                break
            barred.append(stump.feature)
        if best is None or _length(best) == 0.0:
            self.reason = "no stump lowers the loss any further"
            return None
        self.usual = max(FORGET * self.usual, _length(best))
        self.column = self.engine.column(self.codes, best.feature)
        return best

    def _drawn_sums(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Sums of a round; drawn again where no row was."""
        for _ in range(1 if self.sampling.share == 1.0 else MOST_DRAWS):
            sums = self._sums()
            if sums is not None and sums[0].any():
                return sums
            self.round += 1
        return None

    def _stump(self, sums: tuple[np.ndarray, np.ndarray], barred: list[int]) -> Stump | None:
        split = self.learner.best(*sums, barred)
        if split is None:
            return None
        loss, (unit_g, unit_h) = self.problem.loss, self.units
        h = split.c * (unit_g / unit_h)
        stump = Stump(split.feature, split.bin, self.learner.missing_leaf(split), h, 1.0, 0.0)
        alpha = 1.0
        if self.step == "line_search":
            self.column = self.engine.column(self.codes, split.feature)
            alpha = self._search(stump, h, split.S)
        elif self.step == "constant":
            alpha = 1.0 / (loss.curvature or 1.0)
        elif self.step == "newton":
            h = np.clip(h, -loss.longest_step, loss.longest_step)
        values = np.rint(self.rate * alpha * h / self.quantum) * self.quantum
        gain = split.gain * unit_g * (unit_g / unit_h)
        return replace(stump, values=values, alpha=self.rate * alpha, error=gain)

    def _search(self, stump: Stump, h: np.ndarray, S: np.ndarray) -> float:
        """alpha of R(F + alpha h); slopes are sums of integers, the same in any order.

        S are the sums at alpha = 0, if all rows have taken part in them.
        """

        def slope(alpha: float) -> float:
            if alpha == 0.0 and self.sampling.share == 1.0:
                sums = S
            else:
                parts = self._by_block(lambda rows: self._leaf_sums(rows, stump, alpha * h))
                sums = np.sum(parts, axis=0)
            return -math.fsum((h * sums.astype(np.float64)).ravel())

        largest = float(np.abs(h).max())
        limit = min(self.problem.loss.longest_step / largest, 2.0**60 * self.problem.scale)
        alpha = line_search(slope, self.guess, limit)
        self.guess = alpha or self.guess
        return alpha

    def _leaf_sums(self, rows: slice, stump: Stump, values: np.ndarray) -> np.ndarray:
        """Integer sums [output, leaf] of -g at F + values, in the round's units."""
        xp, cut, column = self.engine.where.xp, self._cut(stump), self.column[rows]
        g, _ = self._differentiate(rows, self.engine.move(self.F[:, rows], column, cut, values))
        top = max(float(xp.max(g)), -float(xp.min(g)))
        self._check_finite(top)
        unit = self.units[0]
        if isinstance(self.format, Fine):  # one block, so the unit is the same on every engine
            unit = max(unit, unit_of(top, self.format.bits))
        weights = None if self.format.weights is None else self.format.weights[rows]
        q = self.format.integers(g, weights, -unit)
        return self.engine.leaf_sums(q, column, cut) * (unit / self.units[0])

    def follow(self, stump: Stump) -> None:
        if not self.moved:
            self.pending = stump  # moves F together with the next gradients
        self.moved = False
        self.round += 1

    def training_loss(self, stump: Stump) -> float:
        problem, xp = self.problem, self.engine.where.xp

        def move(rows: slice) -> tuple[float, float]:
            self._move(rows, stump)
            value = problem.loss.value(problem.y[..., rows], self._argument(self.F[:, rows]))
            if value.ndim > 1:
                value = xp.sum(value, axis=0)
            if problem.weights is None:
                return float(xp.sum(value)), float(value.shape[0])
            weights = problem.weights[rows] / self.heaviest
            return float(xp.sum(value * weights)), float(xp.sum(weights))

        self.moved = True
        total, weight = map(math.fsum, zip(*self._by_block(move), strict=True))
        return total / weight


def _length(stump: Stump) -> float:
    """The largest value of a leaf."""
    return float(np.abs(stump.values).max())
