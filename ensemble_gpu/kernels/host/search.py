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

from ensemble_gpu.kernels.host.criteria import (
    child_score,
    in_order,
    pair_score,
    scoring_of,
    total_weight,
    x_log_x,
)
from ensemble_gpu.kernels.host.hashing import draw
from ensemble_gpu.kernels.host.records import (
    Best,
    Found,
    batch_of,
    keep,
    keep_subset,
    runs_for,
    wholes_of,
)
from ensemble_gpu.kernels.host.sorting import sort_places
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    EXACT_WEIGHT,
    GINI,
    NEVER,
    VARIANCE,
    Frontier,
    SplitRule,
    Splits,
)


class Node(NamedTuple):
    """What `try_feature` needs to know of a node."""

    whole: np.ndarray
    bounds: np.ndarray
    key: int


@inner(inline="always")
def _scan_pairs(kind, l2, cell, order, first, last, whole, l0, l1):
    """`_scan` for two statistics without conditions: GINI or VARIANCE."""
    best, at = NEVER, np.int64(-1)
    for i in range(last):
        l0 += cell[order[i], 0]
        l1 += cell[order[i], 1]
        if i < first:
            continue
        score = pair_score(kind, l2, l0, l1, whole[0] - l0, whole[1] - l1)
        if score > best:
            best, at = score, i
    return best, at


@inner(inline="always")
def _scan_classes(kind, logs, cell, order, first, last, whole, left, least):
    """`_scan` for classes with rows enough on both sides (`least`; 0: nobody counts): one loop."""
    best, at = NEVER, np.int64(-1)
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


@inner
def _scan(rule, runs, first, last, start, sign, node):
    """(score, last run on the left) of the best split after one of the runs first ... last - 1.

    `start` is what is on the left before them: the sums of missing values, or zeros.
    """
    # what is used in the loop is named here: a rule handed on costs more than a score
    kind, n_stats, logs, counted = rule.kind, rule.n_stats, rule.logs, rule.counted
    min_rows, min_weight, l2, whole = rule.min_rows, rule.min_weight, rule.l2, node.whole
    cell, order = runs.cell, runs.order
    free = not counted and sign == 0 and min_weight == 0
    if free and n_stats == 2 and kind in (GINI, VARIANCE):
        return _scan_pairs(kind, l2, cell, order, first, last, whole, start[0], start[1])
    left, right, columns = runs.work[0], runs.work[1], cell.shape[1]
    for c in range(columns):
        left[c] = start[c]
    if kind < VARIANCE and sign == 0 and min_weight == 0:
        weight = total_weight(kind, n_stats, whole)
        if kind != GINI or (n_stats > 2 and weight < EXACT_WEIGHT):
            least = min_rows if counted else np.int64(0)
            return _scan_classes(kind, logs, cell, order, first, last, whole, left, least)
    best, at = NEVER, np.int64(-1)
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
        if sign != 0 and not in_order(kind, l2, left, right, sign, node.bounds):
            continue
        score = child_score(kind, n_stats, l2, logs, left)
        score += child_score(kind, n_stats, l2, logs, right)
        if score > best:
            best, at = score, i
    return best, at


@inner
def _sides(rule, runs, first, last, m, missing, sign, node):
    """(score, last run on the left, missing left) over both sides for missing values.

    Where there are any, everything present may go left: the split after the last run.
    """
    beyond = m if missing and last == m - 1 else last
    score, at = _scan(rule, runs, first, beyond, runs.work[2], sign, node)
    if not missing:
        return score, at, False
    to_left, at_left = _scan(rule, runs, first, last, runs.missing_sums, sign, node)
    if to_left > score or (to_left == score and at_left <= at):
        return to_left, at_left, True
    return score, at, False


