"""Scores of all splits of all features on the CPU, and the best of them.

For a feature the sums of the groups are accumulated over the bins as integers; a leaf's weight is
W = scale * sum. The three formulas (smaller is better; boosting/rules.py derives them):

    CONFIDENCE  sum over leaves, planes of sqrt(W+ W-)
    SQUARED     sum over leaves, planes of W+ W- / (W+ + W-)
    MAJORITY    sum over leaves of (sum of W - max of W)

plus the abstaining rows' share. Every operation is correctly rounded and the order is fixed, so the
other engines reproduce these scores to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from ensemble_gpu.kernels.protocol import CONFIDENCE, MAJORITY

NO_SPLIT = -1


@njit(cache=True, nogil=True)
def _pair_costs(squared, n, left, total, missing_left, scale, plane, cost):
    """Add sqrt(W+ W-) or W+ W- / (W+ + W-) of both leaves of every threshold to `cost`."""
    plus, minus = scale[2 * plane], scale[2 * plane + 1]
    a, b = left[2 * plane], left[2 * plane + 1]
    total_a, total_b = total[2 * plane], total[2 * plane + 1]
    add_a, add_b = missing_left[2 * plane], missing_left[2 * plane + 1]
    for t in range(n):
        lp = plus * float(a[t] + add_a)
        lm = minus * float(b[t] + add_b)
        rp = plus * float(total_a - a[t] - add_a)
        rm = minus * float(total_b - b[t] - add_b)
        if squared:
            ls, rs = lp + lm, rp + rm
            lc = lp * lm / ls if ls > 0.0 else 0.0
            rc = rp * rm / rs if rs > 0.0 else 0.0
            cost[t] += lc + rc
        else:
            cost[t] += math.sqrt(lp * lm) + math.sqrt(rp * rm)


@njit(cache=True, nogil=True)
def _majority_costs(n, left, total, missing_left, scale, cost):
    for t in range(n):
        left_sum, left_top, right_sum, right_top = 0.0, 0.0, 0.0, 0.0
        for g in range(scale.shape[0]):
            lw = scale[g] * float(left[g, t] + missing_left[g])
            rw = scale[g] * float(total[g] - left[g, t] - missing_left[g])
            left_sum += lw
            right_sum += rw
            left_top = max(left_top, lw)
            right_top = max(right_top, rw)
        cost[t] += (left_sum - left_top) + (right_sum - right_top)


@njit(cache=True, nogil=True)
def _costs(kind, n, left, total, missing_left, scale, cost):
    """cost[t] of thresholds 0 ... n - 1; `total` counts only rows that take a side."""
    cost[:n] = 0.0
    if kind == MAJORITY:
        _majority_costs(n, left, total, missing_left, scale, cost)
    else:
        for plane in range(scale.shape[0] // 2):
            _pair_costs(kind != CONFIDENCE, n, left, total, missing_left, scale, plane, cost)


@njit(cache=True, nogil=True)
def _score_feature(sums, f, n, kind, scale, abstention, learn, best, at):
    """best[0] = lowest cost of a feature, at[0:2] = (bin, leaf of missing values)."""
    groups, width = sums.shape[0], sums.shape[3]
    tile, lane = f // 8, f % 8
    left = np.empty((groups, n), dtype=np.int64)
    total = np.zeros(groups, dtype=np.int64)
    missing = np.zeros(groups, dtype=np.int64)
    nothing = np.zeros(groups, dtype=np.int64)
    for g in range(groups):
        column = sums[g, tile, lane]
        run = np.int64(0)
        for t in range(n):
            run += column[t]
            left[g, t] = run
        total[g] = run
        for t in range(n, width - 1):
            total[g] += column[t]
        missing[g] = column[width - 1]
    cost = np.empty(n)
    best[0] = math.inf
    if not learn:
        apart = 0.0
        for g in range(groups):
            apart += abstention[g] * float(missing[g])
        _costs(kind, n, left, total, nothing, scale, cost)
        for t in range(n):
            value = cost[t] + apart
            if value < best[0]:
                best[0] = value
                at[0] = t
                at[1] = 2
        return
    for g in range(groups):
        total[g] += missing[g]
    right_cost = np.empty(n)
    _costs(kind, n, left, total, missing, scale, cost)
    _costs(kind, n, left, total, nothing, scale, right_cost)
    for t in range(n):
        if cost[t] < best[0]:
            best[0] = cost[t]
            at[0] = t
            at[1] = 0
        if right_cost[t] < best[0]:
            best[0] = right_cost[t]
            at[0] = t
            at[1] = 1


@njit(cache=True, nogil=True)
def _reduce(best, at, sums, learn, leaf_sums):
    """The best feature and the integer weight of its leaves; NO_SPLIT where there is none."""
    f = NO_SPLIT
    lowest = math.inf
    for j in range(best.shape[0]):
        if best[j, 0] < lowest:
            lowest = best[j, 0]
            f = j
    if f == NO_SPLIT:
        return f
    groups, width = sums.shape[0], sums.shape[3]
    for g in range(groups):
        column = sums[g, f // 8, f % 8]
        leaf_sums[g] = 0
        for t in range(width - 1):
            leaf_sums[g, 0 if t <= at[f, 0] else 1] += column[t]
        leaf_sums[g, at[f, 1]] += column[width - 1]
    return f


@njit(cache=True, nogil=True)
def split_serial(sums, n_thresholds, kind, scale, abstention, learn, best, at, leaf_sums):
    for f in range(n_thresholds.shape[0]):
        _score_feature(
            sums, f, n_thresholds[f], kind, scale, abstention, learn, best[f], at[f]
        )
    return _reduce(best, at, sums, learn, leaf_sums)


@njit(cache=True, nogil=True, parallel=True)
def split_parallel(sums, n_thresholds, kind, scale, abstention, learn, best, at, leaf_sums):
    for f in prange(n_thresholds.shape[0]):
        _score_feature(
            sums, f, n_thresholds[f], kind, scale, abstention, learn, best[f], at[f]
        )
    return _reduce(best, at, sums, learn, leaf_sums)
