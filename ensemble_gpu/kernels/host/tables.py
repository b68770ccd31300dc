"""Stumps added up to tables."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import kernel
from ensemble_gpu.kernels.protocol import LEFT, RIGHT


@kernel
def add_stumps(owner, place, first, values, missing_leaf, table, missing):
    """Add stumps, one round after the other, to the tables: intervals <= place go left.

    Round t belongs to table owner[t], whose intervals are the rows first[u] ... first[u + 1] - 1.
    """
    for t in range(place.shape[0]):
        u = owner[t]
        for k in range(values.shape[1]):
            for i in range(first[u], first[u + 1]):
                table[i, k] += values[t, k, LEFT] if i <= place[t] else values[t, k, RIGHT]
            missing[u, k] += values[t, k, missing_leaf[t]]


@kernel
def stump_answers(x, threshold, values, out):
    """out[i, k] = values[k, leaf], leaf 0 where x <= threshold, 2 where x is NaN, else 1."""
    for k in range(values.shape[0]):
        left, right, missing = values[k, 0], values[k, 1], values[k, 2]
        for i in range(x.shape[0]):
            value = np.float64(x[i])
            side = right if value > threshold else left
            out[i, k] = side if value == value else missing
