"""Rounds in the L1 ball, or with an L1 penalty, over a dictionary.

    min R(f_0 + sum_h a_h h)    with |a|_1 <= radius, or + alpha |a|_1

A round asks the dictionary for the h with the largest |c_h|, c_h = -dR/da_h, and goes along a
direction d of the coefficients, by a share of [0, 1]:

corrective   to the minimum of R's quadratic model in the ball, over the members of the sum and the
             h that were found, the best of several features: all coefficients are found anew, so
             that the gap closes. As far as R falls; coefficients that become 0 leave the sum.
frank_wolfe  d = radius h - f by an exact line search: the greedy step of Frank and Wolfe (1956),
             and of Zhang (2003).

By convexity R(f') >= R(f) + <g, f' - f>, so with the largest |c_h| = C of the whole dictionary

    ball       gap = radius C - sum_h a_h c_h                                 >= R(f) - R*
    penalised  gap = alpha |a|_1 - sum_h a_h c_h + bound (C - alpha)_+        >= P(f) - P*

where P = R + alpha |a|_1 and bound is one on |a*|_1: P* <= P(f), and R* >= 0, so P(f) / alpha. The
roundings of c are added: the bound holds as computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.kernels.host.ball import minimise
from ensemble_gpu.l1.bounds import CLOSED, FRANK_WOLFE, STUCK, Bound, Curves, Settings
from ensemble_gpu.l1.dictionaries import Correlations, Dictionary, Key
from ensemble_gpu.l1.metric import Metric
from ensemble_gpu.l1.rows import BallRows
from ensemble_gpu.losses.roots import LOW, Bracket, Precision, narrowed

# New members of a round: the best of so many features, with this share of the largest excess.
MOST_NEW, NEAR = 16, 0.3
# A quadratic model is minimised to this share of what violates its conditions,
SHARE = 1e-3
# with so many products a round, so many passes over Q, and this share of the additions that a look
# at all rows takes; what is not used is kept for later rounds, up to so many of them.
WORK, PASSES, WORK_SHARE, KEPT = 1_000_000, 20, 0.25, 16
# A line search along a good direction ends this far before the secant's root, with a slope < 0;
# others are exact: they end at a slope of this share of the first. Both make so many steps at most.
BEFORE, FLAT, MOST_TRIALS = 0.05, 1e-3, 30
# The quadratic model is taken so much steeper than it was found, so that full steps do not rise; it
# is not less than this share of what was computed.
STEEPER, LEAST = 1.15, 1e-3
# Coefficients are multiples of 2^-VALUE_BITS of the outputs' scale: sums of them are exact.
VALUE_BITS = 46
# Conditions of the penalised minimum hold to this share of the largest derivative at f_0.
KKT = 1e-6
# A loss of this share of that of f_0 is as good as none.
TINY = 1e-6


@dataclass(frozen=True)
class _Point:
    """Correlations at coefficients a of `keys`, whose outputs are F."""

    a: np.ndarray
    F: Any
    found: Correlations
    unit: float
    error: float

    @property
    def c(self) -> np.ndarray:
        return self.found.own * self.unit

    @property
    def largest(self) -> float:
        """C of the whole dictionary."""
        outside = abs(self.found.found[0][1]) * self.unit if self.found.found else 0.0
        return max(outside, float(np.abs(self.c).max(initial=0.0)))


class Ball:
    """A sum over a dictionary, and the rounds that change it; `run` may be called again."""

    def __init__(self, rows: BallRows, dictionary: Dictionary, scale: float) -> None:
        self.quantum = scale * 2.0**-VALUE_BITS
        self.rows = rows.from_multiples_of(self.quantum)
        self.dictionary = dictionary.of_rows(self.rows.problem)
        self.metric = Metric(self.rows, self.dictionary)
        self.keys: list[Key] = []
        self.worth: dict[Key, float] = {}
        self.steeper, self.work = 1.0, 0
        self.point = self._looked(np.zeros(0), self.rows.start())
        self.first, self.first_loss = self.point.largest, self.rows.loss(self.point.F)

    @property
    def coefficients(self) -> np.ndarray:
        return self.point.a

    @property
    def norm(self) -> float:
        return float(np.abs(self.point.a).sum())

    @property
    def penalty(self) -> float:
        """C = max over h of |c_h|: the alpha of this f, and -dR*/dradius."""
        return self.point.largest

    def run(self, bound: Bound, settings: Settings) -> Curves:
        """Rounds until the gap is closed, from the coefficients that there are."""
        size = bound.size
        if not bound.penalised:
            size = math.floor(size / self.quantum) * self.quantum
        bound = Bound(bound.kind, size)
        curves = Curves([], [])
        while True:
            R = self.rows.loss(self.point.F)
            P = R + (size * self.norm if bound.penalised else 0.0)
            gap = self._gap(bound, P)
            curves.losses.append(R)
            curves.gaps.append(gap)
            least = max(settings.tol * max(P, TINY * self.first_loss), settings.enough)
            if gap <= least and self._optimal(bound):
                curves.reason = CLOSED
                break
            if len(curves.gaps) > settings.most_rounds:
                break
            if not self._round(bound, settings.step):
                curves.reason = STUCK
                break
        return curves

    def _gap(self, bound: Bound, P: float) -> float:
        point, error = self.point, self.point.error
        inside = float(point.a @ point.c)
        if not bound.penalised:
            return bound.size * point.largest - inside + 2.0 * bound.size * error
        beyond = max(point.largest + error - bound.size, 0.0)
        return bound.size * self.norm - inside + self.norm * error + beyond * (P / bound.size)

    def _optimal(self, bound: Bound) -> bool:
        """Penalised: whether |c_h| <= alpha, and c_h = alpha sign(a_h) in the sum."""
        if not bound.penalised:
            return True
        return self.violation(bound.size) <= KKT * self.first

    def violation(self, alpha: float) -> float:
        """The largest distance from the conditions of the penalised minimum."""
        point = self.point
        used = point.a != 0.0
        inside = np.abs(point.c[used] - alpha * np.sign(point.a[used]))
        return max(float(inside.max(initial=0.0)), point.largest - alpha, 0.0)

    def _round(self, bound: Bound, step: str) -> bool:
        """One step; False where nothing but rounding is left."""
        self._take_in(bound, step)
        before = self.point
        after = self._greedy(bound) if step == FRANK_WOLFE else self._corrected(bound)
        if after is None:
            return False
        fall = 0.5 * (after.a - before.a) * (before.c + after.c)
        for key, own in zip(self.keys, fall.tolist(), strict=True):
            self.worth[key] = self.worth.get(key, 0.0) + own
        self.point = after
        self._drop()
        return True

    def _take_in(self, bound: Bound, step: str) -> None:
        """Members that were found, with the coefficient 0."""
        found, known = self.point.found.found, set(self.keys)
        if step == FRANK_WOLFE:
            found = found[:1]
        elif found:
            level = self._level(bound) / self.point.unit
            least = level + NEAR * (abs(found[0][1]) - level)
            found = [(key, own) for key, own in found[:MOST_NEW] if abs(own) >= least]
        new = [(key, own) for key, own in found if key not in known]
        self.keys = self.keys + [key for key, _ in new]
        self._extend(np.array([own for _, own in new], dtype=np.int64))

    def _extend(self, sums: np.ndarray) -> None:
        point = self.point
        own = np.concatenate([point.found.own, sums])
        a = np.concatenate([point.a, np.zeros(len(sums))])
        found = Correlations(own, point.found.found)
        self.point = _Point(a, point.F, found, point.unit, point.error)

    def _level(self, bound: Bound) -> float:
        """What |c_h| is worth in the sum: that of its least member; alpha."""
        if bound.penalised:
            return bound.size
        point = self.point
        used = point.a != 0.0
        if not used.any() or self.norm < bound.size * (1.0 - 1e-9):
            return 0.0
        return max(0.0, float((np.sign(point.a[used]) * point.c[used]).min()))

    def _greedy(self, bound: Bound) -> _Point | None:
        """Along radius h - f, by an exact line search."""
        point, seen = self.point, dict[float, _Point]()
        if not len(point.a):
            return None
        at = int(np.argmax(np.abs(point.found.own)))
        d = -point.a
        d[at] += bound.size * np.sign(point.c[at])

        def slope_at(gamma: float) -> float:
            seen[gamma] = self._moved(gamma * d)
            return self._slope(seen[gamma], d, bound)

        slope = self._slope(point, d, bound)
        if not slope < 0.0:
            return None
        full = slope_at(1.0)
        if full <= 0.0:
            return seen[1.0]
        bracket = Bracket(0.0, slope, 1.0, full, moved=LOW)
        exact = Precision(-FLAT * slope, 1e-12, MOST_TRIALS)
        return seen.get(narrowed(slope_at, bracket, exact).low)

    def _corrected(self, bound: Bound) -> _Point | None:
        """Towards the minimum of the quadratic model, to a point where R still falls.

        The model learns from the change of the slope how steep R is.
        """
        point = self.point
        if not len(point.a):
            return None
        d, curve = self._to_minimum(self.metric.of(self.keys, point.F), bound)
        slope, gamma = self._slope(point, d, bound), 1.0
        for trial in range(MOST_TRIALS if slope < 0.0 else 0):
            after = self._moved(gamma * d)
            at = self._slope(after, d, bound)
            if trial == 0 and curve > 0.0:
                ratio = (at - slope) / curve
                self.steeper = min(max(ratio, self.steeper / 4.0, LEAST), 4.0 * self.steeper)
            if at <= 0.0:
                return after
            gamma *= (1.0 - BEFORE) * slope / (slope - at)
        return None

    def _to_minimum(self, Q: np.ndarray, bound: Bound) -> tuple[np.ndarray, float]:
        """d, to the coefficients that about minimise the quadratic model, and d' Q d.

        The sum is in one order, as all that follows hangs on it.
        """
        point = self.point
        a, c = point.a.copy(), point.c.copy()
        cells = self.rows.n * point.F.shape[0] * self.dictionary.width
        own = WORK + PASSES * Q.size + int(WORK_SHARE * cells)
        self.work = min(self.work + own, KEPT * own)
        times = STEEPER * self.steeper
        self.work = int(minimise(times * Q, c, a, bound.kind, bound.size, SHARE, self.work))
        d = a - point.a
        curve = math.fsum((d * (point.c - c)).tolist()) / times
        norm = math.fsum(np.abs(a).tolist())
        if not bound.penalised and norm > bound.size:
            d = a * (bound.size / norm) - point.a
        return d, curve

    def _slope(self, point: _Point, d: np.ndarray, bound: Bound) -> float:
        """Of R along d at a point; penalised with that of alpha |a|_1.

        A coefficient that is 0 begins there, or has just come there: at the point where rounds
        begin it has the sign of d, later the opposite.
        """
        slope = -math.fsum((d * point.c).tolist())
        if not bound.penalised:
            return slope
        at_zero = np.sign(d) if point is self.point else -np.sign(d)
        signs = np.where(point.a != 0.0, np.sign(point.a), at_zero)
        return slope + bound.size * math.fsum((signs * d).tolist())

    def _moved(self, d: np.ndarray) -> _Point:
        """The point a + d, rounded towards 0: |a|_1 stays within the radius."""
        begin = self.point
        a = np.trunc((begin.a + d) / self.quantum) * self.quantum
        at = np.flatnonzero(a != begin.a)
        keys = [self.keys[j] for j in at]
        return self._looked(a, self.dictionary.moved(begin.F, keys, a[at] - begin.a[at]))

    def _looked(self, a: np.ndarray, F: Any) -> _Point:
        derivatives = self.rows.derivatives(F)
        found = self.dictionary.correlations(derivatives.q, self.keys, F)
        return _Point(a, F, found, derivatives.unit, derivatives.error)

    def _drop(self) -> None:
        """Members whose coefficient is 0 leave."""
        point = self.point
        kept = np.flatnonzero(point.a)
        if len(kept) == len(point.a):
            return
        self.keys = [self.keys[j] for j in kept]
        found = Correlations(point.found.own[kept], point.found.found)
        self.point = _Point(point.a[kept], point.F, found, point.unit, point.error)
