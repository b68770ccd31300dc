"""The best split among the runs of a feature, of nodes with two statistics.

What kernels/host/search.py would find, in the same order and with the same operations. Conditions
are looked at only where a score is the best so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.pair_runs import CODE, FIRST, ROWS_OF, SECOND, last_run
from ensemble_gpu.kernels.host.criteria import (
    gini_of_pairs,
    pair_score,
    two_class_score,
    variance_of_pairs,
)
from ensemble_gpu.kernels.host.records import (
    ABOVE,
    BIN,
    FEATURE,
    HAS_MISSING,
    MISSING_LEFT,
    Best,
)
from ensemble_gpu.kernels.host.search import Node, try_feature
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.tree_protocol import ENTROPY, ERROR, GINI, VARIANCE

VECTOR = 8  # runs from which scores are worth a loop of their own


class PairNode(NamedTuple):
    """A node as `offer` takes it: its sums and rows, and what monotone ancestors allow."""

    first: int
    second: int
    rows: int
    low: float
    high: float


@inner(forceinline=True)
def pair_node(batch, i):
    """Node i of a batch."""
    whole, low, high, n = batch.whole, -np.inf, np.inf, np.int64(0)
    if whole.shape[1] > 2:
        n = whole[i, 2]
    if batch.bounds.shape[0] > 0:
        low, high = batch.bounds[i, 0], batch.bounds[i, 1]
    return PairNode(whole[i, 0], whole[i, 1], n, low, high)


@inner(forceinline=True)
def _response(kind, l2, x, y):
    """`mean_response` of two sums."""
    below = x if kind >= VARIANCE else x + y
    return float(y) / (float(below) + l2) if below > 0 else 0.0


class Judge(NamedTuple):
    """What `offer` needs of a rule: a function that is handed all of it takes longer than a score.

    `exact` as in Counting.
    """

    kind: int
    l2: float
    exact: bool
    counted: bool
    min_rows: int
    min_weight: int
    logs: np.ndarray


@inner
def judge_of(rule, count):
    return Judge(
        rule.kind, rule.l2, count.exact, rule.counted, rule.min_rows, rule.min_weight, rule.logs
    )


@inner
def _allowed(judge, sign, node, x, y, n):
    """Whether a left child with sums x, y of n rows keeps the conditions, and the right one."""
    x_right, y_right = node.first - x, node.second - y
    if judge.counted and min(n, node.rows - n) < judge.min_rows:
        return False
    if judge.min_weight > 0:
        classes = judge.kind < VARIANCE
        left, right = x + (y if classes else 0), x_right + (y_right if classes else 0)
        if min(left, right) < judge.min_weight:
            return False
    if sign != 0:
        a = _response(judge.kind, judge.l2, x, y)
        b = _response(judge.kind, judge.l2, x_right, y_right)
        return node.low <= min(a, b) and max(a, b) <= node.high and (b - a) * sign >= 0.0
    return True


@inner
def _score(judge, l0, l1, r0, r1):
    """The score of a split with two statistics."""
    if judge.kind in (ENTROPY, ERROR):
        return two_class_score(judge.kind, judge.logs, l0, l1, r0, r1)
    return pair_score(judge.kind, judge.l2, l0, l1, r0, r1)


@inner
def _write_scores(judge, node, firsts, seconds, n, scores):
    """scores[4, :n] of the splits behind runs 0 ... n - 1.

    Floats first, then scores without a branch: the divisions run side by side.
    """
    A, B, C, D, out = scores[0], scores[1], scores[2], scores[3], scores[4]
    t0, t1, kind, l2 = node.first, node.second, judge.kind, judge.l2
    if kind in (ENTROPY, ERROR):
        logs = judge.logs
        for i in range(n):
            l0, l1 = firsts[i], seconds[i]
            out[i] = two_class_score(kind, logs, l0, l1, t0 - l0, t1 - l1)
        return
    x, y = float(t0), float(t1)
    for i in range(n):
        A[i], B[i] = float(firsts[i]), float(seconds[i])
    if judge.exact:
        for i in range(n):
            C[i], D[i] = x - A[i], y - B[i]
    else:
        for i in range(n):
            C[i], D[i] = float(t0 - firsts[i]), float(t1 - seconds[i])
    if kind == GINI:
        for i in range(n):
            out[i] = gini_of_pairs(A[i], B[i], C[i], D[i])
    else:
        for i in range(n):
            out[i] = variance_of_pairs(A[i], B[i], C[i], D[i], l2)


@inner
def _scan(judge, sign, runs, m, node, g0, g1, gn, missing, best, scores):
    """(score, last run on the left, missing left) of the best split above `best`, else -1 runs."""
    at, to_left, t0, t1 = -1, False, node.first, node.second
    firsts, seconds, rows = runs[FIRST], runs[SECOND], runs[ROWS_OF]
    bound = judge.counted or judge.min_weight > 0 or sign != 0
    if not missing and m > VECTOR:
        _write_scores(judge, node, firsts, seconds, m - 1, scores)
        out = scores[4]
        for i in range(m - 1):
            if out[i] > best and (
                not bound or _allowed(judge, sign, node, firsts[i], seconds[i], rows[i])
            ):
                best, at = out[i], i
        return best, at, False
    # with missing values each cut has two sides for them, left before right; the last cut has all
    # other values on the left
    for k in range(2 * m if missing else m - 1):
        i, with_missing = (k // 2, k % 2 == 0) if missing else (k, False)
        if with_missing and i == m - 1:
            continue
        x, y, n = firsts[i], seconds[i], rows[i]
        if with_missing:
            x, y, n = x + g0, y + g1, n + gn
        score = _score(judge, x, y, t0 - x, t1 - y)
        if score > best and (not bound or _allowed(judge, sign, node, x, y, n)):
            best, at, to_left = score, i, with_missing
    return best, at, to_left


@inner
def _offer_categories(rule, f, runs, m, whole, bounds, key, width, i, best, found, general):
    """`offer` of a feature whose codes are categories."""
    missing, columns = 0, whole.shape[0]
    for c in range(columns):
        general.missing_sums[c] = 0
    if m > 0 and runs[CODE, m - 1] == width - 1:
        missing = 1
        for c in range(columns):
            general.missing_sums[c] = last_run(runs, m, c)
    for k in range(m - missing):
        general.code[k] = runs[CODE, k]
        for c in range(columns):
            general.cell[k, c] = last_run(runs, k + 1, c)
    found.score[i] = best
    place = Best(found.score[i : i + 1], found.record[i], found.left[i], found.subset[i])
    try_feature(rule, f, general, m - missing, Node(whole, bounds, key), width - 1, place)
    return found.score[i]


@inner
def offer(judge, sign, f, runs, scores, m, node, width, i, best, found):
    """Offer the m runs of feature f to node i; returns its best score."""
    g0, g1, gn = np.int64(0), np.int64(0), np.int64(0)
    missing = m > 0 and runs[CODE, m - 1] == width - 1
    if missing:
        g0, g1, gn = last_run(runs, m, 0), last_run(runs, m, 1), last_run(runs, m, 2)
        m -= 1
    if m == 0 or (m == 1 and not missing):
        return best
    score, at, to_left = _scan(judge, sign, runs, m, node, g0, g1, gn, missing, best, scores)
    if at < 0:
        return best
    record, left = found.record, found.left
    record[i, FEATURE], record[i, BIN] = f, runs[CODE, at]
    record[i, ABOVE] = runs[CODE, at + 1] if at + 1 < m else width - 1
    record[i, MISSING_LEFT], record[i, HAS_MISSING] = to_left, missing
    left[i, 0] = runs[FIRST, at] + (g0 if to_left else np.int64(0))
    left[i, 1] = runs[SECOND, at] + (g1 if to_left else np.int64(0))
    for w in range(found.subset.shape[1]):
        found.subset[i, w] = 0
    return score


@inner(forceinline=True)
def offer_to(judge, rule, f, m, node, batch, own, width, i, best, found, work, general):
    """`offer` to entry `own` of a batch, whatever the codes of the feature are."""
    # the first condition is decided by the compiler, the second by the feature
    if general is not None:  # noqa: SIM102
        if rule.categorical[f]:
            return _offer_categories(
                rule, f, work.runs, m, batch.whole[own], batch.bounds[own], batch.key[own], width,
                i, best, found, general,
            )  # fmt: skip
    return offer(judge, rule.signs[f], f, work.runs, work.scores, m, node, width, i, best, found)
