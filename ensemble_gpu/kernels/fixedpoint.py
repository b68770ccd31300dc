"""Weights as fixed-point logarithms: how a row's weight is remembered exactly.

The weight of row i is w_i = 2^(L_i), where L_i is an integer number of units of 2^-30:

    L_i = L0_i + sum over features f of T_f[code_if]

L0 is the user's sample weight, T_f the rounded log2 of everything that the chosen stumps on f did
to the weight. The sum is an integer sum: exact, the same in any order, and it neither overflows
nor underflows however many rounds are boosted. (Products of exp(table value), the obvious
alternative, leave the range of float64 after a few thousand rounds on separable data.)

To use a weight it is quantised relative to the heaviest row of its group:

    q_i = rint(2^(L_i - E) 2^QUANTUM_BITS),  E = floor(max L) + 1

with 2^(fraction) from three tables of 1,024 values, two multiplications and one exact scaling by a
power of two: IEEE arithmetic only, so every engine gets the same q.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where

FRACTION_BITS = 30
UNIT = float(1 << FRACTION_BITS)
DIGIT_BITS = 10
DIGIT = 1 << DIGIT_BITS
DIGIT_MASK = DIGIT - 1

# The heaviest row of a group starts with 2^28 < q <= 2^29: two bits of headroom in int32 before a
# group has to be requantised, and a relative rounding below 4e-9 for the rows that matter. Where
# requantising is dear, after many rows, three bits are given up for eight times the headroom (ten
# classes, 1e5 x 28, 100 rounds: requantised 3 times instead of 28).
QUANTUM_BITS = 29
COARSE_BITS = 26
FINE_ROWS = 20_000
Q_LIMIT = float(2**31 - 1)

# Below the exponent of any weight.
LOWEST_EXPONENT = -(1 << 32)

# 2^-k for k = 0 ... 63; beyond that a row is less than half a quantum whatever its fraction.
N_POWERS = 64

INV_LN2 = 1.0 / 0.6931471805599453


def quantum_bits(n_rows: int) -> int:
    """QUANTUM_BITS of the formula, for a number of rows."""
    return QUANTUM_BITS if n_rows <= FINE_ROWS else COARSE_BITS


@cache
def tables(bits: int = QUANTUM_BITS) -> np.ndarray:
    """Powers of two as a (4, 1024) float64 array: three digit tables, then 2^(bits - k).

    Row d holds 2^(j / 1024^(d+1)); computed in 50-digit decimals and rounded once, so that
    no platform's pow takes part.
    """
    out = np.zeros((4, DIGIT))
    with localcontext() as context:
        context.prec = 50
        ln2 = Decimal(2).ln()
        for digit in range(3):
            for j in range(DIGIT):
                exponent = Decimal(j) / Decimal(DIGIT ** (digit + 1))
                out[digit, j] = float((exponent * ln2).exp())
    out[3, :N_POWERS] = [math.ldexp(1.0, bits - k) for k in range(N_POWERS)]
    out.setflags(write=False)
    return out


def from_log(values: np.ndarray) -> np.ndarray:
    """Natural-log values as fixed-point log2: rint(v / ln 2 * 2^30), int64."""
    return np.rint(values * (INV_LN2 * UNIT)).astype(np.int64)


def log2_fixed(weights: Any, where: Where) -> Any:
    """Fixed-point log2 of positive float64 weights, on their own device, rounded down.

    Three look-ups by comparison and two correctly rounded divisions; no log function, whose
    last digit would differ between libraries. Powers of two are exact.
    """
    xp = where.xp
    powers = where.put(np.ldexp(1.0, np.arange(-1074, 1024)))
    place = xp.searchsorted(powers, weights, side="right") - 1
    fixed = xp.astype(place, xp.int64) - 1074
    rest = weights / xp.take(powers, place)
    for digit in range(3):
        table = where.put(tables()[digit])
        place = xp.clip(xp.searchsorted(table, rest, side="right") - 1, 0, DIGIT - 1)
        rest = rest / xp.take(table, place)
        fixed = fixed * DIGIT + xp.astype(place, xp.int64)
    return fixed
