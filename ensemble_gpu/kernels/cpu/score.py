"""Scores of all splits of all features on the CPU, and the best of them.

For a feature the sums of the groups are accumulated over the bins as integers; a leaf's weight is
W = scale * sum. The three formulas (smaller is better; boosting/rules.py derives them):

    CONFIDENCE  sum over leaves, planes of sqrt(W+ W-)
    GENTLE     sum over leaves, planes of W+ W- / (W+ + W-)
    MAJORITY    sum over leaves of (sum of W - max of W)

plus the abstaining rows' share. Every operation is correctly rounded and the order is fixed, so the
other engines reproduce these scores to the last bit. Where bounds (kernels/cpu/bounds.py) or
products (kernels/cpu/products.py) show that thresholds cannot be the best they are not scored: that
changes nothing else.
"""

from __future__ import annotations

import math

import numpy as np

from ensemble_gpu.kernels.cpu.bounds import BLOCK, bound_blocks, note_bounding
from ensemble_gpu.kernels.cpu.products import may_tie
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import ABSTAIN, CONFIDENCE, LEFT, MAJORITY, RIGHT, TIE


def workspace(workers: int, groups: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Space for the scores of one feature, for each worker.

    costs[side 0, side 1, a leaf's sum, its maximum], sums left of each threshold [g, t], and
    total, missing and nothing [g].
    """
    left = np.empty((workers, groups, width), dtype=np.int64)
    rest = np.zeros((workers, 3, groups), dtype=np.int64)
    return np.empty((workers, 4, width)), left, rest


@inner
def _weight(scale, total):
    """W = scale * sum. Sums are never negative: AVX2 converts unsigned integers four at a time."""
    return scale * np.float64(np.uint64(total))


@inner
def _pair_costs(kind, n, left, total, missing_left, scale, plane, cost):
    """cost[t] += sqrt(W+ W-), or W+ W- / (W+ + W-), of both leaves of threshold t; four at a time.

    An empty leaf costs nothing.
    """
    plus, minus = scale[2 * plane], scale[2 * plane + 1]
    a, b = left[2 * plane], left[2 * plane + 1]
    total_a, total_b = total[2 * plane], total[2 * plane + 1]
    add_a, add_b = missing_left[2 * plane], missing_left[2 * plane + 1]
    if kind == CONFIDENCE:
        for t in range(n):
            left_a, left_b = a[t] + add_a, b[t] + add_b
            left_product = _weight(plus, left_a) * _weight(minus, left_b)
            right_product = _weight(plus, total_a - left_a) * _weight(minus, total_b - left_b)
            cost[t] += math.sqrt(left_product) + math.sqrt(right_product)
    else:
        for t in range(n):
            left_a, left_b = a[t] + add_a, b[t] + add_b
            p, m = _weight(plus, left_a), _weight(minus, left_b)
            left_cost = p * m / (p + m) if p + m > 0.0 else 0.0
            p, m = _weight(plus, total_a - left_a), _weight(minus, total_b - left_b)
            right_cost = p * m / (p + m) if p + m > 0.0 else 0.0
            cost[t] += left_cost + right_cost


@inner
def _majority_costs(n, left, total, missing_left, scale, right_leaf, whole, top, cost):
    """cost[t] += sum of W - max of W over the groups, in one leaf of threshold t."""
    for t in range(n):
        whole[t], top[t] = 0.0, 0.0
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


@inner(fastmath={"nnan", "nsz"})
def _minimum(cost, n):
    """The lowest of n costs. None is NaN, and fastmath knows: so the loop is vectorised."""
    lowest = math.inf
    for t in range(n):
        lowest = min(lowest, cost[t])
    return lowest


@inner
def _accumulate(sums, f, n, learn, left, total, missing):
    """Sums left of each threshold, of all rows that take a side, and of missing values.

    Whether there are missing values.
    """
    width = sums.shape[3]
    absent = False
    for g in range(sums.shape[0]):
        column, along = sums[g, f // 8, f % 8], left[g]
        run = np.int64(0)
        for t in range(n):
            run += column[t]
            along[t] = run
        for t in range(n, width - 1):
            run += column[t]
        missing[g] = column[width - 1]
        total[g] = run + (missing[g] if learn else 0)
        absent |= missing[g] != 0
    return absent


@inner
def _score_feature(worker, sums, f, n, scale, criterion, spaces, upper):
    """cost[side, t] of every threshold of a feature; returns the lowest.

    Side 0 sends missing values left, side 1 right; without `learn` they abstain (side 0 only).
    Nothing is scored, and inf returned, where no cost can tie with `upper`.
    """
    _, kind, abstention, learn = criterion
    costs, left, rest = spaces[0][worker], spaces[1][worker], spaces[2][worker]
    total, missing, nothing = rest[0], rest[1], rest[2]
    absent = _accumulate(sums, f, n, learn, left, total, missing)
    lowest = math.inf
    if not absent and not may_tie(kind, n, left, total, scale, upper):
        return lowest
    for side in range(1 + learn):
        cost = costs[side]
        if side == 1 and not absent:  # both sides alike
            for t in range(n):
                cost[t] = costs[0, t]
            return lowest
        for t in range(n):
            cost[t] = 0.0
        add = missing if learn and side == 0 else nothing
        if kind == MAJORITY:
            for leaf in range(2):
                _majority_costs(n, left, total, add, scale, leaf == RIGHT, costs[2], costs[3], cost)
        else:
            for plane in range(scale.shape[0] // 2):
                _pair_costs(kind, n, left, total, add, scale, plane, cost)
        if not learn:
            apart = 0.0
            for g in range(sums.shape[0]):
                apart += abstention[g] * float(missing[g])
            for t in range(n):
                cost[t] += apart
        lowest = min(lowest, _minimum(cost, n))
    return lowest


@inner
def _choose(sums, scale, criterion, spaces, found):
    """The first split in order of (feature, bin, side) that ties with the lowest cost.

    record = (feature, bin, leaf of missing values); returns the split's cost, inf without one.
    """
    lowest, leaf_sums, record, _, _ = found
    n_thresholds, _, _, learn = criterion
    best = math.inf
    for f in range(lowest.shape[0]):
        best = min(best, lowest[f])
    if best == math.inf:
        return best
    f = 0
    while lowest[f] > best * TIE:
        f += 1
    _score_feature(0, sums, f, n_thresholds[f], scale, criterion, spaces, math.inf)
    cost = spaces[0][0]
    t, side = 0, 0
    while cost[side, t] > best * TIE:
        if learn and side == 0:
            side = 1
        else:
            t, side = t + 1, 0
    record[0], record[1], record[2] = f, t, side if learn else ABSTAIN
    width = sums.shape[3]
    for g in range(sums.shape[0]):
        column = sums[g, f // 8, f % 8]
        for leaf in range(leaf_sums.shape[1]):
            leaf_sums[g, leaf] = 0
        for b in range(width - 1):
            leaf_sums[g, LEFT if b <= t else RIGHT] += column[b]
        leaf_sums[g, record[2]] += column[width - 1]
    return cost[side, t]


@inner
def best_split(crew, sums, scale, criterion, spaces, blocks, found):
    """The cost of the best split, which is left in `found`.

    criterion = (n_thresholds, kind, abstention, learn); found = (lowest, leaf_sums, record, the
    largest q of [part, group], and of groups); blocks as in kernels/cpu/bounds.py.
    """
    lowest, _, _, largest, top = found
    for g in range(top.shape[0]):
        top[g] = 0
        for part in range(largest.shape[0]):
            top[g] = max(top[g], largest[part, g])
    upper = bound_blocks(crew, sums, scale, criterion, blocks)
    for worker in range(blocks[5].shape[0]):
        blocks[5][worker] = upper
    given = sums, scale, criterion, spaces, blocks, lowest
    share(crew, lowest.shape[0], _score_blocks, given)
    note_bounding(blocks)
    return _choose(sums, scale, criterion, spaces, found)


@inner
def _block_lowest(sums, f, k, at, stop, scale, criterion, spaces, blocks, worker):
    """The lowest cost of the thresholds k BLOCK ... stop of a feature without missing values."""
    kind, edges, totals = criterion[1], blocks[0], blocks[4]
    costs, left, nothing = spaces[0][worker], spaces[1][worker], spaces[2][worker, 2]
    start, cost = k * BLOCK, costs[0]
    n = stop - start
    for g in range(sums.shape[0]):
        column, along = sums[g, f // 8, f % 8], left[g]
        run = edges[g, at]
        for t in range(n):
            run += column[start + t]
            along[t] = run
    for t in range(n):
        cost[t] = 0.0
    if kind == MAJORITY:
        for leaf in range(2):
            _majority_costs(
                n, left, totals, nothing, scale, leaf == RIGHT, costs[2], costs[3], cost
            )
    else:
        for plane in range(scale.shape[0] // 2):
            _pair_costs(kind, n, left, totals, nothing, scale, plane, cost)
    return _minimum(cost, n)


@inner
def _score_blocks(worker, first, last, sums, scale, criterion, spaces, blocks, lowest):
    """lowest[f] of some features, where a cost may tie with the lowest that the worker knows.

    What is left out, blocks of thresholds or all of a feature, could not be chosen.
    """
    n_thresholds = criterion[0]
    bounds, n_blocks, uppers, scored = blocks[2], blocks[3], blocks[5], blocks[6]
    stride, upper = bounds.shape[0] // n_blocks.shape[0], uppers[worker]
    for f in range(first, last):
        n, low = n_thresholds[f], math.inf
        if n_blocks[f] < 0:
            low = _score_feature(worker, sums, f, n, scale, criterion, spaces, upper)
        for k in range(n_blocks[f]):
            at = f * stride + k
            if bounds[at] <= upper * TIE:
                stop = min(n, (k + 1) * BLOCK)
                found = _block_lowest(
                    sums, f, k, at, stop, scale, criterion, spaces, blocks, worker
                )
                low = min(low, found)
                scored[worker] += 1
        lowest[f] = low
        upper = min(upper, low)
    uppers[worker] = upper


@kernel
def split(crew, sums, scale, criterion, spaces, blocks, found):
    """`best_split`, called from Python."""
    return best_split(crew, sums, scale, criterion, spaces, blocks, found)
