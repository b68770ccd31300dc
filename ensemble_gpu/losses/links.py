"""From the mean of y to the output F and back.

logistic    p = 1 / (1 + e^-F)              F = ln(p / (1 - p))
margins     p = 1 / (1 + e^-2F)             F = 1/2 ln(p / (1 - p))
linear      p = (1 + F) / 2, cut to [0, 1]  F = 2 p - 1
votes       p_k = e^F_k / sum_j e^F_j       F_k = ln p_k
identity    mean = F
log         mean = e^F (at most e^532)      F = ln mean
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ensemble_gpu.arrays.namespace import locate


def largest_exponent(finfo: Any) -> float:
    """532 (66 in float32): e^x is far from overflow, and so are sums of it over rows."""
    return float(int(0.75 * math.log(float(finfo.max))))


def bounded(x: Any) -> Any:
    """At most `largest_exponent`."""
    where = locate(x)
    top = largest_exponent(where.xp.finfo(x.dtype))
    return where.xp.minimum(x, where.full(top, x.dtype))


class Link(NamedTuple):
    output: Callable[[Any], Any]  # mean -> F
    mean: Callable[[Any, Callable[[Any], Any]], Any]  # F, exp -> mean


def _log_odds(p: Any) -> Any:
    xp = locate(p).xp
    return xp.log(p) - xp.log1p(-p)


def sigmoid(F: Any, exp: Callable[[Any], Any]) -> Any:
    """1 / (1 + e^-F) = e^min(F, 0) / (1 + e^-|F|)."""
    where = locate(F)
    e = exp(-where.xp.abs(F))
    return where.xp.where(F < 0.0, e, where.full(1.0, F.dtype)) / (1.0 + e)


def _linear(F: Any, exp: Callable[[Any], Any]) -> Any:
    where = locate(F)
    zero, one = where.full(0.0, F.dtype), where.full(1.0, F.dtype)
    return where.xp.minimum(where.xp.maximum(0.5 + 0.5 * F, zero), one)


def exponentials(F: Any, exp: Callable[[Any], Any]) -> tuple[Any, Any, Any]:
    """Largest F of a row, e^(F - largest), and its sum over the classes from left to right."""
    top = locate(F).xp.max(F, axis=-1, keepdims=True)
    e = exp(F - top)
    total = e[..., :1]
    for k in range(1, F.shape[-1]):
        total = total + e[..., k : k + 1]
    return top, e, total


def softmax(F: Any, exp: Callable[[Any], Any]) -> Any:
    _, e, total = exponentials(F, exp)
    return e * (1.0 / total)  # e / total is this product in XLA, a division elsewhere


def _log(mean: Any) -> Any:
    return locate(mean).xp.log(mean)


LINKS = {
    "logistic": Link(_log_odds, sigmoid),
    "margins": Link(lambda p: 0.5 * _log_odds(p), lambda F, exp: sigmoid(2.0 * F, exp)),
    "linear": Link(lambda p: 2.0 * p - 1.0, _linear),
    "votes": Link(_log, softmax),
    "identity": Link(lambda mean: mean, lambda F, exp: F),
    "log": Link(_log, lambda F, exp: exp(bounded(F))),
}
