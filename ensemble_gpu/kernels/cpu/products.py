"""Whether a threshold of a feature can tie with the best cost so far, without roots and divisions.

With x = W+ W- of the left leaf, y that of the right one, w and v their weights, and L the cost:

    CONFIDENCE  sqrt(x) + sqrt(y) <= L          is  4 x y <= (L^2 - x - y)^2,  L^2 >= x + y
    GENTLE      x / w + y / v <= L              is  x v + y w <= L w v

The products are rounded, so L is raised by more than all roundings can add up to (bounds.py:
MARGIN). Where a leaf is empty both sides of the second are 0 and nothing ties: its threshold costs
what no split costs, which is above L, or all thresholds are scored.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.bounds import MARGIN
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.protocol import CONFIDENCE, GENTLE, TIE

# Below it the square of a square may not be a normal number.
SMALLEST = 2.0**-250


@inner
def _roots_may_tie(n, a, b, all_a, all_b, plus, minus, limit):
    tied, square = np.int64(0), limit * limit
    for t in range(n):
        x = (plus * float(a[t])) * (minus * float(b[t]))
        y = (plus * float(all_a - a[t])) * (minus * float(all_b - b[t]))
        rest = square - (x + y)
        tied += (rest >= 0.0) & (4.0 * x * y <= rest * rest)
    return tied > 0


@inner
def _shares_may_tie(n, a, b, all_a, all_b, plus, minus, limit):
    tied = np.int64(0)
    for t in range(n):
        p, m = plus * float(a[t]), minus * float(b[t])
        rest_p, rest_m = plus * float(all_a - a[t]), minus * float(all_b - b[t])
        left, right = p + m, rest_p + rest_m
        tied += p * m * right + rest_p * rest_m * left < limit * (left * right)
    return tied > 0


@inner
def may_tie(kind, n, left, total, scale, upper):
    """Whether one of n thresholds with sums left[group, t] may cost at most upper TIE.

    True where that is not looked at: of more than one plane, of other criteria.
    """
    limit = upper * TIE * (1.0 + 4.0 * MARGIN)
    if scale.shape[0] != 2 or not SMALLEST < limit < np.inf:
        return True
    plus, minus, a, b = scale[0], scale[1], left[0], left[1]
    if kind == CONFIDENCE:
        return _roots_may_tie(n, a, b, total[0], total[1], plus, minus, limit)
    if kind == GENTLE:
        whole_p, whole_m = plus * float(total[0]), minus * float(total[1])
        if limit * (whole_p + whole_m) * (1.0 + 4.0 * MARGIN) < whole_p * whole_m:
            return _shares_may_tie(n, a, b, total[0], total[1], plus, minus, limit)
    return True
