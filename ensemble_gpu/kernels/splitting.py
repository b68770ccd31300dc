"""The best split of a node from its sums per code: one implementation for every engine.

With L and R the sums of the left and the right child, W the weight of a child, ln the portable
logarithm of kernels/scalar.py, the score to be maximised is

    GINI      sum_k L_k^2 / W_L + sum_k R_k^2 / W_R
    ENTROPY   sum_k L_k ln(L_k / W_L) + sum_k R_k ln(R_k / W_R)
    ERROR     max_k L_k + max_k R_k
    SQUARED   sum_k G_kL^2 / H_kL + sum_k G_kR^2 / H_kR
    POISSON   G_L ln(G_L / H_L) + G_R ln(G_R / H_R), both G above 0

up to a constant of the node: the weighted impurity of the children, with the opposite sign. For
two classes GINI is -2 (L_0 L_1 / W_L + R_0 R_1 / W_R); for more the squares are added up as
integers where they fit, one by one divided by W where not.

A feature comes as the codes that occur in the node, ascending, with their sums (the "runs"): empty
codes cost nothing. Thresholds are tried in order of (feature, bin, missing left before right), and
only a higher score replaces the best. Categories are put in order of their mean response (for
several classes or outputs in the order of each), and the first of them go left: for two classes and
one output no other subset is better.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ensemble_gpu.kernels.growing import (
    ENTROPY,
    ERROR,
    EXACT_WEIGHT,
    GINI,
    NEVER,
    POISSON,
    SQUARED,
    Rule,
    Splits,
    subset_words,
)
from ensemble_gpu.kernels.hashing import drawn
from ensemble_gpu.kernels.scalar import log

# Integers whose x ln x is in a table.
TABLE = 1 << 18
# Columns of a record: feature, bin, above, missing left, has missing.
FEATURE, BIN, ABOVE, MISSING_LEFT, HAS_MISSING, RECORD = range(6)


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
    """A Rule as compiled code takes it; `counted`: the last column of the sums counts rows."""

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


class Best(NamedTuple):
    """Where the best split of a node is written."""

    score: np.ndarray
    record: np.ndarray
    left: np.ndarray
    bits: np.ndarray


def scoring_of(rule: Rule, n_stats: int) -> Scoring:
    logs = weighted_logs() if rule.criterion == ENTROPY else np.zeros(0)
    return Scoring(
        rule.criterion, n_stats, rule.min_rows > 1, rule.min_rows, rule.min_weight, rule.monotone,
        rule.one_category, rule.random, rule.signs, rule.categorical, logs,
    )  # fmt: skip


@njit(cache=True, nogil=True, forceinline=True)
def x_log_x(x, logs):
    return logs[x] if x < logs.shape[0] else float(x) * log(float(x))


@njit(cache=True, nogil=True, forceinline=True)
def _child(kind, n_stats, logs, sums):
    """The share of one child in the score; NEVER where the child is not allowed."""
    score = 0.0
    if kind == SQUARED:
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
def _mean(kind, sums):
    """The value that monotone constraints compare: share of class 1, or G / H."""
    below = sums[0] if kind >= SQUARED else sums[0] + sums[1]
    return float(sums[1]) / float(below) if below > 0 else 0.0


@njit(cache=True, nogil=True, forceinline=True)
def _weight(kind, n_stats, sums):
    weight = sums[0]
    if kind < SQUARED:
        for k in range(1, n_stats):
            weight += sums[k]
    return weight


@njit(cache=True, nogil=True, forceinline=True)
def _in_order(kind, left, right, sign, bounds):
    """On a monotone feature: values of the children in order, and within bounds.

    Other features may leave the bounds: the values of their children are clipped.
    """
    a, b = _mean(kind, left), _mean(kind, right)
    return bounds[0] <= min(a, b) and max(a, b) <= bounds[1] and (b - a) * sign >= 0.0


@njit(cache=True, nogil=True)
def _scan_pairs(rule, cell, order, first, last, whole, l0, l1):
    """`_scan` for two statistics without conditions: GINI or SQUARED."""
    best, at = NEVER, -1
    for i in range(last):
        l0 += cell[order[i], 0]
        l1 += cell[order[i], 1]
        if i < first:
            continue
        r0, r1 = whole[0] - l0, whole[1] - l1
        a, b, c, d = float(l0), float(l1), float(r0), float(r1)
        if rule.kind == GINI:
            score = -2.0 * (a * b / (a + b)) + -2.0 * (c * d / (c + d))
        else:
            score = (b * b / a if l0 > 0 else 0.0) + (d * d / c if r0 > 0 else 0.0)
        if score > best:
            best, at = score, i
    return best, at


@njit(cache=True, nogil=True)
def _scan_classes(kind, logs, cell, order, first, last, whole, left, least):
    """`_scan` for classes with rows enough on both sides (`least`; 0: nobody counts): one loop."""
    best, at = NEVER, -1
    n, counted = cell.shape[1] - (least > 0), least > 0
    for i in range(last):
        run = np.uint64(order[i])
        weight_l, weight_r = np.int64(0), np.int64(0)
        squares_l, squares_r = np.int64(0), np.int64(0)
        largest_l, largest_r = np.int64(0), np.int64(0)
        score_l, score_r = 0.0, 0.0
        for c in range(n):
            here = left[c] + cell[run, c]
            there = whole[c] - here
            left[c] = here
            weight_l += here
            weight_r += there
            if kind == GINI:
                squares_l += here * here
                squares_r += there * there
            elif kind == ENTROPY:
                score_l += x_log_x(here, logs)
                score_r += x_log_x(there, logs)
            else:
                largest_l, largest_r = max(largest_l, here), max(largest_r, there)
        if counted:
            left[n] += cell[run, n]
            if min(left[n], whole[n] - left[n]) < least:
                continue
        if i < first:
            continue
        if kind == GINI:
            score = float(squares_l) / float(weight_l) + float(squares_r) / float(weight_r)
        elif kind == ENTROPY:
            score = (score_l - x_log_x(weight_l, logs)) + (score_r - x_log_x(weight_r, logs))
        else:
            score = float(largest_l) + float(largest_r)
        if score > best:
            best, at = score, i
    return best, at


@njit(cache=True, nogil=True)
def _scan(rule, cell, order, first, last, whole, start, sign, bounds, work):
    """(score, last run on the left) of the best split after one of the runs first ... last - 1.

    `order` is how the runs follow each other, `start` what is on the left before them: the sums of
    missing values, or zeros.
    """
    # what is used in the loop is named here: a rule handed on costs more than a score
    kind, n_stats, logs, counted = rule.kind, rule.n_stats, rule.logs, rule.counted
    min_rows, min_weight = rule.min_rows, rule.min_weight
    free = not counted and sign == 0 and min_weight == 0
    if free and n_stats == 2 and kind in (GINI, SQUARED):
        return _scan_pairs(rule, cell, order, first, last, whole, start[0], start[1])
    left, right, columns = work[0], work[1], cell.shape[1]
    left[:] = start
    if kind < SQUARED and sign == 0 and min_weight == 0:
        weight = _weight(kind, n_stats, whole)
        if kind != GINI or (n_stats > 2 and weight < EXACT_WEIGHT):
            least = min_rows if counted else 0
            return _scan_classes(kind, logs, cell, order, first, last, whole, left, least)
    best, at = NEVER, -1
    for i in range(last):
        run = np.uint64(order[i])
        for c in range(columns):
            left[c] += cell[run, c]
            right[c] = whole[c] - left[c]
        if i < first or (counted and min(left[n_stats], right[n_stats]) < min_rows):
            continue
        if min_weight > 0:
            lighter = min(_weight(kind, n_stats, left), _weight(kind, n_stats, right))
            if lighter < min_weight:
                continue
        if sign != 0 and not _in_order(kind, left, right, sign, bounds):
            continue
        score = _child(kind, n_stats, logs, left) + _child(kind, n_stats, logs, right)
        if score > best:
            best, at = score, i
    return best, at


@njit(cache=True, nogil=True)
def _sides(rule, cell, order, first, last, m, gone, missing, whole, sign, bounds, work):
    """(score, last run on the left, missing left) over both sides for missing values.

    Where there are any, everything present may go left: the split after the last run.
    """
    zeros = work[2]
    beyond = m if missing and last == m - 1 else last
    score, at = _scan(rule, cell, order, first, beyond, whole, zeros, sign, bounds, work)
    if not missing:
        return score, at, False
    to_left, at_left = _scan(rule, cell, order, first, last, whole, gone, sign, bounds, work)
    if to_left > score or (to_left == score and at_left <= at):
        return to_left, at_left, True
    return score, at, False


@njit(cache=True, nogil=True)
def _keep(feature, code, cell, order, at, m, n_codes, gone, missing, missing_left, score, best):
    """Write down a split: runs order[0] ... order[at] go left; as bits, where there are bits."""
    left, bits, record = best.left, best.bits, best.record
    best.score[0] = score
    for c in range(left.shape[0]):
        left[c] = gone[c] if missing_left else 0
        for i in range(at + 1):
            left[c] += cell[order[i], c]
    record[FEATURE] = feature
    record[BIN] = code[at]
    record[ABOVE] = code[at + 1] if at + 1 < m else n_codes
    record[MISSING_LEFT], record[HAS_MISSING] = missing_left, missing
    bits[:] = 0


@njit(cache=True, nogil=True)
def _keep_subset(code, order, at, best):
    best.record[BIN], best.record[ABOVE] = -1, 0
    for i in range(at + 1):
        b = code[order[i]]
        best.bits[b // 64] |= np.uint64(1) << np.uint64(b % 64)


@njit(cache=True, nogil=True)
def _response(rule, sums, k):
    """Mean response of a category: share of class k, or G_k / H_k."""
    if rule.kind >= SQUARED:
        return float(sums[rule.n_stats // 2 + k]) / float(sums[k]) if sums[k] > 0 else 0.0
    return float(sums[k]) / float(_weight(rule.kind, rule.n_stats, sums))


@njit(cache=True, nogil=True)
def _try_threshold(rule, feature, code, cell, m, gone, missing, node, n_codes, order, work, best):
    first, last = 0, m - 1
    for i in range(m):
        order[i] = i
    if rule.random and m > 1:
        span = np.uint64(code[m - 1] - code[0])
        cut = code[0] + np.int64(drawn(node.key, feature, 0) % span)
        while code[first + 1] <= cut:
            first += 1
        last = first + 1
    score, at, missing_left = _sides(
        rule, cell, order, first, last, m, gone, missing, node.whole, rule.signs[feature],
        node.bounds, work,
    )  # fmt: skip
    if score > best.score[0]:
        _keep(feature, code, cell, order, at, m, n_codes, gone, missing, missing_left, score, best)


@njit(cache=True, nogil=True)
def _try_subset(rule, feature, code, cell, m, gone, missing, node, order, work, best):
    """Prefixes of the categories in some orders: by response, by chance, or one category first."""
    outputs = rule.n_stats // 2 if rule.kind >= SQUARED else rule.n_stats
    tried = 1 if rule.random or (outputs == 2 and rule.kind < SQUARED) else outputs
    keys = np.empty(m)
    for k in range(m if rule.one_category and not rule.random else tried):
        first, last = 0, m - 1
        for i in range(m):
            if rule.random:
                keys[i] = float(drawn(node.key, feature, i + 1) >> np.uint64(11))
            elif rule.one_category:
                keys[i] = 0.0 if i == k else 1.0
            else:
                keys[i] = _response(rule, cell[i], outputs - 1 - k)
        order[:m] = np.argsort(keys, kind="mergesort")
        if rule.one_category:
            last = min(1, last)
        elif rule.random and m > 1:
            first = np.int64(drawn(node.key, feature, 0) % np.uint64(m - 1))
            last = first + 1
        score, at, missing_left = _sides(
            rule, cell, order, first, last, m, gone, missing, node.whole, 0, node.bounds, work
        )
        if score > best.score[0]:
            _keep(feature, code, cell, order, at, m, 0, gone, missing, missing_left, score, best)
            _keep_subset(code, order, at, best)


class Node(NamedTuple):
    """What try_feature needs to know of a node."""

    whole: np.ndarray
    bounds: np.ndarray
    key: int


@njit(cache=True, nogil=True)
def try_feature(rule, feature, code, cell, m, gone, node, n_codes, order, work, best):
    """Offer a feature's runs code[:m], cell[:m, column]; `gone` are the sums of missing values.

    `work` [3, column] holds zeros in its last row, and keeps them.
    """
    missing = False
    for c in range(gone.shape[0]):
        missing = missing or gone[c] != 0
    if m == 0 or (m == 1 and not missing):
        return
    if rule.categorical[feature]:
        _try_subset(rule, feature, code, cell, m, gone, missing, node, order, work, best)
    else:
        _try_threshold(
            rule, feature, code, cell, m, gone, missing, node, n_codes, order, work, best
        )


@njit(cache=True, nogil=True)
def runs_of(sums, code, cell):
    """The codes of a feature's sums [code, column] that occur, with their sums; how many."""
    m = 0
    for b in range(sums.shape[0] - 1):
        occurs = False
        for c in range(sums.shape[1]):
            cell[m, c] = sums[b, c]
            occurs = occurs or sums[b, c] != 0
        code[m] = b
        m += occurs
    return m


