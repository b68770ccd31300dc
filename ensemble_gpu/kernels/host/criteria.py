"""How a split is scored: one implementation for every engine that scores on the host.

With L and R the sums of the left and the right child, W the weight of a child, ln the portable
logarithm of kernels/host/scalar.py, the score to be maximised is

    GINI      sum_k L_k^2 / W_L + sum_k R_k^2 / W_R
    ENTROPY   sum_k L_k ln(L_k / W_L) + sum_k R_k ln(R_k / W_R)
    ERROR     max_k L_k + max_k R_k
    VARIANCE   sum_k G_kL^2 / H_kL + sum_k G_kR^2 / H_kR
    POISSON   G_L ln(G_L / H_L) + G_R ln(G_R / H_R), both G above 0

up to a constant of the node: the weighted impurity of the children, with the opposite sign. For
two classes GINI is -2 (L_0 L_1 / W_L + R_0 R_1 / W_R); for more the squares are added up as
integers where they fit, one by one divided by W where not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    ERROR,
    EXACT_WEIGHT,
    NEVER,
    POISSON,
    VARIANCE,
    SplitRule,
)

# Integers whose x ln x is in a table.
TABLE = 1 << 18


@njit(cache=True, nogil=True)
def _fill(table):
    for i in range(1, table.shape[0]):
        table[i] = i * log(float(i))


_TABLE = np.zeros(0)


def weighted_logs() -> np.ndarray:
    """x ln x of small integers."""
    global _TABLE
    if not len(_TABLE):
        table = np.zeros(TABLE)
        _fill(table)
        _TABLE = table
    return _TABLE


class Scoring(NamedTuple):
    """A SplitRule as compiled code takes it; `counted`: the last column of the sums counts rows."""

    kind: int
    n_stats: int
    counted: bool
    min_rows: int
    min_weight: int
    monotone: bool
    one_category: bool
    random: bool
    signs: np.ndarray
    categorical: np.ndarray
    logs: np.ndarray


def scoring_of(rule: SplitRule, n_stats: int) -> Scoring:
    logs = weighted_logs() if rule.criterion == ENTROPY else np.zeros(0)
    return Scoring(
        rule.criterion, n_stats, rule.min_rows > 1, rule.min_rows, rule.min_weight, rule.monotone,
        rule.one_category, rule.random, rule.signs, rule.categorical, logs,
    )  # fmt: skip


@njit(cache=True, nogil=True, forceinline=True)
def x_log_x(x, logs):
    return logs[x] if x < logs.shape[0] else float(x) * log(float(x))


@njit(cache=True, nogil=True, forceinline=True)
def child_score(kind, n_stats, logs, sums):
    """The share of one child in the score; NEVER where the child is not allowed."""
    score = 0.0
    if kind == VARIANCE:
        half = n_stats // 2
        for k in range(half):
            if sums[k] > 0:
                g = float(sums[half + k])
                score += g * g / float(sums[k])
        return score
    if kind == POISSON:
        g = float(sums[1])
        return g * log(g / float(sums[0])) if sums[1] > 0 else NEVER
    if kind == ERROR:
        largest = np.int64(0)
        for k in range(n_stats):
            largest = max(largest, sums[k])
        return float(largest)
    weight, squares = np.int64(0), np.int64(0)
    for k in range(n_stats):
        weight += sums[k]
        squares += sums[k] * sums[k]
    if kind == ENTROPY:
        for k in range(n_stats):
            score += x_log_x(sums[k], logs)
        return score - x_log_x(weight, logs)
    if n_stats == 2:
        return -2.0 * (float(sums[0]) * float(sums[1]) / float(weight))
    if weight < EXACT_WEIGHT:
        return float(squares) / float(weight)
    for k in range(n_stats):
        score += float(sums[k]) * float(sums[k]) / float(weight)
    return score


@njit(cache=True, nogil=True, forceinline=True)
def mean_response(kind, sums):
    """The value that monotone constraints compare: share of class 1, or G / H."""
    below = sums[0] if kind >= VARIANCE else sums[0] + sums[1]
    return float(sums[1]) / float(below) if below > 0 else 0.0


@njit(cache=True, nogil=True, forceinline=True)
def total_weight(kind, n_stats, sums):
    weight = sums[0]
    if kind < VARIANCE:
        for k in range(1, n_stats):
            weight += sums[k]
    return weight


@njit(cache=True, nogil=True, forceinline=True)
def in_order(kind, left, right, sign, bounds):
    """On a monotone feature: values of the children in order, and within bounds.

    Other features may leave the bounds: the values of their children are clipped.
    """
    a, b = mean_response(kind, left), mean_response(kind, right)
    return bounds[0] <= min(a, b) and max(a, b) <= bounds[1] and (b - a) * sign >= 0.0


@njit(cache=True, nogil=True)
def gains(rule, sums, nodes, score, rounding, out):
    """What each split adds to the score of its node; 0 where it is but a share `rounding` of it."""
    for i in range(nodes.shape[0]):
        if score[i] == NEVER:
            out[i] = NEVER
            continue
        before = child_score(rule.kind, rule.n_stats, rule.logs, sums[nodes[i]])
        gain = score[i] - before
        out[i] = gain if abs(gain) > rounding * abs(before) else 0.0
