"""What happens to each row alone: moved, packed, summed by leaf; exp and derivatives.

kernels/exponential.py has the formula of exp.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.exponential import LARGEST, LOWEST_POWER, PER_LN2, REST
from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import LEFT, RIGHT


@kernel
def move(F, column, last_bin, missing_code, missing_leaf, values, out):
    """out[k, i] = F[k, i] + values[k, leaf of column[i]]."""
    for k in range(F.shape[0]):
        left, right, missing = values[k, LEFT], values[k, RIGHT], values[k, missing_leaf]
        for i in range(F.shape[1]):
            code = column[i]
            added = left if code <= last_bin else right
            out[k, i] = F[k, i] + (missing if code == missing_code else added)


@kernel
def pack(s, h, per_unit_s, per_unit_h, out):
    """out = rint(s / unit) 2^32 + rint(h / unit); below 2^51, so the sum of floats is exact."""
    for k in range(s.shape[0]):
        for i in range(s.shape[1]):
            upper = np.rint(s[k, i] * per_unit_s) * 4294967296.0
            out[k, i] = np.int64(upper + np.rint(h[k, i] * per_unit_h))


@kernel
def leaf_sums(q, column, last_bin, missing_code, missing_leaf, sums):
    """sums[k, leaf] += q[k, i] over the rows of each leaf."""
    for k in range(q.shape[0]):
        left, right, missing = np.int64(0), np.int64(0), np.int64(0)
        for i in range(q.shape[1]):
            code, value = column[i], q[k, i]
            left += value if code <= last_bin else 0
            missing += value if code == missing_code else 0
            right += value
        sums[k, LEFT] += left
        sums[k, RIGHT] += right - left - missing
        sums[k, missing_leaf] += missing


@inner(inline="always")
def exp_one(x, powers, digits):
    """e^x of one number."""
    t = min(max(x, -LARGEST), LARGEST) * PER_LN2
    nearest = np.rint(t)
    L = np.int64(nearest)
    value = powers[(L >> FRACTION_BITS) - LOWEST_POWER]
    value *= digits[0, (L >> (2 * DIGIT_BITS)) & DIGIT_MASK]
    value *= digits[1, (L >> DIGIT_BITS) & DIGIT_MASK]
    value *= digits[2, L & DIGIT_MASK]
    return value * (1.0 + (t - nearest) * REST)


@kernel
def exp_into(x, powers, digits, out):
    """out = e^x, element by element."""
    for i in range(x.shape[0]):
        out[i] = exp_one(x[i], powers, digits)


@kernel
def logistic(y, F, most, powers, digits, g, h):
    """Of the logistic loss in one pass: E = e^min(y F, most), g = y / (-1 - E), h = E g g.

    The same operations in the same order as `losses.Logistic.derivatives`, hence the same bits;
    other losses run as they are written, by array calls.
    """
    for i in range(y.shape[0]):
        E = exp_one(min(y[i] * F[i], most), powers, digits)
        slope = y[i] / (-1.0 - E)
        g[i] = slope
        h[i] = E * slope * slope
