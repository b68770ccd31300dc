"""Scores of all splits of all features on the CPU, and the best of them.

For a feature the sums of the groups are accumulated over the bins as integers; a leaf's weight is
W = scale * sum. The three formulas (smaller is better; boosting/rules.py derives them):

    CONFIDENCE  sum over leaves, planes of sqrt(W+ W-)
    GENTLE     sum over leaves, planes of W+ W- / (W+ + W-)
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
def _weight(scale, total):
    """W = scale * sum. Sums are never negative: AVX2 converts unsigned integers four at a time."""
    return scale * np.float64(np.uint64(total))


@njit(cache=True, nogil=True)
def _confidence_costs(n, left, total, missing_left, scale, plane, cost):
    """cost[t] += sqrt(W+ W-) of both leaves of threshold t; four at a time (vsqrtpd)."""
    plus, minus = scale[2 * plane], scale[2 * plane + 1]
    a, b = left[2 * plane], left[2 * plane + 1]
    total_a, total_b = total[2 * plane], total[2 * plane + 1]
    add_a, add_b = missing_left[2 * plane], missing_left[2 * plane + 1]
    for t in range(n):
        left_a, left_b = a[t] + add_a, b[t] + add_b
        left_product = _weight(plus, left_a) * _weight(minus, left_b)
        right_product = _weight(plus, total_a - left_a) * _weight(minus, total_b - left_b)
        cost[t] += math.sqrt(left_product) + math.sqrt(right_product)


@njit(cache=True, nogil=True, error_model="numpy")
def _impurity(plus, minus):
    """W+ W- / (W+ + W-), 0 for an empty leaf."""
    whole = plus + minus
    return plus * minus / whole if whole > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _squared_costs(n, left, total, missing_left, scale, plane, cost):
    """cost[t] += W+ W- / (W+ + W-) of both leaves of threshold t."""
    plus, minus = scale[2 * plane], scale[2 * plane + 1]
    a, b = left[2 * plane], left[2 * plane + 1]
    total_a, total_b = total[2 * plane], total[2 * plane + 1]
    add_a, add_b = missing_left[2 * plane], missing_left[2 * plane + 1]
    for t in range(n):
        left_a, left_b = a[t] + add_a, b[t] + add_b
        left_cost = _impurity(_weight(plus, left_a), _weight(minus, left_b))
        right_cost = _impurity(_weight(plus, total_a - left_a), _weight(minus, total_b - left_b))
        cost[t] += left_cost + right_cost


@njit(cache=True, nogil=True)
def _majority_costs(n, left, total, missing_left, scale, right_leaf, cost):
    """cost[t] += sum of W - max of W over the groups, in one leaf of threshold t."""
    whole, top = np.zeros(n), np.zeros(n)
    for g in range(scale.shape[0]):
        along, every, add, factor = left[g], total[g], missing_left[g], scale[g]
        for t in range(n):
            before = top[t]  # read here: else the compiler makes a masked store of the maximum
            inside = along[t] + add
            w = _weight(factor, every - inside if right_leaf else inside)
            whole[t] += w
            top[t] = w if w > before else before
    for t in range(n):
        cost[t] += whole[t] - top[t]


@njit(cache=True, nogil=True)
def _costs(kind, n, left, total, missing_left, scale, cost):
    """cost[t] of thresholds 0 ... n - 1; `total` counts only rows that take a side."""
    for t in range(n):
        cost[t] = 0.0
    if kind == MAJORITY:
        _majority_costs(n, left, total, missing_left, scale, False, cost)
        _majority_costs(n, left, total, missing_left, scale, True, cost)
    else:
        for plane in range(scale.shape[0] // 2):
            if kind == CONFIDENCE:
                _confidence_costs(n, left, total, missing_left, scale, plane, cost)
            else:
                _squared_costs(n, left, total, missing_left, scale, plane, cost)


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz"})
def _minimum(cost, n):
    """The lowest of n costs. None is NaN, and fastmath knows: so the loop is vectorised."""
    lowest = math.inf
    for t in range(n):
        lowest = min(lowest, cost[t])
    return lowest


@njit(cache=True, nogil=True)
def _workspace(sums):
    """Space for one feature: cost[side, t], left[g, t], and total, missing and nothing [g]."""
    groups, width = sums.shape[0], sums.shape[3]
    return (
        np.empty((2, width)),
        np.empty((groups, width), dtype=np.int64),
        np.zeros((3, groups), dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def _score_feature(sums, f, n, kind, scale, abstention, learn, workspace):
    """cost[side, t] of every threshold of a feature; returns the lowest.

    Side 0 sends missing values left, side 1 right; without `learn` they abstain (side 0 only).
    """
    cost, left, rest = workspace
    total, missing, nothing = rest[0], rest[1], rest[2]
    groups, width = sums.shape[0], sums.shape[3]
    for g in range(groups):
        column, along = sums[g, f // 8, f % 8], left[g]
        run = np.int64(0)
        for t in range(n):
            run += column[t]
            along[t] = run
        for t in range(n, width - 1):
            run += column[t]
        total[g] = run
        missing[g] = column[width - 1]
    if learn:
        for g in range(groups):
            total[g] += missing[g]
        _costs(kind, n, left, total, missing, scale, cost[0])
        if not missing.any():  # both sides alike
            cost[1] = cost[0]
            return _minimum(cost[0], n)
        _costs(kind, n, left, total, nothing, scale, cost[1])
        return min(_minimum(cost[0], n), _minimum(cost[1], n))
    apart = 0.0
    for g in range(groups):
        apart += abstention[g] * float(missing[g])
    _costs(kind, n, left, total, nothing, scale, cost[0])
    for t in range(n):
        cost[0, t] += apart
    return _minimum(cost[0], n)


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
    workspace = _workspace(sums)
    _score_feature(sums, f, n, kind, scale, abstention, learn, workspace)
    cost = workspace[0]
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
    space = _workspace(sums)
    for f in range(n_thresholds.shape[0]):
        lowest[f] = _score_feature(sums, f, n_thresholds[f], kind, scale, abstention, learn, space)
    return _choose(lowest, sums, n_thresholds, kind, scale, abstention, learn, leaf_sums, record)


@njit(cache=True, nogil=True, parallel=True)
def split_parallel(sums, n_thresholds, kind, scale, abstention, learn, lowest, leaf_sums, record):
    for f in prange(n_thresholds.shape[0]):
        space = _workspace(sums)
        lowest[f] = _score_feature(sums, f, n_thresholds[f], kind, scale, abstention, learn, space)
    return _choose(lowest, sums, n_thresholds, kind, scale, abstention, learn, leaf_sums, record)
