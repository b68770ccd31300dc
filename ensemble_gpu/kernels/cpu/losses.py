"""exp, derivatives and values of losses, a block of rows at a time.

Derivatives take the same operations in the same order as kernels/exponential.py and losses/*.py,
hence have the same bits; values differ in the last digits. Losses without a kernel run as they are
written there, by array calls. Loops are over arrays of a block, one step each, so that they are
vectorised.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.kernels.exponential import LARGEST, PER_LN2, REST
from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS
from ensemble_gpu.kernels.host.logistic import log_one_and
from ensemble_gpu.kernels.jit import inner, kernel

# Rows of a block: its arrays and the tables of exp stay in the first-level cache.
BLOCK = 512

# Of one output a row, by the name under which a loss asks for its kernel; K outputs share a target
# in the loss JOINT.
LOGISTIC, EXPONENTIAL, SQUARED, POISSON, HUBER, EITHER_SIDE = range(6)
KINDS = {
    "logistic": LOGISTIC,
    "exponential": EXPONENTIAL,
    "squared": SQUARED,
    "poisson": POISSON,
    "huber": HUBER,
    "either side": EITHER_SIDE,
}
JOINT = "multinomial"

# x + SHIFT has no bits after the point for |x| < 2^51: the sum is SHIFT + rint(x), half to even,
# and its bits are those of SHIFT plus the integer.
SHIFT = 1.5 * 2.0**52
SHIFT_BITS = np.int64(0x4338000000000000)
POINT, BIAS = np.int64(52), np.int64(1023)


def parameters_of(loss: Any, n_outputs: int) -> np.ndarray:
    """[output, 2]: the slopes below and above y, or delta or the largest exponent, and 0."""
    if KINDS[loss.kernel] == EITHER_SIDE:
        return np.array([loss.output(k).slopes for k in range(n_outputs)], dtype=np.float64)
    return np.array([[loss.parameter, 0.0]] * n_outputs, dtype=np.float64)


class Space(NamedTuple):
    """Scratch arrays of a block; `bits` and `power_bits` are the integers in the same memory."""

    x: np.ndarray
    shifted: np.ndarray
    bits: np.ndarray
    power: np.ndarray
    power_bits: np.ndarray


@inner
def space():
    """Arrays of their own: the compiler knows that they lie apart."""
    shifted, power = np.empty(BLOCK), np.empty(BLOCK)
    return Space(np.empty(BLOCK), shifted, shifted.view(np.int64), power, power.view(np.int64))


@inner
def exp_block(n, x, digits, work, out):
    """out = e^x of n numbers; k of kernels/exponential.py is never so low that 2^k loses digits."""
    shifted, bits, power, power_bits = work.shifted, work.bits, work.power, work.power_bits
    for i in range(n):
        t = min(max(x[i], -LARGEST), LARGEST) * PER_LN2
        sum_ = t + SHIFT
        shifted[i] = sum_
        out[i] = 1.0 + (t - (sum_ - SHIFT)) * REST
    for i in range(n):
        power_bits[i] = (((bits[i] - SHIFT_BITS) >> FRACTION_BITS) + BIAS) << POINT
    for i in range(n):
        L = bits[i] - SHIFT_BITS
        value = power[i]
        value *= digits[0, (L >> (2 * DIGIT_BITS)) & DIGIT_MASK]
        value *= digits[1, (L >> DIGIT_BITS) & DIGIT_MASK]
        value *= digits[2, L & DIGIT_MASK]
        out[i] = value * out[i]


@inner
def _logistic(n, y, F, most, digits, work, g, h):
    """E = e^min(y F, most), g = y / (-1 - E), h = E g g."""
    x = work.x
    for i in range(n):
        x[i] = min(y[i] * F[i], most)
    exp_block(n, x, digits, work, h)
    for i in range(n):
        slope = y[i] / (-1.0 - h[i])
        g[i] = slope
        h[i] = h[i] * slope * slope


@inner
def _exponential(n, y, F, most, digits, work, g, h):
    """h = e^min(-y F, most), g = -y h."""
    x = work.x
    for i in range(n):
        x[i] = min(-y[i] * F[i], most)
    exp_block(n, x, digits, work, h)
    for i in range(n):
        g[i] = -y[i] * h[i]


@inner
def _squared(n, y, F, g, h):
    """g = 2 (F - y), h = 2."""
    for i in range(n):
        g[i] = 2.0 * (F[i] - y[i])
    for i in range(n):
        h[i] = 2.0


@inner
def _poisson(n, y, F, most, digits, work, g, h):
    """h = e^min(F, most), g = h - y."""
    x = work.x
    for i in range(n):
        x[i] = min(F[i], most)
    exp_block(n, x, digits, work, h)
    for i in range(n):
        g[i] = h[i] - y[i]


@inner
def _huber(n, y, F, delta, g, h):
    """g = F - y cut to +-delta, h = 1 where it is not cut."""
    for i in range(n):
        r = F[i] - y[i]
        g[i] = min(max(r, -delta), delta)
        h[i] = 1.0 if abs(r) <= delta else 0.0


@inner
def _either_side(n, y, F, below, above, g, h):
    """g = `below` where F < y, `above` where F > y, 0 where they meet; h = 1."""
    for i in range(n):
        g[i] = below if F[i] < y[i] else (above if F[i] > y[i] else 0.0)
        h[i] = 1.0


@inner
def differentiate(kind, parameters, n, y, F, digits, work, g, h):
    """g and h of n rows; `parameters` as of `parameters_of`, of one output."""
    parameter = parameters[0]
    if kind == LOGISTIC:
        _logistic(n, y, F, parameter, digits, work, g, h)
    elif kind == EXPONENTIAL:
        _exponential(n, y, F, parameter, digits, work, g, h)
    elif kind == SQUARED:
        _squared(n, y, F, g, h)
    elif kind == POISSON:
        _poisson(n, y, F, parameter, digits, work, g, h)
    elif kind == HUBER:
        _huber(n, y, F, parameter, g, h)
    else:
        _either_side(n, y, F, parameter, parameters[1], g, h)


@inner
def evaluate(kind, parameters, n, y, F, digits, work, value):
    """l(y, F) of n rows; `parameters` as of `parameters_of`, of one output."""
    x, parameter = work.x, parameters[0]
    if kind == LOGISTIC:
        for i in range(n):
            x[i] = -abs(y[i] * F[i])
        exp_block(n, x, digits, work, value)
        for i in range(n):
            value[i] = max(-y[i] * F[i], 0.0) + log_one_and(value[i])
    elif kind in (EXPONENTIAL, POISSON):
        for i in range(n):
            x[i] = min(F[i] if kind == POISSON else -y[i] * F[i], parameter)
        exp_block(n, x, digits, work, value)
        if kind == POISSON:
            for i in range(n):
                value[i] -= y[i] * F[i]
    elif kind == SQUARED:
        for i in range(n):
            value[i] = (F[i] - y[i]) * (F[i] - y[i])
    elif kind == HUBER:
        for i in range(n):
            r = abs(F[i] - y[i])
            cut = min(r, parameter)
            value[i] = cut * (r - 0.5 * cut)
    else:
        for i in range(n):
            r = F[i] - y[i]
            value[i] = max(parameter * r, parameters[1] * r)


@inner
def differentiate_jointly(n, y, F, digits, work, g, h):
    """p = softmax of F[output, row]; g = p - 1[y = output] and h = p (1 - p), [output, row]."""
    K = F.shape[0]
    top, total = np.empty(BLOCK), np.empty(BLOCK)
    for i in range(n):
        top[i] = F[0, i]
    for k in range(1, K):
        for i in range(n):
            top[i] = max(top[i], F[k, i])
    x = work.x
    for k in range(K):
        for i in range(n):
            x[i] = F[k, i] - top[i]
        exp_block(n, x, digits, work, g[k])
    for i in range(n):
        total[i] = g[0, i]
    for k in range(1, K):
        for i in range(n):
            total[i] += g[k, i]
    for i in range(n):
        total[i] = 1.0 / total[i]
    for k in range(K):
        for i in range(n):
            p = g[k, i] * total[i]
            h[k, i] = p * (1.0 - p)
            g[k, i] = p - (1.0 if y[i] == k else 0.0)


@kernel
def exp_into(x, digits, out):
    """out = e^x, element by element."""
    work = space()
    for a in range(0, x.shape[0], BLOCK):
        n = min(BLOCK, x.shape[0] - a)
        exp_block(n, x[a : a + n], digits, work, out[a : a + n])


@kernel
def derivatives(kind, parameters, y, F, digits, g, h):
    """g and h of all rows of one output."""
    work = space()
    for a in range(0, y.shape[0], BLOCK):
        b = min(a + BLOCK, y.shape[0])
        differentiate(kind, parameters, b - a, y[a:b], F[a:b], digits, work, g[a:b], h[a:b])
