"""exp and log of host scalars, the same to the last bit on every platform.

Alphas, leaf values and ratios decide which stump wins the next round, so one differing last digit
in a system's libm would give another model. These two use only operations that IEEE 754 rounds
correctly (+, -, *, /, scaling by a power of two), in a fixed order, hence give the same bits
everywhere; the error stays below two units in the last place. They run inside compiled functions,
which compile them, and as they stand in plain Python.
"""

import math

from numba.extending import register_jitable

from ensemble_gpu.kernels.formulas import LN2_HIGH, LN2_LOW, SQRT_HALF

LN2 = 0.6931471805599453


@register_jitable
def exp(x):
    """e^x = 2^k e^r with k = rint(x / ln 2) and |r| <= ln 2 / 2; e^r by its Taylor series."""
    if x > 709.0:
        return math.inf
    if x < -745.0:
        return 0.0
    k = math.floor(x / LN2 + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    series = 1.0
    for n in range(15, 0, -1):
        series = 1.0 + series * r / n
    return math.ldexp(series, int(k))


@register_jitable
def log(x):
    """Ln x = e ln 2 + ln m, x = m 2^e, ln m = 2 (s + s^3/3 + s^5/5 + ...), s = (m-1)/(m+1)."""
    if x == 0.0:
        return -math.inf
    m, e = math.frexp(x)
    if m < SQRT_HALF:
        m = m * 2.0
        e -= 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = 0.0
    for n in range(23, 1, -2):
        series = (series + 1.0 / n) * z
    tail = series * s
    low = 2.0 * tail + e * LN2_LOW
    return e * LN2_HIGH + (2.0 * s + low)
