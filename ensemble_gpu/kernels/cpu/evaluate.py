"""Evaluation of an additive model on the CPU: one search and one look-up per feature a row."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ensemble_gpu.kernels.cpu.edges import (
    BLOCK_ROWS,
    GUIDE_BUCKETS,
    guided_count,
    load_column,
    make_guide,
)

IN_ORDER = np.zeros(0, dtype=np.int64)


@njit(cache=True, nogil=True)
def _guide_feature(thresholds, n_steps, guide):
    """Fill the guide of a feature's thresholds; returns (low, scale, halvings left to do).

    The search stays within the 2^n_steps thresholds, because no guide starts it later than
    2^halvings before their end: an earlier start finds the same place.
    """
    n = thresholds.shape[0]
    while n > 0 and thresholds[n - 1] == math.inf:
        n -= 1
    width = thresholds[n - 1] - thresholds[0] if n > 1 else 0.0
    scale = (guide.shape[0] - 1.0) / width if width > 0.0 else math.inf
    if scale == math.inf:
        return 0.0, 0.0, n_steps
    most = make_guide(thresholds, n, thresholds[0], scale, guide)
    halvings = 1
    while 1 << halvings <= most:
        halvings += 1
    for b in range(guide.shape[0]):
        guide[b] = min(guide[b], thresholds.shape[0] - (1 << halvings))
    return thresholds[0], scale, halvings


@njit(cache=True, nogil=True)
def _guides(n_rows, first, steps, thresholds):
    """Guides of all features, where there are rows enough to repay them; else of one bucket."""
    buckets = GUIDE_BUCKETS if n_rows >= 2 * GUIDE_BUCKETS else 1
    guides = np.zeros((first.shape[0], buckets), dtype=np.int32)
    low, scale = np.zeros(first.shape[0]), np.zeros(first.shape[0])
    halvings = steps.copy()
    for u in range(first.shape[0]):
        if buckets > 1 and 1 << steps[u] <= n_rows:
            own = thresholds[first[u] : first[u] + (1 << steps[u])]
            low[u], scale[u], halvings[u] = _guide_feature(own, steps[u], guides[u])
    return guides, low, scale, halvings


@njit(cache=True, nogil=True)
def _evaluate_block(X, features, first, guided, thresholds, values, missing, out, start, stop):
    """out[i] += values[feature, number of thresholds < x] in order of the features."""
    guides, low, scale, halvings = guided
    n = stop - start
    x = np.empty(n, dtype=np.float64)
    place = np.empty(n, dtype=np.int32)
    sums = np.empty((out.shape[1], n), dtype=np.float64)
    for k in range(out.shape[1]):
        for i in range(n):
            sums[k, i] = out[start + i, k]
    for u in range(features.shape[0]):
        own = values[first[u] :]
        absent = load_column(X, IN_ORDER, features[u], start, x, math.nan)
        guided_count(x, thresholds[first[u] :], guides[u], low[u], scale[u], halvings[u], place)
        for k in range(out.shape[1]):
            total = sums[k]
            if absent:
                for i in range(n):
                    known = own[np.uint32(place[i]), k]
                    total[i] += missing[u, k] if x[i] != x[i] else known
            else:
                for i in range(n):
                    total[i] += own[np.uint32(place[i]), k]
    for k in range(out.shape[1]):
        for i in range(n):
            out[start + i, k] = sums[k, i]


@njit(cache=True, nogil=True)
def evaluate_serial(X, features, first, steps, thresholds, values, missing, out):
    n = X.shape[0]
    guided = _guides(n, first, steps, thresholds)
    for b in range(-(-n // BLOCK_ROWS)):
        start, stop = b * BLOCK_ROWS, min(n, (b + 1) * BLOCK_ROWS)
        _evaluate_block(X, features, first, guided, thresholds, values, missing, out, start, stop)


@njit(cache=True, nogil=True, parallel=True)
def evaluate_parallel(X, features, first, steps, thresholds, values, missing, out):
    n = X.shape[0]
    guided = _guides(n, first, steps, thresholds)
    for b in prange((n + BLOCK_ROWS - 1) // BLOCK_ROWS):
        start, stop = b * BLOCK_ROWS, min(n, (b + 1) * BLOCK_ROWS)
        _evaluate_block(X, features, first, guided, thresholds, values, missing, out, start, stop)
