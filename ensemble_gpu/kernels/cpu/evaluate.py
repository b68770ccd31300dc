"""Evaluation of an additive model on the CPU: one search and one look-up per feature a row."""

from __future__ import annotations

from numba import njit, prange

BLOCK_ROWS = 1024


@njit(cache=True, nogil=True)
def _evaluate_block(X, features, first, steps, thresholds, values, missing, out, start, stop):
    """out[i] += values[feature, number of thresholds < x] in order of the features."""
    for u in range(features.shape[0]):
        f = features[u]
        base = first[u]
        for i in range(start, stop):
            x = X[i, f]
            if x != x:
                for k in range(out.shape[1]):
                    out[i, k] += missing[u, k]
            else:
                low = 0
                step = 1 << steps[u]
                for _ in range(steps[u]):
                    step >>= 1
                    low += step * (thresholds[base + low + step - 1] < x)
                for k in range(out.shape[1]):
                    out[i, k] += values[base + low, k]


@njit(cache=True, nogil=True)
def evaluate_serial(X, features, first, steps, thresholds, values, missing, out):
    n = X.shape[0]
    for b in range(-(-n // BLOCK_ROWS)):
        stop = min(n, (b + 1) * BLOCK_ROWS)
        _evaluate_block(
            X, features, first, steps, thresholds, values, missing, out, b * BLOCK_ROWS, stop
        )


@njit(cache=True, nogil=True, parallel=True)
def evaluate_parallel(X, features, first, steps, thresholds, values, missing, out):
    n = X.shape[0]
    for b in prange((n + BLOCK_ROWS - 1) // BLOCK_ROWS):
        stop = min(n, (b + 1) * BLOCK_ROWS)
        _evaluate_block(
            X, features, first, steps, thresholds, values, missing, out, b * BLOCK_ROWS, stop
        )
