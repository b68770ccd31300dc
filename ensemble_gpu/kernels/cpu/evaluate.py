"""Evaluation of an additive model on the CPU: one search and one look-up per feature a row."""

from __future__ import annotations

import numpy as np
from numba import njit, prange

from ensemble_gpu.kernels.cpu.search import BLOCK_ROWS, count_below, load_column

IN_ORDER = np.zeros(0, dtype=np.int64)


@njit(cache=True, nogil=True)
def _evaluate_block(X, features, first, steps, thresholds, values, missing, out, start, stop):
    """out[i] += values[feature, number of thresholds < x] in order of the features."""
    n = stop - start
    x = np.empty(n, dtype=np.float64)
    place = np.empty(n, dtype=np.int32)
    for u in range(features.shape[0]):
        f, base = features[u], first[u]
        absent = load_column(X, IN_ORDER, f, start, x, 0.0)
        place.fill(0)
        count_below(x, thresholds[base : base + (1 << steps[u])], steps[u], place)
        for k in range(out.shape[1]):
            if absent:
                for i in range(n):
                    value = X[start + i, f]
                    known = values[base + place[i], k]
                    out[start + i, k] += missing[u, k] if value != value else known
            else:
                for i in range(n):
                    out[start + i, k] += values[base + place[i], k]


@njit(cache=True, nogil=True)
def evaluate_serial(X, features, first, steps, thresholds, values, missing, out):
    n = X.shape[0]
    for b in range(-(-n // BLOCK_ROWS)):
        start, stop = b * BLOCK_ROWS, min(n, (b + 1) * BLOCK_ROWS)
        _evaluate_block(X, features, first, steps, thresholds, values, missing, out, start, stop)


@njit(cache=True, nogil=True, parallel=True)
def evaluate_parallel(X, features, first, steps, thresholds, values, missing, out):
    n = X.shape[0]
    for b in prange((n + BLOCK_ROWS - 1) // BLOCK_ROWS):
        start, stop = b * BLOCK_ROWS, min(n, (b + 1) * BLOCK_ROWS)
        _evaluate_block(X, features, first, steps, thresholds, values, missing, out, start, stop)
