"""One positive scale s between outputs and probabilities: p = link(s F).

Boosting goes on to raise margins when all rows are right, and the probabilities of training rows
say nothing about those of others. s minimises the log-loss of n rows that the model has not been
trained on, with half a row of a wrong class spread over them: for a row of class c

    l(s) = -(1 - e) ln p_c(s F) - e / (K - 1) sum_{k != c} ln p_k(s F),    e = 1 / (2 n).

The minimum is where p_c = 1 - e at the most in the mean: s is finite where F separates the rows,
and about ln(2 n) / (2 m) for margins of two classes that are all m. With p_k proportional to
e^g_k(s) and q the shares 1 - e and e / (K - 1) of the classes,

    l' = E_p[a] - E_q[a],    l'' = Var_p[a] + E_p[b] - E_q[b],    a = dg/ds, b = d2g/ds2

    votes     g_k = s F_k              a_k = F_k                    b_k = 0
    margins   g_k = ln sigma(2 s F_k)  a_k = 2 F_k sigma(-2 s F_k)  b_k = -2 F_k a_k sigma(2 s F_k)

For two classes and for votes l is convex. The root of l' is found by Newton's method from s = 0 on
(where l' is concave, as for two classes that are told apart, it comes from the left without ever
going too far), in a bracket, for K margins need not be convex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import sigmoid
from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.kernels.host.logistic import LARGEST_LOSS, log_loss_and_slopes
from ensemble_gpu.model.link import MARGINS, log_loss, probabilities

LEAST, MOST = 2.0**-20, 2.0**20
MOST_STEPS = 60
LARGE = 1e70  # outputs whose fourth powers are floats
TOLERANCE = 1e-4  # of the last step: the error left is about its square
SMALL_STEP = 7e-3  # of one with fourth derivatives: the error of the loss is its fifth power / 20

# l' at a scale and the step that leads to its root.
Slopes = Callable[[float], tuple[float, float]]


def best_scale(F: Any, index: Any, weights: Any | None, link: str, where: Where) -> float:
    """The scale for outputs F [n, outputs] of rows of class `index`, within [LEAST, MOST].

    1 where F is 0 everywhere. LEAST where F says less about the rows than nothing. Rounded to a
    float32: sums of another library differ in the last digits of a float64.
    """
    xp = where.xp
    F = where.as_float64(F)
    largest = float(xp.max(xp.abs(F)))
    if largest == 0.0:
        return 1.0
    F = F / largest  # no square overflows
    of_rows = _two_classes if F.shape[1] == 1 else _several_classes
    scale = _root(of_rows(F, index, weights, link, where)) / largest
    return float(np.float32(min(max(scale, LEAST), MOST)))


@dataclass(frozen=True)
class CalibratedLoss:
    """`calibrated_log_loss` as a loss of validation rows (boosting/strategy.py)."""

    link: str
    where: Where

    def __call__(self, F: Any, index: Any, weights: Any | None) -> float:
        return calibrated_log_loss(F, index, weights, self.link, self.where)

    def watched(self, index: Any, weights: Any | None) -> WatchedLoss:
        return WatchedLoss(index, weights, self.link, self.where)


def calibrated_log_loss(F: Any, index: Any, weights: Any | None, link: str, where: Where) -> float:
    """The log-loss at the best scale: it does not grow because margins do."""
    return log_loss(F, index, weights, link, where, best_scale(F, index, weights, link, where))


class WatchedLoss:
    """`calibrated_log_loss` of one set of rows, whose outputs change little from call to call.

    Of margins of two classes l is convex, and the search for the root may begin where the scales of
    the calls before lead to. Its last step d is small, and the loss after it

        l + l1 d + l2 d^2 / 2 + l3 d^3 / 6 + l4 d^4 / 24,    l1 + l2 d + l3 d^2 / 2 + l4 d^3 / 6 = 0

    with the derivatives l1 to l4. Mostly one pass over the rows is enough, and the loss is exact to
    about a part in 10^9.
    """

    def __init__(self, index: Any, weights: Any | None, link: str, where: Where) -> None:
        self.given = index, weights, link, where
        self.sign = 2.0 * where.as_float64(index) - 1.0
        self.shares = None if weights is None else _shares(self.sign, weights, where)
        self.scale, self.start, self.least = 0.0, 0.0, 0.5 / index.shape[0]

    def __call__(self, F: Any) -> float:
        link, where = self.given[2:]
        xp, F = where.xp, where.as_float64(F)
        largest = max(float(xp.max(F)), -float(xp.min(F)))
        if link != MARGINS or F.shape[1] > 1 or largest > LARGE:
            return calibrated_log_loss(F, *self.given)
        last = 0.0, 0.0, (0.0, 0.0, 0.0, 0.0)

        def slopes(s: float) -> tuple[float, float]:
            nonlocal last
            loss, l1, l2, l3, l4, margin = _loss_and_slopes(
                F[:, 0], self.sign, self.shares, s, where
            )
            last = s, loss, (l1, l2, l3, l4)
            l1 += self.least * margin
            return l1, _step(l1, l2, l3, l4)

        scale = _root(slopes, self.start, SMALL_STEP)
        if not LEAST < scale < MOST:  # also where outputs are 0
            self.scale = self.start = 0.0
            return calibrated_log_loss(F, *self.given)
        if abs(scale - last[0]) > SMALL_STEP * scale:
            slopes(scale)
        s, loss, (l1, l2, l3, l4) = last
        d = float(np.float32(scale)) - s
        before, self.scale = self.scale, scale
        self.start = max(0.5 * scale, 2.0 * scale - before) if before > 0.0 else scale
        return loss + d * (l1 + d / 2.0 * (l2 + d / 3.0 * (l3 + d / 4.0 * l4)))


def _step(l1: float, l2: float, l3: float = 0.0, l4: float = 0.0) -> float:
    """The root d near 0 of l1 + l2 d + l3 d^2 / 2 + l4 d^3 / 6, by repetition from Newton's on."""
    if l2 <= 0.0:
        return np.inf
    d = -l1 / l2
    for _ in range(4):
        bend = l2 + d / 2.0 * (l3 + d / 3.0 * l4)
        d = -l1 / bend if 2.0 * bend > l2 else d
    return d