@njit(cache=True, nogil=True)
def search(rule, sums, features, wholes, bounds, keys, score, record, left, subset):
    """Best split of every node from sums [node, tried, code, column] of features [node, tried]."""
    width, columns = sums.shape[2], sums.shape[3]
    code, cell = np.empty(width, dtype=np.int64), np.empty((width, columns), dtype=np.int64)
    order, work = np.empty(width, dtype=np.int64), np.zeros((3, columns), dtype=np.int64)
    for i in range(sums.shape[0]):
        node = Node(wholes[i], bounds[i], keys[i])
        best = Best(score[i : i + 1], record[i], left[i], subset[i])
        for j in range(sums.shape[1]):
            m = runs_of(sums[i, j], code, cell)
            gone = sums[i, j, width - 1]
            try_feature(
                rule, features[i, j], code, cell, m, gone, node, width - 1, order, work, best
            )


@njit(cache=True, nogil=True)
def gains(rule, sums, nodes, score, rounding, out):
    """What each split adds to the score of its node; 0 where it is but a share `rounding` of it."""
    for i in range(nodes.shape[0]):
        if score[i] == NEVER:
            out[i] = NEVER
            continue
        before = _child(rule.kind, rule.n_stats, rule.logs, sums[nodes[i]])
        gain = score[i] - before
        out[i] = gain if abs(gain) > rounding * abs(before) else 0.0


