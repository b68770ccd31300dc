"""How a split is scored: one implementation for every engine that scores on the host.

With L and R the sums of the left and the right child, W the weight of a child, ln the portable
logarithm of kernels/host/scalar.py, the score to be maximised is

    GINI      sum_k L_k^2 / W_L + sum_k R_k^2 / W_R
    ENTROPY   sum_k L_k ln(L_k / W_L) + sum_k R_k ln(R_k / W_R)
    ERROR     max_k L_k + max_k R_k
    VARIANCE  sum_k G_kL^2 / (H_kL + l2) + sum_k G_kR^2 / (H_kR + l2)
    POISSON   G_L ln(G_L / H_L) + G_R ln(G_R / H_R), both G above 0

up to a constant of the node: the weighted impurity of the children, with the opposite sign. For
two classes GINI is -2 (L_0 L_1 / W_L + R_0 R_1 / W_R); for more the squares are added up as
integers where they fit, one by one divided by W where not.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.formulas import formulas
from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    ERROR,
    EXACT_WEIGHT,
    GINI,
    NEVER,
    POISSON,
    VARIANCE,
    SplitRule,
)

# Integers whose x ln x is in a table.
TABLE = 1 << 18

# Fractions that scores are made of; LLVM fuses no product with a sum on the host.
_FORMULAS = formulas(inner(inline="always"), operator.mul)
pair_gini, square_share = _FORMULAS.pair_gini, _FORMULAS.square_share


@kernel
def _weigh_logs(x, out):
    for i in range(x.shape[0]):
        out[i] = x[i] * log(x[i]) if x[i] > 0.0 else 0.0


def times_log(x: np.ndarray) -> np.ndarray:
    """x ln x of every number; 0 where it is 0."""
    out = np.empty(x.shape)
    _weigh_logs(np.ascontiguousarray(x, dtype=np.float64).reshape(-1), out.reshape(-1))
    return out


@kernel
def _write_logs(x, out):
    for i in range(x.shape[0]):
        out[i] = log(x[i])


def logs(x: np.ndarray) -> np.ndarray:
    """Ln x of every number [n]."""
    out = np.empty(len(x))
    _write_logs(np.ascontiguousarray(x, dtype=np.float64), out)
    return out


@cache
def weighted_logs() -> np.ndarray:
    """x ln x of small integers."""
    return times_log(np.arange(TABLE))


class Scoring(NamedTuple):
    """A SplitRule as compiled code takes it; `counted`: the last column of the sums counts rows."""

    kind: int
    n_stats: int
    counted: bool
    min_rows: int
    min_weight: int
    l2: float
    monotone: bool
    one_category: bool
    random: bool
    signs: np.ndarray
    categorical: np.ndarray
    logs: np.ndarray


def scoring_of(rule: SplitRule, n_stats: int) -> Scoring:
    logs = weighted_logs() if rule.criterion == ENTROPY else np.zeros(0)
    return Scoring(
        rule.criterion, n_stats, rule.min_rows > 1, rule.min_rows, rule.min_weight, rule.l2,
        rule.monotone, rule.one_category, rule.random, rule.signs, rule.categorical, logs,
    )  # fmt: skip


@inner(forceinline=True)
def x_log_x(x, logs):
    return logs[x] if x < logs.shape[0] else float(x) * log(float(x))


@inner(inline="always")
def gini_of_pairs(a, b, c, d):
    """GINI of a split of two classes: a, b are left, c, d right."""
    return -2.0 * pair_gini(a, b, a + b) + -2.0 * pair_gini(c, d, c + d)


@inner(inline="always")
def variance_of_pairs(a, b, c, d, l2):
    """VARIANCE of a split, one output: H and G are a, b on the left, c, d on the right."""
    left = square_share(b, a + l2 if a > 0.0 else 1.0)
    right = square_share(d, c + l2 if c > 0.0 else 1.0)
    return (left if a > 0.0 else 0.0) + (right if c > 0.0 else 0.0)


@inner(forceinline=True)
def pair_score(kind, l2, l0, l1, r0, r1):
    """The score of a split with two statistics: GINI or VARIANCE."""
    a, b, c, d = float(l0), float(l1), float(r0), float(r1)
    return gini_of_pairs(a, b, c, d) if kind == GINI else variance_of_pairs(a, b, c, d, l2)


@inner(forceinline=True)
def _entropy(x, y, logs):
    """The share of a child with two classes in ENTROPY."""
    return (x_log_x(x, logs) + x_log_x(y, logs)) - x_log_x(x + y, logs)


@inner(forceinline=True)
def two_class_score(kind, logs, l0, l1, r0, r1):
    """The score of a split of two classes: ENTROPY or ERROR."""
    if kind == ENTROPY:
        return _entropy(l0, l1, logs) + _entropy(r0, r1, logs)
    return float(max(l0, l1)) + float(max(r0, r1))


@inner(forceinline=True)
def class_score(kind, n, logs, sums, weight):
    """The share of a child with class sums[:n]: GINI as for three classes or more."""
    score = 0.0
    if kind == ERROR:
        largest = np.int64(0)
        for k in range(n):
            largest = max(largest, sums[k])
        return float(largest)
    if kind == ENTROPY:
        for k in range(n):
            score += x_log_x(sums[k], logs)
        return score - x_log_x(weight, logs)
    if weight < EXACT_WEIGHT:
        squares = np.int64(0)
        for k in range(n):
            squares += sums[k] * sums[k]
        return float(squares) / float(weight)
    for k in range(n):
        score += square_share(float(sums[k]), float(weight))
    return score


@inner(forceinline=True)
def child_score(kind, n_stats, l2, logs, sums):
    """The share of one child in the score; NEVER where the child is not allowed."""
    if kind == VARIANCE:
        score, half = 0.0, n_stats // 2
        for k in range(half):
            if sums[k] > 0:
                score += square_share(float(sums[half + k]), float(sums[k]) + l2)
        return score
    if kind == POISSON:
        g = float(sums[1])
        return g * log(g / float(sums[0])) if sums[1] > 0 else NEVER
    weight = total_weight(kind, n_stats, sums)
    if kind == GINI and n_stats == 2:
        return -2.0 * pair_gini(float(sums[0]), float(sums[1]), float(weight))
    return class_score(kind, n_stats, logs, sums, weight)


@inner(forceinline=True)
def mean_response(kind, l2, sums):
    """The value that monotone constraints compare: share of class 1, or G / (H + l2)."""
    below = sums[0] if kind >= VARIANCE else sums[0] + sums[1]
    return float(sums[1]) / (float(below) + l2) if below > 0 else 0.0


@inner(forceinline=True)
def total_weight(kind, n_stats, sums):
    weight = sums[0]
    for k in range(1, n_stats if kind < VARIANCE else n_stats // 2):
        weight += sums[k]
    return weight


@inner(forceinline=True)
def in_order(kind, l2, left, right, sign, bounds):
    """On a monotone feature: values of the children in order, and within bounds.

    Other features may leave the bounds: the values of their children are clipped.
    """
    a, b = mean_response(kind, l2, left), mean_response(kind, l2, right)
    return bounds[0] <= min(a, b) and max(a, b) <= bounds[1] and (b - a) * sign >= 0.0


@inner(inline="always")
def _gain(score, before, rounding):
    """What a split adds to the score of its node; 0 where it is but a share `rounding` of it."""
    gain = score - before
    return gain if abs(gain) > rounding * abs(before) else 0.0


@inner
def write_gains(rule, sums, nodes, score, rounding, out):
    """The gains of splits with these scores; NEVER where there is none."""
    for i in range(nodes.shape[0]):
        if score[i] == NEVER:
            out[i] = NEVER
        else:
            before = child_score(rule.kind, rule.n_stats, rule.l2, rule.logs, sums[nodes[i]])
            out[i] = _gain(score[i], before, rounding)


@kernel
def gains(rule, sums, nodes, score, rounding, out):
    """`write_gains` for Python."""
    write_gains(rule, sums, nodes, score, rounding, out)


@inner
def write_pair_gains(kind, l2, sums, nodes, score, rounding, out):
    """`gains` for two statistics: GINI or VARIANCE."""
    for i in range(nodes.shape[0]):
        x, y = sums[nodes[i], 0], sums[nodes[i], 1]
        if score[i] == NEVER:
            out[i] = NEVER
        elif kind == GINI:
            out[i] = _gain(score[i], -2.0 * pair_gini(float(x), float(y), float(x + y)), rounding)
        else:
            before = square_share(float(y), float(x) + l2) if x > 0 else 0.0
            out[i] = _gain(score[i], before, rounding)


@kernel
def pair_gains(kind, l2, sums, nodes, score, rounding, out):
    """`write_pair_gains` for Python."""
    write_pair_gains(kind, l2, sums, nodes, score, rounding, out)
