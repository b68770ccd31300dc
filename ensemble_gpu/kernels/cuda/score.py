"""Scores of all splits of all features on the GPU, and the best of them.

One block a feature. The sums of each group are accumulated over the bins as integers; a leaf's
weight is W = scale * sum, and the cost of a split (smaller is better; boosting/rules.py derives it)

    CONFIDENCE  sum over leaves, planes of sqrt(W+ W-)
    SQUARED     sum over leaves, planes of W+ W- / (W+ + W-)
    POLARITY    min(W+left + W-right, W-left + W+right)
    MAJORITY    sum over leaves of (sum of W - max of W)

plus the abstaining rows' share. Operations and their order are those of kernels/cpu/score.py. The
compiler would fuse W = scale * sum with a following addition into one fma, rounded once instead of
twice: W is written |scale * sum|, the same number since both are >= 0, and no fma can cross that.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int32, int64

from ensemble_gpu.kernels.cuda._numba import cuda
from ensemble_gpu.kernels.cuda.launch import launch
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    CONFIDENCE,
    LEFT,
    MAJORITY,
    N_LEAVES,
    POLARITY,
    RIGHT,
)

MOST_THREADS = 256
NO_PLACE = 2**31 - 1
# The record that goes back to the host: score, feature, bin, missing leaf, sums, largest.
HEADER = 4

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _weight(scale, total):
    """W = scale * sum, both >= 0, in a form that no addition can be fused with."""
    return abs(scale * np.float64(total))


@cuda.jit(device=True)
def _pair(kind, plus, minus):
    """One leaf's cost in one plane."""
    if kind == CONFIDENCE:
        return math.sqrt(plus * minus)
    whole = plus + minus
    return plus * minus / whole if whole > 0.0 else 0.0


@cuda.jit(device=True)
def _pairs_cost(kind, sums, running, weights, at, end, absent, shift, whole):
    """CONFIDENCE, SQUARED: planes in order, each (left + right)."""
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
def _votes_cost(kind, sums, running, weights, at, end, absent, shift, whole):
    """MAJORITY over all groups; POLARITY from the last weights of its two groups."""
    left_sum, left_top, right_sum, right_top = 0.0, 0.0, 0.0, 0.0
    first_left, first_right, left, right = 0.0, 0.0, 0.0, 0.0
    g = np.int32(0)
    while g < weights.shape[1]:
        first_left, first_right = left, right
        here = running[g, at] + shift * sums[g, absent]
        there = running[g, end] + whole * sums[g, absent] - here
        left = _weight(weights[0, g], here)
        right = _weight(weights[0, g], there)
        left_sum += left
        right_sum += right
        left_top = max(left_top, left)
        right_top = max(right_top, right)
        g = np.int32(g + 1)
    if kind == POLARITY:
        return min(first_left + right, left + first_right)
    return (left_sum - left_top) + (right_sum - right_top)


@cuda.jit(device=True)
def _cost(kind, sums, running, weights, at, end, absent, shift, whole):
    """Cost of a threshold; `shift` = 1 puts the missing rows left, `whole` = 1 lets them vote."""
    if kind == POLARITY or kind == MAJORITY:
        return _votes_cost(kind, sums, running, weights, at, end, absent, shift, whole)
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
def _accumulate(sums, running, scratch, g, source, target, n):
    """running[g, target + t] = sum of sums[g, source ... source + t]: a scan in steps of 1, 2, 4 ...

    Barriers: (1) a chunk is loaded before it is read; (2) every partner has been read before one
    is overwritten, (3) and written before it is read in the next step; (4) the carry (the chunk's
    last sum) has been read before the next chunk is loaded over it.
    """
    tid = np.int32(cuda.threadIdx.x)
    threads = np.int32(cuda.blockDim.x)
    carry = np.int64(0)
    start = np.int32(0)
    while start < n:
        t = np.int32(start + tid)
        scratch[tid] = sums[g, source + t] if t < n else np.int64(0)
        cuda.syncthreads()  # (1)
        step = np.int32(1)
        while step < threads:
            below = scratch[tid - step] if tid >= step else np.int64(0)
            cuda.syncthreads()  # (2)
            scratch[tid] += below
            cuda.syncthreads()  # (3)
            step = np.int32(step << 1)
        if t < n:
            running[g, target + t] = carry + scratch[tid]
        carry += scratch[threads - 1]
        cuda.syncthreads()  # (4)
        start = np.int32(start + threads)


@cuda.jit(device=True)
def _block_argmin(values, keys, value, key):
    """values[0], keys[0] = the block's lowest (value, key).

    Barriers: (1) all candidates are there before one is compared; (2) a level of the tree is
    complete before the next reads it. The caller has a barrier before values[0] is replaced.
    """
    tid = np.int32(cuda.threadIdx.x)
    values[tid] = value
    keys[tid] = key
    cuda.syncthreads()  # (1)
    half = np.int32(cuda.blockDim.x >> 1)
    while half > 0:
        if tid < half:
            other, its_key = values[tid + half], keys[tid + half]
            if other < values[tid] or (other == values[tid] and its_key < keys[tid]):
                values[tid] = other
                keys[tid] = its_key
        cuda.syncthreads()  # (2)
        half = np.int32(half >> 1)


