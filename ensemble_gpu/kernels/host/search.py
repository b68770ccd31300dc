"""The best split of a node from its sums per code: kernels/host/criteria.py over all candidates.

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

from ensemble_gpu.kernels.host.criteria import child_score, in_order, total_weight, x_log_x
from ensemble_gpu.kernels.host.hashing import drawn
from ensemble_gpu.kernels.host.records import Best, keep, keep_subset
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    EXACT_WEIGHT,
    GINI,
    NEVER,
    VARIANCE,
)


@njit(cache=True, nogil=True)
def _scan_pairs(rule, cell, order, first, last, whole, l0, l1):
    """`_scan` for two statistics without conditions: GINI or VARIANCE."""
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
    if free and n_stats == 2 and kind in (GINI, VARIANCE):
        return _scan_pairs(rule, cell, order, first, last, whole, start[0], start[1])
    left, right, columns = work[0], work[1], cell.shape[1]
    left[:] = start
    if kind < VARIANCE and sign == 0 and min_weight == 0:
        weight = total_weight(kind, n_stats, whole)
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
            lighter = min(total_weight(kind, n_stats, left), total_weight(kind, n_stats, right))
            if lighter < min_weight:
                continue
        if sign != 0 and not in_order(kind, left, right, sign, bounds):
            continue
        score = child_score(kind, n_stats, logs, left) + child_score(kind, n_stats, logs, right)
        if score > best:
            best, at = score, i
    return best, at


@njit(cache=True, nogil=True)
def _sides(rule, cell, order, first, last, m, missing_sums, missing, whole, sign, bounds, work):
    """(score, last run on the left, missing left) over both sides for missing values.

    Where there are any, everything present may go left: the split after the last run.
    """
    zeros = work[2]
    beyond = m if missing and last == m - 1 else last
    score, at = _scan(rule, cell, order, first, beyond, whole, zeros, sign, bounds, work)
    if not missing:
        return score, at, False
    to_left, at_left = _scan(
        rule, cell, order, first, last, whole, missing_sums, sign, bounds, work
    )
    if to_left > score or (to_left == score and at_left <= at):
        return to_left, at_left, True
    return score, at, False


@njit(cache=True, nogil=True)
def _response(rule, sums, k):
    """Mean response of a category: share of class k, or G_k / H_k."""
    if rule.kind >= VARIANCE:
        return float(sums[rule.n_stats // 2 + k]) / float(sums[k]) if sums[k] > 0 else 0.0
    return float(sums[k]) / float(total_weight(rule.kind, rule.n_stats, sums))


@njit(cache=True, nogil=True)
def _try_threshold(
    rule, feature, code, cell, m, missing_sums, missing, node, n_codes, order, work, best
):
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
        rule, cell, order, first, last, m, missing_sums, missing, node.whole, rule.signs[feature],
        node.bounds, work,
    )  # fmt: skip
    if score > best.score[0]:
        keep(
            feature,
            code,
            cell,
            order,
            at,
            m,
            n_codes,
            missing_sums,
            missing,
            missing_left,
            score,
            best,
        )


@njit(cache=True, nogil=True)
def _try_subset(rule, feature, code, cell, m, missing_sums, missing, node, order, work, best):
    """Prefixes of the categories in some orders: by response, by chance, or one category first."""
    outputs = rule.n_stats // 2 if rule.kind >= VARIANCE else rule.n_stats
    tried = 1 if rule.random or (outputs == 2 and rule.kind < VARIANCE) else outputs
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
            rule,
            cell,
            order,
            first,
            last,
            m,
            missing_sums,
            missing,
            node.whole,
            0,
            node.bounds,
            work,
        )
        if score > best.score[0]:
            keep(
                feature,
                code,
                cell,
                order,
                at,
                m,
                0,
                missing_sums,
                missing,
                missing_left,
                score,
                best,
            )
            keep_subset(code, order, at, best)


class Node(NamedTuple):
    """What try_feature needs to know of a node."""

    whole: np.ndarray
    bounds: np.ndarray
    key: int


@njit(cache=True, nogil=True)
def try_feature(rule, feature, code, cell, m, missing_sums, node, n_codes, order, work, best):
    """Offer a feature's runs code[:m], cell[:m, column]; `missing_sums`: of missing values.

    `work` [3, column] holds zeros in its last row, and keeps them.
    """
    missing = False
    for c in range(missing_sums.shape[0]):
        missing = missing or missing_sums[c] != 0
    if m == 0 or (m == 1 and not missing):
        return
    if rule.categorical[feature]:
        _try_subset(rule, feature, code, cell, m, missing_sums, missing, node, order, work, best)
    else:
        _try_threshold(
            rule, feature, code, cell, m, missing_sums, missing, node, n_codes, order, work, best
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
            missing_sums = sums[i, j, width - 1]
            try_feature(
                rule,
                features[i, j],
                code,
                cell,
                m,
                missing_sums,
                node,
                width - 1,
                order,
                work,
                best,
            )