class Found:
    """The arrays that compiled code writes the best splits of a frontier into."""

    def __init__(self, n: int, rule: Rule, n_stats: int, width: int) -> None:
        columns = n_stats + (rule.min_rows > 1)
        self.n_stats = n_stats
        self.score = np.full(n, NEVER)
        self.record = np.full((n, RECORD), -1, dtype=np.int64)
        self.left = np.zeros((n, columns), dtype=np.int64)
        self.subset = np.zeros((n, subset_words(rule.categorical, width)), dtype=np.uint64)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.score, self.record, self.left, self.subset

    def take(self, other: Found, at: np.ndarray) -> None:
        """The splits of other nodes `at`."""
        for own, array in zip(self.arrays, other.arrays, strict=True):
            own[at] = array[at]

    def splits(self) -> Splits:
        feature, last_bin, above, missing_left, has_missing = np.ascontiguousarray(self.record.T)
        return Splits(
            self.score, feature, last_bin, above, missing_left == 1, has_missing == 1, self.subset,
            np.ascontiguousarray(self.left[:, : self.n_stats]),
        )  # fmt: skip


def wholes_of(sums: np.ndarray, n_rows: np.ndarray, rule: Rule) -> np.ndarray:
    """Sums of the nodes [node, column], with their rows where rows are counted."""
    return sums if rule.min_rows == 1 else np.concatenate([sums, n_rows[:, None]], axis=1)