# --- kernels ---------------------------------------------------------------------------------


@cuda.jit(cache=True)
def score(sums, running, n_thresholds, weights, kind, learn, width, stride, best, place):
    """best[f] = lowest cost of feature f, place[f] = 4 * bin + leaf of missing values.

    Places are tried in ascending order and compared with <, so ties go to the lowest bin and, for
    one bin, to missing values on the left.

    Barriers: `_accumulate` ends with one, so each group's running sums are there for all threads;
    (1) the winner has been stored before the next feature's candidates replace it.
    """
    scratch = cuda.shared.array(MOST_THREADS, int64)
    values = cuda.shared.array(MOST_THREADS, float64)
    keys = cuda.shared.array(MOST_THREADS, int32)
    groups = np.int32(weights.shape[1])
    f = np.int32(cuda.blockIdx.x)
    while f < n_thresholds.shape[0]:
        source, target = np.int64(f) * stride, np.int64(f) * width
        g = np.int32(0)
        while g < groups:
            _accumulate(sums, running, scratch, g, source, target, width - 1)
            g = np.int32(g + 1)
        end, absent = target + width - 2, source + width - 1
        apart = 0.0 if learn else _apart(sums, weights, absent)
        lowest = math.inf
        where = np.int32(NO_PLACE)
        t = np.int32(cuda.threadIdx.x)
        while t < n_thresholds[f]:
            at = target + t
            if learn:
                cost = _cost(kind, sums, running, weights, at, end, absent, 1, 1)
                if cost < lowest:
                    lowest, where = cost, np.int32(4 * t + LEFT)
                cost = _cost(kind, sums, running, weights, at, end, absent, 0, 1)
                if cost < lowest:
                    lowest, where = cost, np.int32(4 * t + RIGHT)
            else:
                cost = _cost(kind, sums, running, weights, at, end, absent, 0, 0) + apart
                if cost < lowest:
                    lowest, where = cost, np.int32(4 * t + ABSTAIN)
            t = np.int32(t + cuda.blockDim.x)
        _block_argmin(values, keys, lowest, where)
        if cuda.threadIdx.x == 0:
            best[f] = values[0]
            place[f] = keys[0]
        cuda.syncthreads()  # (1)
        f = np.int32(f + cuda.gridDim.x)


@cuda.jit(cache=True)
def choose(best, place, sums, running, largest, width, stride, record, record_score):
    """The record of the best feature, lowest first: header, sums[group, leaf], largest[group].

    `record_score` is the record's first word as a float. One block; the barriers of
    `_block_argmin` are all that it needs, because nothing in shared memory is written again.
    """
    values = cuda.shared.array(MOST_THREADS, float64)
    keys = cuda.shared.array(MOST_THREADS, int32)
    lowest = math.inf
    chosen = np.int32(NO_PLACE)
    f = np.int32(cuda.threadIdx.x)
    while f < best.shape[0]:
        if best[f] < lowest:
            lowest, chosen = best[f], f
        f = np.int32(f + cuda.blockDim.x)
    _block_argmin(values, keys, lowest, chosen)
    f = keys[0]
    if cuda.threadIdx.x == 0:
        record_score[0] = values[0]
        record[1] = -1 if f == NO_PLACE else f
    if f != NO_PLACE:
        last_bin, leaf = np.int32(place[f] >> 2), np.int32(place[f] & 3)
        if cuda.threadIdx.x == 0:
            record[2] = last_bin
            record[3] = leaf
        groups = np.int32(largest.shape[0])
        g = np.int32(cuda.threadIdx.x)
        while g < groups:
            target, at = np.int64(f) * width, HEADER + N_LEAVES * g
            left = running[g, target + last_bin]
            record[at + LEFT] = left
            record[at + RIGHT] = running[g, target + width - 2] - left
            record[at + ABSTAIN] = 0
            record[at + leaf] += sums[g, np.int64(f) * stride + width - 1]
            record[HEADER + N_LEAVES * groups + g] = largest[g]
            g = np.int32(g + cuda.blockDim.x)


# --- launchers -------------------------------------------------------------------------------


def record_length(groups: int) -> int:
    return HEADER + (N_LEAVES + 1) * groups


def launch_split(
    kind: int, learn_missing: bool, width: int, stride: int, grid: int, block: int, stream: Any,
    sums: Any, running: Any, n_thresholds: Any, weights: Any, best: Any, place: Any,
    largest: Any, record: Any, record_score: Any,
) -> None:  # fmt: skip
    """Score every split of every feature and write the record of the best."""
    sizes = np.int32(width), np.int32(stride)
    launch(
        score, grid, block, stream, sums, running, n_thresholds, weights, np.int32(kind),
        np.int32(learn_missing), *sizes, best, place,
    )  # fmt: skip
    launch(
        choose, 1, block, stream, best, place, sums, running, largest, *sizes, record,
        record_score,
    )  # fmt: skip
