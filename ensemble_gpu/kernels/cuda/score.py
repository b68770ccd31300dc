"""Scores of all splits of all features on the GPU, and the best of them.

One block a feature. The sums of each group are accumulated over the bins as integers; a leaf's
weight is W = scale * sum, and the cost of a split (smaller is better; boosting/rules.py derives it)

    CONFIDENCE  sum over leaves, planes of sqrt(W+ W-)
    GENTLE     sum over leaves, planes of W+ W- / (W+ + W-)
    MAJORITY    sum over leaves of (sum of W - max of W)

plus the abstaining rows' share. The terms are kernels/formulas.py; their order is that of
kernels/cpu/score.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int32, int64

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.formulas import confidence, gentle, weight
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.cuda.scan import scan_with, team_bits_of
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    CONFIDENCE,
    LEFT,
    MAJORITY,
    N_LEAVES,
    RIGHT,
    TIE,
)

MOST_THREADS = 256
NOTHING = 2**31 - 1
# The record that goes back to the host: score, feature, bin, missing leaf, sums, largest.
HEADER = 4

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _weight(scale, total):
    return weight(scale, np.float64(total))


@cuda.jit(device=True)
def _pair(kind, plus, minus):
    """One leaf's cost in one plane."""
    return confidence(plus, minus) if kind == CONFIDENCE else gentle(plus, minus)


@cuda.jit(device=True)
def _pairs_cost(kind, sums, running, weights, at, end, absent, shift, whole):
    """CONFIDENCE, GENTLE: planes in order, each (left + right)."""
    cost = 0.0
    g = np.int32(0)
    while g < weights.shape[1]:
        left_plus = running[g, at] + shift * sums[g, absent]
        left_minus = running[g + 1, at] + shift * sums[g + 1, absent]
        right_plus = running[g, end] + whole * sums[g, absent] - left_plus
        right_minus = running[g + 1, end] + whole * sums[g + 1, absent] - left_minus
        plus, minus = weights[0, g], weights[0, g + 1]
        left = _pair(kind, _weight(plus, left_plus), _weight(minus, left_minus))
        right = _pair(kind, _weight(plus, right_plus), _weight(minus, right_minus))
        cost += left + right
        g = np.int32(g + 2)
    return cost


@cuda.jit(device=True)
def _majority_cost(sums, running, weights, at, end, absent, shift, whole):
    """MAJORITY: the weight of each leaf outside its heaviest group."""
    left_sum, left_top, right_sum, right_top = 0.0, 0.0, 0.0, 0.0
    g = np.int32(0)
    while g < weights.shape[1]:
        inside = running[g, at] + shift * sums[g, absent]
        outside = running[g, end] + whole * sums[g, absent] - inside
        left = _weight(weights[0, g], inside)
        right = _weight(weights[0, g], outside)
        left_sum += left
        right_sum += right
        left_top = max(left_top, left)
        right_top = max(right_top, right)
        g = np.int32(g + 1)
    return (left_sum - left_top) + (right_sum - right_top)


@cuda.jit(device=True)
def _cost(kind, sums, running, weights, at, end, absent, shift, whole):
    """Cost of a threshold; `shift` = 1 puts the missing rows left, `whole` = 1 lets them vote."""
    if kind == MAJORITY:
        return _majority_cost(sums, running, weights, at, end, absent, shift, whole)
    return _pairs_cost(kind, sums, running, weights, at, end, absent, shift, whole)


@cuda.jit(device=True)
def _apart(sums, weights, absent):
    """What the abstaining rows add: sum over groups of abstention * sum, in order."""
    total = 0.0
    g = np.int32(0)
    while g < weights.shape[1]:
        total += _weight(weights[1, g], sums[g, absent])
        g = np.int32(g + 1)
    return total


@cuda.jit(device=True)
def _load(data, group, t):
    sums, _, source, _ = data
    return sums[group, source + t]


@cuda.jit(device=True)
def _store(data, group, t, total):
    _, running, _, target = data
    running[group, target + t] = total


@cuda.jit(device=True)
def _finish(data, last):
    """Every bin is a threshold, whether it is empty or not."""


# running[g, target + t] = sum of sums[g, source ... source + t] for every group g.
_accumulate = scan_with(_load, _store, _finish)


@cuda.jit(device=True)
def _block_min(scratch, value):
    """The block's minimum, for every thread.

    Barriers: (1) all values are there before one is read; (2) a level of the tree is complete
    before the next reads it; (3) all have read the result before the scratch is written again.
    """
    tid = np.int32(cuda.threadIdx.x)
    scratch[tid] = value
    cuda.syncthreads()  # (1)
    half = np.int32(cuda.blockDim.x >> 1)
    while half > 0:
        if tid < half:
            scratch[tid] = min(scratch[tid], scratch[tid + half])
        cuda.syncthreads()  # (2)
        half = np.int32(half >> 1)
    result = scratch[0]
    cuda.syncthreads()  # (3)
    return result


