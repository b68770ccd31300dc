"""What happens to each row alone, in one launch each: exp, the move of F, packed gradients.

By array calls these would be some forty launches a round, an upload of every table and every
scalar, and (in `clip`) two waits for the device. The results are those of kernels/exponential.py
and kernels/reference/rowwise.py to the last bit: no product feeds a sum here unless an absolute
value, which no compiler can move, stands between them, and the compiled tests find no fused
multiply-add.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.exponential import LARGEST, LOWEST_POWER, PER_LN2, REST
from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _exp(x, powers, digits):
    """e^x for |x| <= LARGEST: u = |t|, L and t - L as in kernels/exponential.py, sign by sign."""
    u = abs(x * PER_LN2)
    units = np.int64(round(u))
    rest = u - np.float64(units)
    last = abs(rest * REST)
    L = units if x >= 0.0 else -units
    value = powers[(L >> FRACTION_BITS) - LOWEST_POWER]
    value = value * digits[0, (L >> (2 * DIGIT_BITS)) & DIGIT_MASK]
    value = value * digits[1, (L >> DIGIT_BITS) & DIGIT_MASK]
    value = value * digits[2, L & DIGIT_MASK]
    return value * (1.0 + last if (rest >= 0.0) == (x >= 0.0) else 1.0 - last)


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def exponentiate(x, powers, digits, out):
    """out[k, i] = e^x[k, i], x cut to +-LARGEST; NaN stays NaN."""
    i = np.int32(cuda.grid(1))
    while i < x.shape[1]:
        k = np.int32(0)
        while k < x.shape[0]:
            value = x[k, i]
            if value == value:
                value = _exp(min(max(value, -LARGEST), LARGEST), powers, digits)
            out[k, i] = value
            k = np.int32(k + 1)
        i = np.int32(i + cuda.gridsize(1))


@kernel()
def move(F, column, last_bin, missing_code, values, out):
    """out[k, i] = F[k, i] + values[k, side], side 0 left, 1 right, 2 where the code is missing."""
    i = np.int32(cuda.grid(1))
    while i < column.shape[0]:
        side = np.int32(0) if column[i] <= last_bin else np.int32(1)
        if column[i] == missing_code:
            side = np.int32(2)
        k = np.int32(0)
        while k < F.shape[0]:
            out[k, i] = F[k, i] + values[k, side]
            k = np.int32(k + 1)
        i = np.int32(i + cuda.gridsize(1))


@kernel()
def pack(s, h, per_s, per_h, out):
    """out[k, i] = rint(s per_s) 2^32 + rint(h per_h), half to even."""
    i = np.int32(cuda.grid(1))
    while i < out.shape[1]:
        k = np.int32(0)
        while k < out.shape[0]:
            upper, lower = np.int64(round(s[k, i] * per_s)), np.int64(round(h[k, i] * per_h))
            out[k, i] = (upper << np.int64(32)) + lower
            k = np.int32(k + 1)
        i = np.int32(i + cuda.gridsize(1))


# --- launchers -------------------------------------------------------------------------------


def launch_exponentiate(shape: Shape, x: Any, powers: Any, digits: Any, out: Any) -> None:
    launch(exponentiate, *shape, x, powers, digits, out)


def launch_move(
    shape: Shape, last_bin: int, missing_code: int, F: Any, column: Any, values: Any, out: Any
) -> None:
    codes = np.int32(last_bin), np.int32(missing_code)
    launch(move, *shape, F, column, *codes, values, out)


def launch_pack(shape: Shape, unit_s: float, unit_h: float, s: Any, h: Any, out: Any) -> None:
    per = np.float64(1.0 / unit_s), np.float64(1.0 / unit_h)
    launch(pack, *shape, s, h, *per, out)
