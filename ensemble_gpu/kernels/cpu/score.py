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

from ensemble_gpu.kernels.protocol import ABSTAIN, CONFIDENCE, LEFT, MAJORITY, RIGHT, TIE


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
    for t in range(n):
        cost[t] = 0.0
    if kind == MAJORITY:
        _majority_costs(n, left, total, missing_left, scale, cost)
    else:
        for plane in range(scale.shape[0] // 2):
            _pair_costs(kind != CONFIDENCE, n, left, total, missing_left, scale, plane, cost)


@njit(cache=True, nogil=True)
def _score_feature(sums, f, n, kind, scale, abstention, learn, cost):
    """cost[side, t] of every threshold of a feature; returns the lowest.

    Side 0 sends missing values left, side 1 right; without `learn` they abstain (side 0 only).
    """
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
        for t in range(n, width - 1):
            run += column[t]
        total[g] = run
        missing[g] = column[width - 1]
    if learn:
        for g in range(groups):
            total[g] += missing[g]
        _costs(kind, n, left, total, missing, scale, cost[0])
        _costs(kind, n, left, total, nothing, scale, cost[1])
    else:
        apart = 0.0
        for g in range(groups):
            apart += abstention[g] * float(missing[g])
        _costs(kind, n, left, total, nothing, scale, cost[0])
        for t in range(n):
            cost[0, t] += apart
    lowest = math.inf
    for side in range(1 + learn):
        for t in range(n):
            lowest = min(lowest, cost[side, t])
    return lowest


@njit(cache=True, nogil=True)
def _first_below(cost, n, sides, limit):
    """The first (bin, side) whose cost is within the limit."""
    for t in range(n):
        for side in range(sides):
            if cost[side, t] <= limit:
                return t, side
    return n, 0


@njit(cache=True, nogil=True)
def _choose(lowest, sums, n_thresholds, kind, scale, abstention, learn, leaf_sums, record):
    """The first split in order of (feature, bin, side) that ties with the lowest cost.

    record = (feature, bin, leaf of missing values); returns the split's cost, inf without one.
    """
    best = math.inf
    for f in range(lowest.shape[0]):
        best = min(best, lowest[f])
    if best == math.inf:
        return best
    f = 0
    while lowest[f] > best * TIE:
        f += 1
    n, width = n_thresholds[f], sums.shape[3]
    cost = np.empty((2, n))
    _score_feature(sums, f, n, kind, scale, abstention, learn, cost)
    t, side = _first_below(cost, n, 1 + learn, best * TIE)
    record[0], record[1], record[2] = f, t, side if learn else ABSTAIN
    leaf_sums.fill(0)
    for g in range(sums.shape[0]):
        column = sums[g, f // 8, f % 8]
        for b in range(width - 1):
            leaf_sums[g, LEFT if b <= t else RIGHT] += column[b]
        leaf_sums[g, record[2]] += column[width - 1]
    return cost[side, t]


@njit(cache=True, nogil=True)
def split_serial(sums, n_thresholds, kind, scale, abstention, learn, lowest, leaf_sums, record):
    cost = np.empty((2, sums.shape[3]))
    for f in range(n_thresholds.shape[0]):
        lowest[f] = _score_feature(sums, f, n_thresholds[f], kind, scale, abstention, learn, cost)
    return _choose(lowest, sums, n_thresholds, kind, scale, abstention, learn, leaf_sums, record)


@njit(cache=True, nogil=True, parallel=True)
def split_parallel(sums, n_thresholds, kind, scale, abstention, learn, lowest, leaf_sums, record):
    for f in prange(n_thresholds.shape[0]):
        cost = np.empty((2, sums.shape[3]))
        lowest[f] = _score_feature(sums, f, n_thresholds[f], kind, scale, abstention, learn, cost)
    return _choose(lowest, sums, n_thresholds, kind, scale, abstention, learn, leaf_sums, record)
