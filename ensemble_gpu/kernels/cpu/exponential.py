"""exp of a host array; kernels/exponential.py has the formula."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.exponential import LARGEST, LOWEST_POWER, PER_LN2, REST
from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS
from ensemble_gpu.kernels.jit import inner, kernel


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
