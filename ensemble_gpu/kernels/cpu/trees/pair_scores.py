"""The best split among the runs of a feature, of nodes with two statistics.

What kernels/host/search.py would find, in the same order and with the same operations. Conditions
are looked at only where a score is the best so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.pair_runs import (
    CODE,
    FIRST,
    ROWS_OF,
    SECOND,
    count_rows,
    last_run,
)
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
)
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.tree_protocol import ENTROPY, ERROR, GINI, NEVER, VARIANCE

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
def response(kind, l2, x, y):
    """`mean_response` of two sums."""
    below = x if kind >= VARIANCE else x + y
    return float(y) / (float(below) + l2) if below > 0 else 0.0


class Judge(NamedTuple):
    """What `offer` needs of a rule: a function that is handed all of it takes longer than a score.

    `exact` and `sure` as in Counting.
    """

    kind: int
    l2: float
    exact: bool
    sure: int
    counted: bool
    min_rows: int
    min_weight: int
    logs: np.ndarray


@inner
def judge_of(rule, count):
    return Judge(
        rule.kind, rule.l2, count.exact, np.int64(count.sure), rule.counted, rule.min_rows,
        rule.min_weight, rule.logs,
    )  # fmt: skip


@inner
def counts_rows(judge):
    """A judge for runs whose rows are counted."""
    return Judge(
        judge.kind, judge.l2, judge.exact, np.int64(0), judge.counted, judge.min_rows,
        judge.min_weight, judge.logs,
    )  # fmt: skip


@inner(forceinline=True)
def _enough(judge, node, x, n):
    """Whether both children have rows enough, the left one with first sum x and n rows."""
    if judge.sure > 0:
        return min(x, node.first - x) >= judge.sure
    return min(n, node.rows - n) >= judge.min_rows


@inner
def _allowed(judge, sign, node, x, y):
    """Whether a left child with sums x, y and the right one keep the conditions but for rows."""
    x_right, y_right = node.first - x, node.second - y
    if judge.min_weight > 0:
        classes = judge.kind < VARIANCE
        left, right = x + (y if classes else 0), x_right + (y_right if classes else 0)
        if min(left, right) < judge.min_weight:
            return False
    if sign != 0:
        a = response(judge.kind, judge.l2, x, y)
        b = response(judge.kind, judge.l2, x_right, y_right)
        return node.low <= min(a, b) and max(a, b) <= node.high and (b - a) * sign >= 0.0
    return True


@inner
def _score(judge, l0, l1, r0, r1):
    """The score of a split with two statistics."""
    if judge.kind in (ENTROPY, ERROR):
        return two_class_score(judge.kind, judge.logs, l0, l1, r0, r1)
    return pair_score(judge.kind, judge.l2, l0, l1, r0, r1)


@inner
def _write_scores(judge, node, firsts, seconds, g0, g1, n, scores, out):
    """out[:n]: scores of the splits behind runs 0 ... n - 1, with g0 and g1 on the left as well.

    Floats first, then scores without a branch: the divisions run side by side.
    """
    A, B, C, D = scores[0], scores[1], scores[2], scores[3]
    t0, t1, kind, l2 = node.first, node.second, judge.kind, judge.l2
    if kind in (ENTROPY, ERROR):
        logs = judge.logs
        for i in range(n):
            l0, l1 = firsts[i] + g0, seconds[i] + g1
            out[i] = two_class_score(kind, logs, l0, l1, t0 - l0, t1 - l1)
        return
    x, y = float(t0), float(t1)
    for i in range(n):
        A[i], B[i] = float(firsts[i] + g0), float(seconds[i] + g1)
    if judge.exact:
        for i in range(n):
            C[i], D[i] = x - A[i], y - B[i]
    else:
        for i in range(n):
            C[i], D[i] = float(t0 - (firsts[i] + g0)), float(t1 - (seconds[i] + g1))
    if kind == GINI:
        for i in range(n):
            out[i] = gini_of_pairs(A[i], B[i], C[i], D[i])
    else:
        for i in range(n):
            out[i] = variance_of_pairs(A[i], B[i], C[i], D[i], l2)


@inner
def scan(judge, sign, runs, m, node, g0, g1, gn, missing, best, scores):
    """The best split above `best`: (score, last run on the left, missing left, doubt).

    -1 runs: there is none. With missing values each cut has two sides for them, left before right;
    the last cut has all other values on the left. `doubt` is the score of the best split that was
    passed over because its children may have too few rows.
    """
    at, to_left, doubt = -1, False, NEVER
    firsts, seconds, rows = runs[FIRST], runs[SECOND], runs[ROWS_OF]
    bound, last = judge.min_weight > 0 or sign != 0, m if missing else m - 1
    right, left, best_of, vector = scores[4], scores[5], scores[4], m > VECTOR
    if vector:
        zero = np.int64(0)
        _write_scores(judge, node, firsts, seconds, zero, zero, last, scores, right)
    if vector and missing:
        best_of = scores[6]
        _write_scores(judge, node, firsts, seconds, g0, g1, last - 1, scores, left)
        left[last - 1] = NEVER
        for i in range(last):
            best_of[i] = max(left[i], right[i])
    for i in range(last):
        if vector and best_of[i] <= best:
            continue
        for side in range(0 if missing and i < m - 1 else 1, 2):
            x, y, n = firsts[i], seconds[i], rows[i]
            if side == 0:
                x, y, n = x + g0, y + g1, n + gn
            if vector:
                score = left[i] if side == 0 else right[i]
            else:
                score = _score(judge, x, y, node.first - x, node.second - y)
            if score > best and (not bound or _allowed(judge, sign, node, x, y)):
                if not judge.counted or _enough(judge, node, x, n):
                    best, at, to_left = score, i, side == 0
                else:
                    doubt = max(doubt, score)
    return best, at, to_left, doubt


@inner
def offer(judge, sign, f, runs, scores, m, node, width, i, best, found, tally):
    """Offer the m runs of feature f to node i; returns its best score.

    `tally` (None: rows are counted) says where they are if it matters.
    """
    g0, g1, gn = np.int64(0), np.int64(0), np.int64(0)
    missing = m > 0 and runs[CODE, m - 1] == width - 1
    if missing:
        g0, g1, gn = last_run(runs, m, 0), last_run(runs, m, 1), last_run(runs, m, 2)
        m -= 1
    if m == 0 or (m == 1 and not missing):
        return best
    score, at, to_left, doubt = scan(judge, sign, runs, m, node, g0, g1, gn, missing, best, scores)
    # the first condition is decided by the compiler
    if tally is not None:  # noqa: SIM102
        if judge.sure > 0 and doubt > best and doubt >= score:
            count_rows(tally, f, m + missing, runs)
            gn = last_run(runs, m + missing, 2)
            score, at, to_left, _ = scan(
                counts_rows(judge), sign, runs, m, node, g0, g1, gn, missing, best, scores
            )
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
