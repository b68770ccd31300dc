"""What happens to each row alone, a step at a time: moved, packed, summed by leaf.

Where a loss has a kernel and rows are many all steps of a round are one (kernels/cpu/descent.py).
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import kernel
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
