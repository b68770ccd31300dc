"""Log-loss of two classes and its slopes, for rows on the host.

With v = s m, m = 2 y F of a row and y its class as -1 or +1, p = 1 / (1 + e^-v) is the probability
of its class, and e = e^-|v| gives all of it without overflow:

    -ln p = ln(1 + e) + max(-v, 0)    1 - p = e / (1 + e) where v >= 0, else 1 / (1 + e)

exp and ln are series of a fixed length, so that loops are vectorised; their error is some units in
the last place. Sums are made by blocks of rows.
"""

from __future__ import annotations

import math

import numpy as np

from ensemble_gpu.kernels.formulas import LN2_HIGH, LN2_LOW
from ensemble_gpu.kernels.jit import inner, kernel

BLOCK_ROWS = 256
INV_LN2 = 1.4426950408889634
LARGEST = 700.0
# Factors of at most 2 whose product does not overflow.
MOST_FACTORS = 1000
ROUND = 1.5 * 2.0**52 + 1023.0
SERIES = tuple(1.0 / math.factorial(k) for k in range(14))
# -ln of the smallest normal number: no loss is larger.
LARGEST_LOSS = 708.3964185322641


@inner
def _exp(n, v, e, power, bits):
    """e[i] = e^-|v[i]| = 2^k e^r, |r| <= ln 2 / 2, by the series of e^r; `bits` are those of power.

    Adding ROUND rounds to the integer k, and leaves k + 1023 in the lowest bits of the sum.
    """
    for i in range(n):
        x = -min(abs(v[i]), LARGEST)
        power[i] = x * INV_LN2 + ROUND
        k = power[i] - ROUND
        r = (x - k * LN2_HIGH) - k * LN2_LOW
        y = SERIES[12] + r * SERIES[13]
        y = SERIES[11] + r * y
        y = SERIES[10] + r * y
        y = SERIES[9] + r * y
        y = SERIES[8] + r * y
        y = SERIES[7] + r * y
        y = SERIES[6] + r * y
        y = SERIES[5] + r * y
        y = SERIES[4] + r * y
        y = SERIES[3] + r * y
        y = SERIES[2] + r * y
        y = 1.0 + r * y
        e[i] = 1.0 + r * y
    for i in range(n):
        bits[i] = bits[i] << 52
    for i in range(n):
        e[i] *= power[i]


@inner(inline="always")
def log_one_and(e):
    """ln(1 + e), 0 <= e <= 1: 2 (t + t^3 / 3 + t^5 / 5 + ...), t = e / (2 + e) <= 1 / 3."""
    t = e / (2.0 + e)
    z = t * t
    y = 1.0 / 33
    for k in range(31, 0, -2):
        y = y * z + 1.0 / k
    return 2.0 * t * y


@inner
def _space():
    """Numbers of a block of rows; arrays of their own, or loops are not vectorised."""
    return np.zeros(BLOCK_ROWS)


@inner
def _total(sums):
    """The sum of the sums of the places in a block."""
    total = 0.0
    for i in range(sums.shape[0]):
        total += sums[i]
    return total


@inner
def _add_logs(factors, share, loss):
    """Logarithms of products of 1 + e, one for many rows."""
    for i in range(BLOCK_ROWS):
        loss[i] += share * math.log(factors[i])
        factors[i] = 1.0


@inner
def _shares_of(start, n, shares, share, w):
    for i in range(n):
        w[i] = share
    if shares.shape[0] > 0:
        for i in range(n):
            w[i] = shares[start + i]


@kernel
def log_loss_and_slopes(F, sign, shares, share, s):
    """The mean l of -ln p, its four derivatives by s, and the mean of m.

    With q = 1 - p those of a row are -q m, p q m^2, p q (1 - 2 p) m^3 and p q (1 - 6 p q) m^4.

    shares[row] are weights, without any each is `share`.
    """
    e, v, m, w, power = _space(), _space(), _space(), _space(), _space()
    bits = power.view(np.int64)
    loss, margin = _space(), _space()
    l1, l2, l3, l4 = _space(), _space(), _space(), _space()
    factors, n_factors = np.ones(BLOCK_ROWS), 0
    for start in range(0, F.shape[0], BLOCK_ROWS):
        n = min(BLOCK_ROWS, F.shape[0] - start)
        for i in range(n):
            m[i] = 2.0 * F[start + i] * sign[start + i]
            v[i] = s * m[i]
        _shares_of(start, n, shares, share, w)
        _exp(n, v, e, power, bits)
        for i in range(n):
            power[i] = min(max(-v[i], 0.0), LARGEST_LOSS) * w[i]
        for i in range(n):
            loss[i] += power[i]
        if shares.shape[0] > 0:
            for i in range(n):
                power[i] = log_one_and(e[i]) * w[i]
            for i in range(n):
                loss[i] += power[i]
        else:
            for i in range(n):
                factors[i] *= 1.0 + e[i]
            n_factors += 1
            if n_factors == MOST_FACTORS:
                _add_logs(factors, share, loss)
                n_factors = 0
        for i in range(n):
            inverse = 1.0 / (1.0 + e[i])
            wrong = e[i] * inverse if v[i] >= 0.0 else inverse
            both = e[i] * inverse * inverse
            w[i] *= m[i]
            v[i] = w[i] * wrong
            e[i] = w[i] * m[i] * both
            power[i] = e[i] * m[i] * (2.0 * wrong - 1.0)
            m[i] *= e[i] * m[i] * (1.0 - 6.0 * both)
        for i in range(n):
            l1[i] -= v[i]
        for i in range(n):
            l2[i] += e[i]
        for i in range(n):
            l3[i] += power[i]
        for i in range(n):
            l4[i] += m[i]
        for i in range(n):
            margin[i] += w[i]
    _add_logs(factors, share, loss)
    return _total(loss), _total(l1), _total(l2), _total(l3), _total(l4), _total(margin)
