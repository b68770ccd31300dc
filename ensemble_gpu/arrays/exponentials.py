"""Functions of e^x that do not overflow, for arrays of any library.

`exp` is an argument: training passes one that gives the same bits on every engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate

Exp = Callable[[Any], Any]


def largest_exponent(finfo: Any) -> float:
    """532 (66 in float32): e^x is far from overflow, and so are sums of it over rows."""
    return float(int(0.75 * math.log(float(finfo.max))))


LARGEST_EXPONENT = largest_exponent(np.finfo(np.float64))


def bounded(x: Any) -> Any:
    """At most `largest_exponent`."""
    where = locate(x)
    top = largest_exponent(where.xp.finfo(x.dtype))
    return where.xp.minimum(x, where.full(top, x.dtype))


def sigmoid(x: Any, exp: Exp) -> Any:
    """1 / (1 + e^-x) = e^min(x, 0) / (1 + e^-|x|)."""
    where = locate(x)
    e = exp(-where.xp.abs(x))
    return where.xp.where(x < 0.0, e, where.full(1.0, x.dtype)) / (1.0 + e)


def softplus(x: Any, exp: Exp) -> Any:
    """Ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)."""
    where = locate(x)
    xp = where.xp
    return xp.maximum(x, where.full(0.0, x.dtype)) + xp.log1p(exp(-xp.abs(x)))


def exponentials(F: Any, exp: Exp) -> tuple[Any, Any, Any]:
    """Largest F of a row, e^(F - largest), and its sum over the classes from left to right."""
    top = locate(F).xp.max(F, axis=-1, keepdims=True)
    e = exp(F - top)
    total = e[..., :1]
    for k in range(1, F.shape[-1]):
        total = total + e[..., k : k + 1]
    return top, e, total


def softmax(F: Any, exp: Exp) -> Any:
    """e^F_k / sum_j e^F_j."""
    _, e, total = exponentials(F, exp)
    return e * (1.0 / total)  # e / total is this product in XLA, a division elsewhere
