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
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import sigmoid
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.model.link import MARGINS, log_loss, probabilities

LEAST, MOST = 2.0**-20, 2.0**20
MOST_STEPS = 60
TOLERANCE = 1e-4  # of the last step: the error left is about its square

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


def calibrated_log_loss(F: Any, index: Any, weights: Any | None, link: str, where: Where) -> float:
    """The log-loss at the best scale: it does not grow because margins do."""
    return log_loss(F, index, weights, link, where, best_scale(F, index, weights, link, where))


def _root(slopes: Slopes) -> float:
    """Where l' rises through 0; 0 where it does not."""
    low, high, s = 0.0, np.inf, 0.0
    for _ in range(MOST_STEPS):
        slope, bend = slopes(s)
        if slope >= 0.0:
            high = s
        else:
            low = s
        if high == 0.0:
            return 0.0
        new = s - slope / bend if bend > 0.0 else np.inf
        if not low < new < high:
            new = 0.5 * (low + high) if high < np.inf else max(1.0, 2.0 * low)
        done = abs(new - s) <= TOLERANCE * new
        s = new
        if done or low == high:
            break
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
        return slope, float(xp.sum(second * (wrong * (1.0 - wrong))))

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
        return float(xp.sum(share * slope)), float(xp.sum(share * bend))

    return slopes


def _shares(F: Any, weights: Any | None, where: Where) -> Any:
    """Shares of the rows in the weight."""
    xp = where.xp
    if weights is None:
        return where.full(1.0 / F.shape[0])
    weights = where.as_float64(weights) / float(xp.max(weights))
    return weights / xp.sum(weights)