@inner(inline="always")
def _response(rule, sums, k):
    """Mean response of a category: share of class k, or G_k / H_k."""
    if rule.kind >= VARIANCE:
        return float(sums[rule.n_stats // 2 + k]) / float(sums[k]) if sums[k] > 0 else 0.0
    return float(sums[k]) / float(total_weight(rule.kind, rule.n_stats, sums))


@inner(inline="always")
def _try_threshold(rule, feature, runs, m, missing, node, n_codes, best):
    first, last, code = np.int64(0), m - 1, runs.code
    for i in range(m):
        runs.order[i] = i
    if rule.random and m > 1:
        span = np.uint64(code[m - 1] - code[0])
        cut = code[0] + np.int64(draw(node.key, np.uint64(feature), np.uint64(0)) % span)
        while code[first + 1] <= cut:
            first += 1
        last = first + 1
    score, at, missing_left = _sides(rule, runs, first, last, m, missing, rule.signs[feature], node)
    if score > best.score[0]:
        keep(feature, runs, m, at, n_codes, missing, missing_left, score, best)


@inner
def _try_subset(rule, feature, runs, m, missing, node, best):
    """Prefixes of the categories in some orders: by response, by chance, or one category first."""
    outputs = rule.n_stats // 2 if rule.kind >= VARIANCE else rule.n_stats
    tried = 1 if rule.random or (outputs == 2 and rule.kind < VARIANCE) else outputs
    keys, f = np.empty(m, dtype=np.float64), np.uint64(feature)
    other = np.empty(m, dtype=np.int64)
    for k in range(m if rule.one_category and not rule.random else tried):
        first, last = np.int64(0), m - 1
        for i in range(m):
            runs.order[i] = i
            if rule.random:
                keys[i] = float(draw(node.key, f, np.uint64(i + 1)) >> np.uint64(11))
            elif rule.one_category:
                keys[i] = 0.0 if i == k else 1.0
            else:
                keys[i] = _response(rule, runs.cell[i], outputs - 1 - k)
        sort_places(keys, runs.order, np.int64(0), m, other)
        if rule.one_category:
            last = min(np.int64(1), last)
        elif rule.random and m > 1:
            first = np.int64(draw(node.key, f, np.uint64(0)) % np.uint64(m - 1))
            last = first + 1
        score, at, missing_left = _sides(rule, runs, first, last, m, missing, np.int64(0), node)
        if score > best.score[0]:
            keep(feature, runs, m, at, np.int64(0), missing, missing_left, score, best)
            keep_subset(runs, at, best)


@inner
def try_feature(rule, feature, runs, m, node, n_codes, best):
    """Offer the first m runs of a feature."""
    missing = False
    for c in range(runs.missing_sums.shape[0]):
        missing = missing or runs.missing_sums[c] != 0
    if m == 0 or (m == 1 and not missing):
        return
    if rule.categorical[feature]:
        _try_subset(rule, feature, runs, m, missing, node, best)
    else:
        _try_threshold(rule, feature, runs, m, missing, node, n_codes, best)


@inner
def runs_of(sums, runs):
    """Make runs of a feature's sums [code, column]; how many. The last code is the missing one."""
    m, last, code, cell = np.int64(0), sums.shape[0] - 1, runs.code, runs.cell
    for b in range(last):
        occurs = False
        for c in range(sums.shape[1]):
            cell[m, c] = sums[b, c]
            occurs = occurs or sums[b, c] != 0
        code[m] = b
        m += occurs
    for c in range(sums.shape[1]):
        runs.missing_sums[c] = sums[last, c]
    return m


@kernel
def search(rule, sums, batch, found, runs):
    """Best split of every node from sums [node, tried, code, column] of features [node, tried]."""
    n_codes = sums.shape[2] - 1
    for i in range(sums.shape[0]):
        node = Node(batch.whole[i], batch.bounds[i], batch.key[i])
        best = Best(found.score[i : i + 1], found.record[i], found.left[i], found.subset[i])
        for j in range(sums.shape[1]):
            m = runs_of(sums[i, j], runs)
            try_feature(rule, batch.features[i, j], runs, m, node, n_codes, best)


def found_in(rule: SplitRule, frontier: Frontier, sums: np.ndarray, n_rows: np.ndarray) -> Found:
    """`choose` before its splits are read."""
    n, tried, width, columns = sums.shape
    n_stats, none = frontier.sums.shape[1], np.zeros(0, dtype=np.int64)
    features = frontier.features
    if features is None:
        features = np.tile(np.arange(tried), (n, 1))
    found = Found(n, rule, n_stats, width)
    batch = batch_of(frontier, features, none, none, wholes_of(frontier.sums, n_rows, rule))
    search(scoring_of(rule, n_stats), sums, batch, found.arrays, runs_for(width, columns))
    return found


def choose(rule: SplitRule, frontier: Frontier, sums: np.ndarray, n_rows: np.ndarray) -> Splits:
    """The best split of every node, from sums [node, tried feature, code, column] (`Grower.sums`).

    `n_rows` are the rows of the nodes. This is what `Grower.split` finds; but sums and rows of
    several parts of a sample may be added up before.
    """
    return found_in(rule, frontier, sums, n_rows).splits()
