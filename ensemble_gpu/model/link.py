"""Links: what the outputs F of a model mean.

            mean of y from F                F from the mean         K classes
margins     p = 1 / (1 + e^-2F)             F = 1/2 ln(p / (1 - p))   p_k ~ 1 / (1 + e^-2F_k)
logistic    p = 1 / (1 + e^-F)              F = ln(p / (1 - p))       p_k ~ 1 / (1 + e^-F_k)
linear      p = (1 + F) / 2, cut to [0, 1]  F = 2 p - 1               p_k ~ (1 + F_k) / 2
votes       p_k = e^F_k / sum_j e^F_j       F_k = ln p_k              the same
identity    mean = F                        F = mean
log         mean = e^F (at most e^532)      F = ln mean
increasing  the outputs of a row, sorted    F = the quantiles

~ means proportional. margins are the outputs of AdaBoost, with 1/2 ln(p / (1 - p)) the population
minimiser of exp(-y F), and of AdaBoost.MH; votes those of SAMME and of the multinomial loss. The
last three are for numbers (increasing: for several quantiles), the others for classes, where the
mean is the probability of class +1.

Losses use `mean` and `output`, functions of an output. Classifiers use `probabilities` [n, K]. They
follow the same formulas and ensure one thing more. Far from zero different outputs round to the
same probability; the largest output then keeps a strictly larger probability, so that argmax of the
probabilities is always argmax of the outputs. That holds for every scale s > 0 as well, with which
they are the probabilities of s F: a calibrated model has one (model/calibration.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ensemble_gpu.arrays.exponentials import Exp, bounded, sigmoid, softmax
from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import NUMPY, Where, locate

MARGINS, VOTES, LOGISTIC, LINEAR = "margins", "votes", "logistic", "linear"
IDENTITY, LOG, INCREASING = "identity", "log", "increasing"
BLOCK_ROWS = 1 << 13


class Link(NamedTuple):
    """A row of the table above; `probabilities` is None where y is a number."""

    output: Callable[[Any], Any]  # mean -> F
    mean: Callable[[Any, Exp], Any]  # F, exp -> mean
    # F [n, outputs], where, scale -> [n, K]
    probabilities: Callable[[Any, Where, float], Any] | None = None


def as_columns(F: Any, xp: Any) -> Any:
    """[-F, F] for one output: a column per class."""
    return xp.concat([-F, F], axis=1) if F.shape[1] == 1 else F


def _log(mean: Any) -> Any:
    return locate(mean).xp.log(mean)


def _log_odds(p: Any) -> Any:
    xp = locate(p).xp
    return xp.log(p) - xp.log1p(-p)


def _log_sigmoid(v: Any, where: Where) -> Any:
    """Ln 1 / (1 + exp(-v)) without overflow."""
    xp = where.xp
    return xp.minimum(v, where.full(0.0, v.dtype)) - xp.log1p(xp.exp(-xp.abs(v)))


def _half_line(F: Any, lowest: float, where: Where) -> Any:
    """(1 + F) / 2, cut to [lowest, 1]."""
    xp = where.xp
    low, one = where.full(lowest, F.dtype), where.full(1.0, F.dtype)
    return xp.minimum(xp.maximum(0.5 + 0.5 * F, low), one)


def _below_one(F: Any, where: Where) -> Any:
    """The largest probability ratio of a class whose output is not the largest."""
    return where.full(1.0 - 4.0 * float(where.xp.finfo(F.dtype).eps), F.dtype)


def _two_classes(F: Any, where: Where, scale: float) -> Any:
    """P [n, 2] from one margin: 1 for the likelier class, exp(-2 s |F|) for the other, normalised.

    One exp, whole columns, no choice per row: six times as fast as the formula for several.
    """
    xp = where.xp
    ratio = xp.minimum(xp.exp((-2.0 * scale) * xp.abs(F)), _below_one(F, where))
    first = xp.maximum(xp.astype(F <= 0.0, F.dtype), ratio)
    second = xp.maximum(xp.astype(F >= 0.0, F.dtype), ratio)
    total = first + second
    return xp.concat([first / total, second / total], axis=1)


def _several_classes(F: Any, logs: Any, where: Where) -> Any:
    """P [n, K] proportional to e^logs: each class in relation to the likeliest, normalised."""
    xp = where.xp
    top = xp.max(F, axis=1, keepdims=True)
    p = xp.exp(logs - xp.max(logs, axis=1, keepdims=True))
    p = xp.where(top > F, xp.minimum(p, _below_one(F, where)), p)
    return p / xp.sum(p, axis=1, keepdims=True)


def _of_margins(F: Any, where: Where, scale: float) -> Any:
    if F.shape[1] == 1:
        return _two_classes(F, where, scale)
    return _several_classes(F, _log_sigmoid((2.0 * scale) * F, where), where)


def _of_votes(F: Any, where: Where, scale: float) -> Any:
    return (
        _two_classes(F, where, scale) if F.shape[1] == 1 else _several_classes(F, scale * F, where)
    )


def _of_lines(F: Any, where: Where, scale: float) -> Any:
    xp = where.xp
    margins = as_columns(F, xp)
    eps = float(xp.finfo(F.dtype).eps)
    p = _half_line(scale * margins, eps, where)  # p > 0, so that ln p is finite
    highest = xp.max(p, axis=1, keepdims=True)
    behind = margins < xp.max(margins, axis=1, keepdims=True)
    p = xp.where(behind, xp.minimum(p, highest * (1.0 - 4.0 * eps)), p)
    return p / xp.sum(p, axis=1, keepdims=True)


LINKS = {
    MARGINS: Link(lambda p: 0.5 * _log_odds(p), lambda F, exp: sigmoid(2.0 * F, exp), _of_margins),
    LOGISTIC: Link(_log_odds, sigmoid, lambda F, where, s: _of_margins(0.5 * F, where, s)),
    LINEAR: Link(lambda p: 2.0 * p - 1.0, lambda F, exp: _half_line(F, 0.0, locate(F)), _of_lines),
    VOTES: Link(_log, softmax, _of_votes),
    IDENTITY: Link(lambda mean: mean, lambda F, exp: F),
    LOG: Link(_log, lambda F, exp: exp(bounded(F))),
    INCREASING: Link(lambda F: F, lambda F, exp: locate(F).xp.sort(F, axis=-1)),
}


def probabilities(F: Any, link: str, where: Where, scale: float = 1.0) -> Any:
    """P [n, K] of scale * F [n, outputs], in the dtype of F.

    NumPy takes the rows in blocks: temporaries that stay in the cache, and that malloc does not
    hand back to the system each time, take a third of the time.
    """
    of_rows = LINKS[link].probabilities
    if of_rows is None:
        allowed = ", ".join(repr(name) for name in LINKS if LINKS[name].probabilities)
        raise ValueError(f"link must be one of {allowed} for probabilities; got {link!r}.")
    if where is not NUMPY or F.shape[0] <= BLOCK_ROWS:
        return of_rows(F, where, scale)
    p = where.xp.empty((F.shape[0], max(2, F.shape[1])), dtype=F.dtype)
    for start in range(0, F.shape[0], BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        p[rows, :] = of_rows(F[rows, :], where, scale)
    return p


def log_loss(
    F: Any, index: Any, weights: Any | None, link: str, where: Where, scale: float = 1.0
) -> float:
    """Weighted mean of -ln p of the true class, p the probabilities of scale * F."""
    xp = where.xp
    p = probabilities(F, link, where, scale)
    own = xp.astype(index[:, None] == xp.arange(p.shape[1], device=where.device)[None, :], p.dtype)
    tiny = where.full(float(xp.finfo(p.dtype).smallest_normal), p.dtype)
    loss = -xp.log(xp.maximum(xp.sum(p * own, axis=1), tiny))
    return weighted_mean(loss, weights, where)
