"""exp of whole arrays, the same to the last bit on every engine.

Gradients decide which stump wins, so a last digit that differs between two libraries' exp would
give another model. With t = x 2^30 / ln 2, L = rint(t) and k = floor(L / 2^30),

    e^x = 2^k 2^(digits of L / 2^30) (1 + (t - L) ln 2 / 2^30)

where 2^(...) is a product of three look-ups (kernels/fixedpoint.py): multiplications and one sum,
which IEEE 754 rounds the same way everywhere. The error is some units in the last place, and grows
to 1e-13 at |x| = 700. x is clipped to +-700.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS, UNIT, tables

LARGEST = 700.0
PER_LN2 = UNIT / 0.6931471805599453
REST = 0.6931471805599453 / UNIT
LOWEST_POWER = -1074


@cache
def powers() -> np.ndarray:
    """2^k for k = -1074 ... 1023; element k - LOWEST_POWER."""
    out = np.ldexp(1.0, np.arange(LOWEST_POWER, 1024))
    out.setflags(write=False)
    return out


def exp(x: Any, where: Where) -> Any:
    """e^x by array-API calls, float64."""
    xp = where.xp
    flat = xp.reshape(where.as_float64(x), (-1,))
    t = xp.minimum(xp.maximum(flat, where.full(-LARGEST)), where.full(LARGEST)) * PER_LN2
    nearest = xp.round(t)
    L = xp.astype(nearest, xp.int64)
    out = xp.take(where.put(powers()), (L >> FRACTION_BITS) - LOWEST_POWER)
    for d in range(3):
        digit = (L >> (DIGIT_BITS * (2 - d))) & DIGIT_MASK
        out = out * xp.take(where.put(tables()[d]), digit)
    return xp.reshape(out * (1.0 + (t - nearest) * REST), x.shape)
