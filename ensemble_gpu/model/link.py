"""From margins to probabilities.

One output F (two classes):       p = 1 / (1 + exp(-2 F)), the population minimiser of exp(-y F).
Margins F_k (AdaBoost.MH):        p_k proportional to 1 / (1 + exp(-2 F_k)).
Votes F_k (SAMME):                p_k proportional to exp(F_k).

Far from zero different margins round to the same probability. The largest margin then keeps a
strictly larger probability, so that argmax of the probabilities is always argmax of the margins.
"""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays.namespace import Where

MARGINS, VOTES = "margins", "votes"


def as_columns(F: Any, xp: Any) -> Any:
    """[-F, F] for one output: a column per class."""
    return xp.concat([-F, F], axis=1) if F.shape[1] == 1 else F


def _log_sigmoid(v: Any, xp: Any, zero: Any) -> Any:
    """Ln 1 / (1 + exp(-v)) without overflow."""
    return xp.minimum(v, zero) - xp.log1p(xp.exp(-xp.abs(v)))


def probabilities(F: Any, link: str, where: Where) -> Any:
    """P [n, K] from F [n, outputs], in the dtype of F."""
    xp = where.xp
    margins = as_columns(F, xp)
    zero = where.full(0.0, F.dtype)
    relative = link == VOTES or F.shape[1] == 1
    logs = margins if relative else _log_sigmoid(2.0 * margins, xp, zero)
    top = xp.max(margins, axis=1, keepdims=True)
    p = xp.exp(logs - xp.max(logs, axis=1, keepdims=True))
    below = where.full(1.0 - 4.0 * float(xp.finfo(F.dtype).eps), F.dtype)
    p = xp.where(margins < top, xp.minimum(p, below), p)
    return p / xp.sum(p, axis=1, keepdims=True)


def log_loss(F: Any, index: Any, weights: Any | None, link: str, where: Where) -> float:
    """Weighted mean of -ln p of the true class."""
    xp = where.xp
    p = probabilities(F, link, where)
    own = xp.astype(index[:, None] == xp.arange(p.shape[1], device=where.device)[None, :], p.dtype)
    tiny = where.full(float(xp.finfo(p.dtype).smallest_normal), p.dtype)
    loss = -xp.log(xp.maximum(xp.sum(p * own, axis=1), tiny))
    if weights is None:
        return float(xp.mean(loss))
    weights = weights / xp.max(weights)  # so that no sum overflows
    return float(xp.sum(loss * weights) / xp.sum(weights))
