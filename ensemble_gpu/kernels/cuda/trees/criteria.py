"""Scores of splits on the GPU, as kernels/host/criteria.py gives them, from shared memory.

The sums of one feature lie in shared memory as 32-bit words, low and high, [code, column]: running
sums over the codes, but for the last code, which is the missing one. With their size they are the
tuple `sums` = (low, high, columns, index of the missing code). A split is an index `at` in them,
the running sums of the last code on the left, and a `side`, 1 where missing values go left. The
tuple `rule` is (criterion, number of statistics, least rows, least weight of a child, l2).

The terms are kernels/formulas.py; whatever multiplies here is written `product` as well, which the
compiler fuses with no sum.
"""

from __future__ import annotations

import math

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, product
from ensemble_gpu.kernels.cuda.formulas import mean, pair_gini, square_share, weighted_log
from ensemble_gpu.kernels.cuda.trees.words import value_at
from ensemble_gpu.kernels.tree_protocol import ENTROPY, ERROR, EXACT_WEIGHT, GINI, POISSON, VARIANCE


@cuda.jit(device=True)
def child_sum(sums, c, at, side, right):
    """Column c of the left child, or of the right one."""
    low, high, columns, absent = sums
    missing_sums = value_at(low, high, np.int32(absent + c))
    left = value_at(low, high, np.int32(at + c)) + side * missing_sums
    if right:
        return value_at(low, high, np.int32(absent - columns + c)) + missing_sums - left
    return left


@cuda.jit(device=True)
def _poisson(sums, at, side, right):
    g = child_sum(sums, np.int32(1), at, side, right)
    if g <= 0:
        return -math.inf
    h = child_sum(sums, np.int32(0), at, side, right)
    return weighted_log(np.float64(g), np.float64(g) / np.float64(h))


@cuda.jit(device=True)
def _variance(n_stats, l2, sums, at, side, right):
    half = np.int32(n_stats >> 1)
    score = 0.0
    k = np.int32(0)
    while k < half:
        h = child_sum(sums, k, at, side, right)
        if h > 0:
            g = np.float64(child_sum(sums, np.int32(half + k), at, side, right))
            score += square_share(g, np.float64(h) + l2)
        k = np.int32(k + 1)
    return score


@cuda.jit(device=True)
def _entropy(n_stats, weight, sums, at, side, right):
    """x ln x of the classes in order, less that of their sum."""
    score, term = 0.0, 0.0
    k = np.int32(0)
    while k <= n_stats:
        score += term
        value = weight
        if k < n_stats:
            value = child_sum(sums, k, at, side, right)
        term = 0.0
        if value > 0:
            term = weighted_log(np.float64(value), np.float64(value))
        k = np.int32(k + 1)
    return score - term


@cuda.jit(device=True)
def _classes(kind, n_stats, sums, at, side, right):
    """GINI, ENTROPY, ERROR; GINI of two classes without its factor -2."""
    weight, largest, score = np.int64(0), np.int64(0), 0.0
    k = np.int32(0)
    while k < n_stats:
        value = child_sum(sums, k, at, side, right)
        weight += value
        largest = max(largest, value)
        k = np.int32(k + 1)
    if kind == ERROR:
        return np.float64(largest)
    if kind == ENTROPY:
        return _entropy(n_stats, weight, sums, at, side, right)
    if n_stats == 2:
        a = np.float64(child_sum(sums, np.int32(0), at, side, right))
        b = np.float64(child_sum(sums, np.int32(1), at, side, right))
        return pair_gini(a, b, np.float64(weight))
    squares = np.int64(0)
    k = np.int32(0)
    while k < n_stats:
        value = child_sum(sums, k, at, side, right)
        if weight < EXACT_WEIGHT:
            squares += value * value
        else:
            score += square_share(np.float64(value), np.float64(weight))
        k = np.int32(k + 1)
    return np.float64(squares) / np.float64(weight) if weight < EXACT_WEIGHT else score


@cuda.jit(device=True)
def _child(rule, sums, at, side, right):
    """The share of one child in the score."""
    if rule[0] == VARIANCE:
        return _variance(rule[1], rule[4], sums, at, side, right)
    if rule[0] == POISSON:
        return _poisson(sums, at, side, right)
    return _classes(rule[0], rule[1], sums, at, side, right)


@cuda.jit(device=True)
def _mean(kind, l2, sums, at, side, right):
    """The value that monotone constraints compare: share of class 1, or G / (H + l2)."""
    below = child_sum(sums, np.int32(0), at, side, right)
    above = child_sum(sums, np.int32(1), at, side, right)
    if kind < VARIANCE:
        below += above
    return mean(np.float64(above), np.float64(below) + l2 if below > 0 else 0.0)


@cuda.jit(device=True)
def _weight(kind, n_stats, sums, at, side, right):
    weight = child_sum(sums, np.int32(0), at, side, right)
    k, last = np.int32(1), np.int32(n_stats if kind < VARIANCE else n_stats >> 1)
    while k < last:
        weight += child_sum(sums, k, at, side, right)
        k = np.int32(k + 1)
    return weight


@cuda.jit(device=True)
def _is_enough(rule, sums, at, side, right):
    """Whether a child has rows and weight enough."""
    kind, n_stats, min_rows, min_weight, _ = rule
    if min_rows > 1 and child_sum(sums, n_stats, at, side, right) < min_rows:
        return False
    return min_weight == 0 or _weight(kind, n_stats, sums, at, side, right) >= min_weight


@cuda.jit(device=True)
def score_of(rule, sums, at, side, sign, bounds, node):
    """Score of a split, -inf where it is not allowed.

    Left, then right, in a loop: one copy of the formulas in the code.
    """
    left, score, a, b = 0.0, 0.0, 0.0, 0.0
    right = np.int32(0)
    while right < 2:
        if not _is_enough(rule, sums, at, side, right):
            return -math.inf
        if sign != 0:
            a, b = b, _mean(rule[0], rule[4], sums, at, side, right)
        left, score = score, _child(rule, sums, at, side, right)
        right = np.int32(right + 1)
    if sign != 0:
        within = bounds[node, 0] <= min(a, b) and max(a, b) <= bounds[node, 1]
        if not within or product(b - a, np.float64(sign)) < 0.0:
            return -math.inf
    score = left + score
    if rule[0] == GINI and rule[1] == 2:
        return product(-2.0, score)
    return score