def _loss_and_slopes(
    F: Any, sign: Any, shares: Any | None, s: float, where: Where
) -> tuple[float, ...]:
    """`log_loss_and_slopes` of rows of any library."""
    xp, each = where.xp, 1.0 / F.shape[0]
    if where is NUMPY:
        given = np.zeros(0) if shares is None else shares
        found: tuple[float, ...] = log_loss_and_slopes(
            np.ascontiguousarray(F), sign, given, each, s
        )
        return found
    m, w = 2.0 * F * sign, where.full(each) if shares is None else shares
    v = s * m
    wrong, low = sigmoid(-v, xp.exp), where.full(0.0)
    cost = xp.log1p(xp.exp(-xp.abs(v))) + xp.maximum(-v, low)
    cost = xp.minimum(cost, where.full(LARGEST_LOSS))
    both = wrong * (1.0 - wrong)
    l2, turn = w * m * m * both, 2.0 * wrong - 1.0
    sums = w * cost, -w * m * wrong, l2, l2 * m * turn, l2 * m * m * (1.0 - 6.0 * both), w * m
    return tuple(float(xp.sum(a)) for a in sums)


def _root(slopes: Slopes, start: float = 0.0, tolerance: float = TOLERANCE) -> float:
    """Where l' rises through 0; 0, or next to it, where it does not. `start` is a guess."""
    low, high, s = 0.0, np.inf, start
    for _ in range(MOST_STEPS):
        slope, step = slopes(s)
        if slope >= 0.0:
            high = s
        else:
            low = s
        if high == 0.0:
            return 0.0
        new = s + step
        if new < np.inf and abs(step) <= tolerance * new:  # even if the bracket ends in between
            return new
        if not low < new < high:
            new = 0.5 * (low + high) if high < np.inf else max(1.0, 2.0 * low)
        if new == s:
            break
        s = new
    return s


def _two_classes(F: Any, index: Any, weights: Any | None, link: str, where: Where) -> Slopes:
    """With m = +-F the margin of the row's class: l' = 2 m (e - sigma(-2 s m))."""
    xp = where.xp
    m = 2.0 * F[:, 0] * (2.0 * where.as_float64(index) - 1.0)
    first = _shares(F, weights, where) * m
    second, least = first * m, 0.5 / F.shape[0] * float(xp.sum(first))

    def slopes(s: float) -> tuple[float, float]:
        wrong = sigmoid(-s * m, xp.exp)
        slope = least - float(xp.sum(first * wrong))
        return slope, _step(slope, float(xp.sum(second * (wrong * (1.0 - wrong)))))

    return slopes


def _several_classes(F: Any, index: Any, weights: Any | None, link: str, where: Where) -> Slopes:
    xp, K = where.xp, F.shape[1]
    share, e = _shares(F, weights, where), 0.5 / F.shape[0]
    own = where.as_float64(index[:, None] == xp.arange(K, device=where.device)[None, :])
    q = own * (1.0 - e - e / (K - 1)) + e / (K - 1)

    def slopes(s: float) -> tuple[float, float]:
        p, a, b = probabilities(F, link, where, s), F, 0.0 * F
        if link == MARGINS:
            wrong = sigmoid((-2.0 * s) * F, xp.exp)
            a = 2.0 * F * wrong
            b = -2.0 * F * a * (1.0 - wrong)
        mean = xp.sum(p * a, axis=1)
        slope = mean - xp.sum(q * a, axis=1)
        bend = xp.sum(p * a * a, axis=1) - mean * mean + xp.sum((p - q) * b, axis=1)
        total = float(xp.sum(share * slope))
        return total, _step(total, float(xp.sum(share * bend)))

    return slopes


def _shares(F: Any, weights: Any | None, where: Where) -> Any:
    """Shares of the rows in the weight."""
    xp = where.xp
    if weights is None:
        return where.full(1.0 / F.shape[0])
    weights = where.as_float64(weights) / float(xp.max(weights))
    return weights / xp.sum(weights)