@cuda.jit(device=True)
def _costs(kind, learn, sums, running, weights, f, t, width, stride, apart):
    """Costs of threshold t of feature f with missing values left and right.

    Where they abstain there is one cost, given as both.
    """
    at, end = np.int64(f) * width + t, np.int64(f) * width + width - 2
    absent = np.int64(f) * stride + width - 1
    if learn:
        left = _cost(kind, sums, running, weights, at, end, absent, 1, 1)
        return left, _cost(kind, sums, running, weights, at, end, absent, 0, 1)
    cost = _cost(kind, sums, running, weights, at, end, absent, 0, 0) + apart
    return cost, cost


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def score(sums, running, n_thresholds, weights, kind, learn, width, stride, team_bits, lowest):
    """lowest[f] = lowest cost of feature f, inf where it has no threshold.

    `_accumulate` ends with a barrier, so all running sums are there for all threads.
    """
    scratch = cuda.shared.array(MOST_THREADS, int64)
    values = cuda.shared.array(MOST_THREADS, float64)
    f = np.int32(cuda.blockIdx.x)
    while f < n_thresholds.shape[0]:
        source, target = np.int64(f) * stride, np.int64(f) * width
        data = (sums, running, source, target)
        _accumulate(data, scratch, np.int32(sums.shape[0]), width - 1, team_bits)
        apart = 0.0 if learn else _apart(sums, weights, source + width - 1)
        best = math.inf
        t = np.int32(cuda.threadIdx.x)
        while t < n_thresholds[f]:
            left, right = _costs(
                kind, learn, sums, running, weights, f, t, width, stride, apart
            )  # fmt: skip
            best = min(best, min(left, right))
            t = np.int32(t + cuda.blockDim.x)
        best = _block_min(values, best)
        if cuda.threadIdx.x == 0:
            lowest[f] = best
        f = np.int32(f + cuda.gridDim.x)


@kernel()
def choose(
    lowest, sums, running, n_thresholds, weights, kind, learn, width, stride, largest, record,
    record_score,
):  # fmt: skip
    """The first split in order of (feature, bin, side) that ties with the lowest cost.

    One block. record = header, sums[group, leaf], largest[group]; `record_score` is its first word
    as a float. The costs of the chosen feature are computed once more rather than kept for all.
    Barriers are in `_block_min`; no other shared memory is used.
    """
    values = cuda.shared.array(MOST_THREADS, float64)
    keys = cuda.shared.array(MOST_THREADS, int32)
    tid, threads = np.int32(cuda.threadIdx.x), np.int32(cuda.blockDim.x)
    best = math.inf
    f = tid
    while f < lowest.shape[0]:
        best = min(best, lowest[f])
        f = np.int32(f + threads)
    limit = _block_min(values, best) * TIE
    key = np.int32(NOTHING)
    f = tid
    while f < lowest.shape[0] and key == NOTHING:
        if lowest[f] <= limit and lowest[f] < math.inf:
            key = f
        f = np.int32(f + threads)
    f = _block_min(keys, key)
    if f == NOTHING:
        if tid == 0:
            record[1] = -1
        return
    absent = np.int64(f) * stride + width - 1
    apart = 0.0 if learn else _apart(sums, weights, absent)
    key = np.int32(NOTHING)
    cost = math.inf
    t = tid
    while t < n_thresholds[f] and key == NOTHING:
        left, right = _costs(kind, learn, sums, running, weights, f, t, width, stride, apart)
        if left <= limit:
            key, cost = np.int32(2 * t), left
        elif right <= limit:
            key, cost = np.int32(2 * t + 1), right
        t = np.int32(t + threads)
    first = _block_min(keys, key)
    last_bin = np.int32(first >> 1)
    leaf = np.int32(first & 1) if learn else np.int32(ABSTAIN)
    if key == first:
        record_score[0] = cost
        record[1], record[2], record[3] = f, last_bin, leaf
    groups = np.int32(largest.shape[0])
    target = np.int64(f) * width
    g = tid
    while g < groups:
        at = HEADER + N_LEAVES * g
        left_sum = running[g, target + last_bin]
        record[at + LEFT] = left_sum
        record[at + RIGHT] = running[g, target + width - 2] - left_sum
        record[at + ABSTAIN] = 0
        record[at + leaf] += sums[g, absent]
        record[HEADER + N_LEAVES * groups + g] = largest[g]
        g = np.int32(g + threads)


# --- launchers -------------------------------------------------------------------------------


def record_length(groups: int) -> int:
    return HEADER + (N_LEAVES + 1) * groups


def launch_split(
    shape: Shape, kind: int, learn_missing: bool, width: int, stride: int, sums: Any, running: Any,
    n_thresholds: Any, weights: Any, lowest: Any, largest: Any, record: Any, record_score: Any,
) -> None:  # fmt: skip
    """Score every split of every feature and write the record of the best."""
    args = (
        sums, running, n_thresholds, weights, np.int32(kind), np.int32(learn_missing),
        np.int32(width), np.int32(stride),
    )  # fmt: skip
    launch(score, *shape, *args, team_bits_of(shape.block), lowest)
    launch(choose, *shape._replace(grid=1), lowest, *args, largest, record, record_score)
