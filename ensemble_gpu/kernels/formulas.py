"""The formulas that decide which split wins, written once and compiled for every engine.

A product that feeds a sum may be fused with it into one instruction (fma), which rounds once
instead of twice: an engine with fma would choose other splits than one without. Every product is
therefore written `product(a, b)`, and `formulas` binds the name to what a target never fuses:

    host    f = formulas(njit(nogil=True), operator.mul)                 # LLVM fuses nothing there
    CUDA    f = formulas(cuda.jit(device=True), libdevice.dmul_rn)

Arguments are float64. IEEE 754 rounds all these operations correctly, in a fixed order, so the
results have the same bits everywhere. Sums of them over classes, planes and outputs are the
engines', in one order too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

# ln 2 in two parts; the first has its low 32 bits clear, so k * LN2_HIGH is exact for |k| < 2^20.
LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
SQRT_HALF = 0.7071067811865476


class Formulas(NamedTuple):
    """The compiled formulas of one target; their docstrings are in `formulas`."""

    weight: Any
    confidence: Any
    gentle: Any
    pair_gini: Any
    square_share: Any
    mean: Any
    log: Any
    weighted_log: Any


def formulas(jit: Callable[[Any], Any], product: Callable[[Any, Any], Any]) -> Formulas:
    """Every formula compiled by `jit`; `product` multiplies and is rounded for itself."""

    @jit
    def weight(scale, total):
        """W = scale * sum: the weight of a leaf from its integer sum."""
        return product(scale, total)

    @jit
    def confidence(plus, minus):
        """sqrt(W+ W-): the cost of a leaf for CONFIDENCE."""
        return math.sqrt(product(plus, minus))

    @jit
    def gentle(plus, minus):
        """W+ W- / (W+ + W-), 0 for an empty leaf: the cost of a leaf for GENTLE."""
        whole = plus + minus
        return product(plus, minus) / whole if whole > 0.0 else 0.0

    @jit
    def pair_gini(a, b, whole):
        """a b / W, W = a + b: a child of two classes adds -2 times this to GINI."""
        return product(a, b) / whole

    @jit
    def square_share(g, h):
        """g^2 / h: an output's term of VARIANCE with h = H + l2, and a class's of GINI."""
        return product(g, g) / h

    @jit
    def mean(above, below):
        """The value that monotone constraints compare: G / (H + l2) or W_1 / W; 0 of nothing."""
        return above / below if below > 0.0 else 0.0

    @jit
    def log(x):
        """ln x = e ln 2 + ln m, x = m 2^e > 0, ln m = 2 (s + s^3/3 + ...), s = (m-1)/(m+1)."""
        m, e = math.frexp(x)
        if m < SQRT_HALF:
            m = m + m
            e -= 1
        s = (m - 1.0) / (m + 1.0)
        z = product(s, s)
        series = product(1.0 / 23, z)
        series = product(series + 1.0 / 21, z)
        series = product(series + 1.0 / 19, z)
        series = product(series + 1.0 / 17, z)
        series = product(series + 1.0 / 15, z)
        series = product(series + 1.0 / 13, z)
        series = product(series + 1.0 / 11, z)
        series = product(series + 1.0 / 9, z)
        series = product(series + 1.0 / 7, z)
        series = product(series + 1.0 / 5, z)
        series = product(series + 1.0 / 3, z)
        tail = product(series, s)
        low = (tail + tail) + product(float(e), LN2_LOW)
        return product(float(e), LN2_HIGH) + ((s + s) + low)

    @jit
    def weighted_log(x, y):
        """x ln y: a term of ENTROPY with y = x, and of POISSON with x = G, y = G / H."""
        return product(x, log(y))

    return Formulas(weight, confidence, gentle, pair_gini, square_share, mean, log, weighted_log)
