"""The best splits of many nodes with two statistics: the usual case, made fast.

Two classes, or weight and target with VARIANCE: what kernels/host/search.py would find, in the same
order and with the same operations. Most nodes of a tree have few rows, so a node costs
little besides them: up to SMALL rows are sorted by their codes, more are added up by code; either
way the codes that occur follow with their sums (the runs). Conditions are looked at only where a
score is the best so far.

Where rows are counted the first statistic and the count are in one integer, x 2^shift + rows
(`Counting`): one addition serves both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import FEATURES, ROWS, SMALL, WIDE, Sorting, sorting_for
from ensemble_gpu.kernels.cpu.trees.sorting import SHIFT, sort_rows, sorted_keys
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
    Runs,
    runs_for,
)
from ensemble_gpu.kernels.host.search import Node, try_feature
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import ENTROPY, ERROR, GINI, VARIANCE

VECTOR = 8  # runs from which scores are worth a loop of their own


# Rows of the runs [4, run]: the codes that occur in a node, the two sums up to and including each,
# and how many rows that are (0 where nobody counts).
CODE, FIRST, SECOND, ROWS_OF = range(4)


class Counting(NamedTuple):
    """x 2^shift + one: the first statistic of a row and the row; `one` is 0 where nobody counts.

    `exact`: no sum has more digits than a float, whose differences are then exact.
    """

    shift: int
    one: int
    exact: bool


UNCOUNTED = Counting(0, 0, False)


def counting(first: int, second: int, n_rows: int, counted: bool) -> Counting | None:
    """For n rows with statistics of up to `first` and `second`.

    None: the first statistic and the count do not fit in one integer.
    """
    bits, shift = (first * n_rows).bit_length(), n_rows.bit_length() if counted else 0
    exact = max(bits, (second * n_rows).bit_length()) <= 53
    return Counting(shift, int(counted), exact) if bits + shift < 63 else None


class PairWork(NamedTuple):
    """Scratch arrays of `split_pairs`: `sums` and `seen` are zero before and after.

    `words` is the memory of `seen`, eight codes at once; `scores` [5, run] is what scores are made
    of, and they; `keys` and `other` are for nodes of which more than SMALL rows are sorted.
    """

    sums: np.ndarray
    seen: np.ndarray
    words: np.ndarray
    runs: np.ndarray
    scores: np.ndarray
    sorting: Sorting
    keys: np.ndarray
    other: np.ndarray


def work_for(codes: np.ndarray, width: int, largest: int) -> PairWork:
    """For nodes of up to `largest` rows."""
    wide = width > WIDE
    n_words, long = (0, largest) if wide else (-(-width // 8), 0)
    seen = np.zeros(FEATURES * 8 * n_words, dtype=np.uint8)
    n_runs = max(8 * n_words, long, SMALL) + 1
    return PairWork(
        np.zeros(FEATURES * 16 * n_words, dtype=np.int64), seen, seen.view(np.uint64),
        np.empty((4, n_runs), dtype=np.int64), np.empty((5, n_runs)), sorting_for(codes),
        np.empty(long, dtype=np.uint64), np.empty(long, dtype=np.uint64),
    )  # fmt: skip


@inner(forceinline=True)
def pair(values, t):
    """A row's two moments, which may be packed in one integer (`Engine.moments`)."""
    if values.shape[1] == 2:
        return values[t, 0], values[t, 1]
    low = values[t, 0] & np.int64(0xFFFFFFFF)
    return low, (values[t, 0] - low) >> np.int64(32)


def works_for(codes: np.ndarray, width: int, largest: int, workers: int) -> PairWork:
    """Those of several workers, one after the other along the first axis."""
    work = work_for(codes, width, largest)

    def several(array: np.ndarray) -> np.ndarray:
        return np.repeat(array[None], workers, axis=0)

    sorting = Sorting(*(several(a) for a in work.sorting))
    seen = several(work.seen)
    others = {name: several(getattr(work, name)) for name in ("sums", "runs", "scores")}
    others |= {name: several(getattr(work, name)) for name in ("keys", "other")}
    return PairWork(seen=seen, words=seen.view(np.uint64), sorting=sorting, **others)


def generals_for(width: int, columns: int, workers: int) -> Runs:
    """Scratch arrays for categories, of several workers."""
    return Runs(*(np.repeat(a[None], workers, axis=0) for a in runs_for(width, columns)))


@inner
def work_of(works, worker):
    """The scratch arrays of a worker."""
    sorting = works.sorting
    return PairWork(
        works.sums[worker], works.seen[worker], works.words[worker], works.runs[worker],
        works.scores[worker],
        Sorting(sorting.keys[worker], sorting.places[worker], sorting.rank[worker]),
        works.keys[worker], works.other[worker],
    )  # fmt: skip


@inner
def general_of(generals, worker):
    """The scratch arrays of a worker for categories; None: there are none."""
    if generals is None:
        return None
    return Runs(
        generals.code[worker], generals.cell[worker], generals.missing_sums[worker],
        generals.order[worker], generals.work[worker],
    )  # fmt: skip


class PairNode(NamedTuple):
    """A node as `offer` takes it: its sums and rows, and what monotone ancestors allow."""

    first: int
    second: int
    rows: int
    low: float
    high: float


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


@inner(forceinline=True)
def _sorted_runs(label, values, a, n, keys, shift, low, one, runs):
    """Runs of rows that are sorted: a key is (code - low) 2^shift + place; how many."""
    classes, m, last, mask = label.shape[0] > 0, -1, np.int64(-1), (1 << shift) - 1
    first, second, rows = np.int64(0), np.int64(0), np.int64(0)
    for k in range(n):
        own, t = (np.int64(keys[k]) >> shift) + low, a + (np.int64(keys[k]) & mask)
        if classes:
            w = values[t, 0]
            y = w if label[t] != 0 else np.int64(0)
            x = w - y
        else:
            x, y = pair(values, t)
        m += own != last
        first += x
        second += y
        rows += one
        runs[CODE, m], runs[FIRST, m], runs[SECOND, m], runs[ROWS_OF, m] = own, first, second, rows
        last = own
    m += 1
    return m if classes or one == 1 else _without_zeros(runs, m)


@inner(forceinline=True)
def _without_zeros(runs, n):
    """Runs that add up to nothing count as absent, as they do in sums by code."""
    m, before_x, before_y = 0, np.int64(0), np.int64(0)
    for k in range(n):
        x, y = runs[FIRST, k], runs[SECOND, k]
        runs[CODE, m], runs[FIRST, m], runs[SECOND, m], runs[ROWS_OF, m] = runs[CODE, k], x, y, 0
        m += x != before_x or y != before_y
        before_x, before_y = x, y
    return m


@inner(forceinline=True)
def _add(codes, order, label, values, a, b, f, count, sums, base, seen, mark):
    """Add up rows a ... b - 1 by the code of feature f: sums[base + 2 code + statistic]."""
    if label.shape[0] > 0 and count.one == 0:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            sums[base + np.uint64(2) * code + np.uint64(label[t])] += values[t, 0]
    elif label.shape[0] > 0:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            at = base + np.uint64(2) * code
            w = values[t, 0]
            y = w if label[t] != 0 else np.int64(0)
            sums[at] += ((w - y) << count.shift) + 1
            sums[at + np.uint64(1)] += y
    else:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            at = base + np.uint64(2) * code
            x, y = pair(values, t)
            sums[at] += (x << count.shift) + count.one
            sums[at + np.uint64(1)] += y


@inner(forceinline=True)
def _added_runs(sums, base, words, word, n_words, count, runs):
    """Runs of a node that was added up, which is cleared; how many."""
    m, rows_mask = 0, (np.int64(1) << count.shift) - 1
    first, second = np.int64(0), np.int64(0)
    for w in range(n_words):
        if words[word + w] == 0:
            continue
        words[word + w] = 0
        for b in range(8 * w, 8 * w + 8):
            at = base + np.uint64(2 * b)
            x, y = sums[at], sums[at + np.uint64(1)]
            sums[at], sums[at + np.uint64(1)] = 0, 0
            first += x
            second += y
            runs[CODE, m], runs[FIRST, m], runs[SECOND, m] = b, first >> count.shift, second
            runs[ROWS_OF, m] = first & rows_mask
            m += x != 0 or y != 0
    return m


@inner(forceinline=True)
def kept_runs(cells, count, runs):
    """Runs of a feature's kept sums [code, 2]; how many."""
    m, rows_mask = np.int64(0), (np.int64(1) << count.shift) - 1
    first, second = np.int64(0), np.int64(0)
    codes, firsts, seconds, rows = runs[CODE], runs[FIRST], runs[SECOND], runs[ROWS_OF]
    for b in range(cells.shape[0]):
        x, y = cells[b, 0], cells[b, 1]
        first += x
        second += y
        codes[m], firsts[m], seconds[m] = b, first >> count.shift, second
        rows[m] = first & rows_mask
        m += (x != 0) | (y != 0)
    return m


@inner(forceinline=True)
def _last_run(runs, m, c):
    """Sum c of the last of m runs alone."""
    return runs[FIRST + c, m - 1] - (runs[FIRST + c, m - 2] if m > 1 else np.int64(0))


@inner
def _offer_categories(rule, f, runs, m, whole, bounds, key, width, i, best, found, general):
    """`offer` of a feature whose codes are categories."""
    missing, columns = 0, whole.shape[0]
    for c in range(columns):
        general.missing_sums[c] = 0
    if m > 0 and runs[CODE, m - 1] == width - 1:
        missing = 1
        for c in range(columns):
            general.missing_sums[c] = _last_run(runs, m, c)
    for k in range(m - missing):
        general.code[k] = runs[CODE, k]
        for c in range(columns):
            general.cell[k, c] = _last_run(runs, k + 1, c)
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
        g0, g1, gn = _last_run(runs, m, 0), _last_run(runs, m, 1), _last_run(runs, m, 2)
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
def pair_node(batch, i):
    """Node i of a batch."""
    whole, low, high, n = batch.whole, -np.inf, np.inf, np.int64(0)
    if whole.shape[1] > 2:
        n = whole[i, 2]
    if batch.bounds.shape[0] > 0:
        low, high = batch.bounds[i, 0], batch.bounds[i, 1]
    return PairNode(whole[i, 0], whole[i, 1], n, low, high)


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


# In the loops below arrays have names of their own: reading one out of a tuple counts references.


@inner
def search_rows(rule, count, rows, which, first, last, batch, found, work, general):
    """The best splits of the nodes which[first:last] of a batch, into their places of `found`.

    `general` (None: no feature has categories) are scratch arrays for categories.
    """
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    keys, places, rank = work.sorting.keys, work.sorting.places, work.sorting.rank
    sums, seen, words, runs = work.sums, work.seen, work.words, work.runs
    starts, stops, features = batch.start, batch.stop, batch.features
    score, tried, width, judge = found.score, features.shape[1], rows.width, judge_of(rule, count)
    n_words = -(-width // 8)
    stride, apart = np.uint64(16 * n_words), np.uint64(8 * n_words)
    for at in range(first, last):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        start, stop, node = starts[i], stops[i], pair_node(batch, i)
        n, best = stop - start, score[i]
        small = n <= SMALL
        for g in range(0, tried, FEATURES):
            end = min(g + FEATURES, tried)
            if not small:
                for a in range(start, stop, ROWS):
                    b = min(a + ROWS, stop)
                    for j in range(g, end):
                        f, slot = np.uint64(features[own, j]), np.uint64(j - g)
                        _add(
                            codes, order, label, values, a, b, f, count, sums, slot * stride,
                            seen, slot * apart,
                        )  # fmt: skip
            for j in range(g, end):
                f, slot = features[own, j], j - g
                if small:
                    sorted_keys(codes, order, start, n, np.uint64(f), keys, rank, places)
                    m = _sorted_runs(label, values, start, n, places, SHIFT, 0, count.one, runs)
                else:
                    base = np.uint64(slot) * stride
                    m = _added_runs(sums, base, words, slot * n_words, n_words, count, runs)
                best = offer_to(
                    judge, rule, f, m, node, batch, i, width, i, best, found, work, general
                )
        score[i] = best


@kernel
def split_pairs(rule, count, rows, which, batch, found, work):
    """`search_rows` for Python."""
    search_rows(rule, count, rows, which, 0, which.shape[0], batch, found, work, None)


@kernel
def split_wide_pairs(rule, count, rows, which, batch, found, work):
    """`split_pairs` for more than WIDE codes: the rows of every node are sorted."""
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    keys, places, rank = work.sorting.keys, work.sorting.places, work.sorting.rank
    long_keys, other, runs = work.keys, work.other, work.runs
    starts, stops, features = batch.start, batch.stop, batch.features
    score, width, judge = found.score, rows.width, judge_of(rule, count)
    for at in range(which.shape[0]):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        start, n, node = starts[i], stops[i] - starts[i], pair_node(batch, i)
        best = score[i]
        for j in range(features.shape[1]):
            f = features[own, j]
            if n <= SMALL:
                sorted_keys(codes, order, start, n, np.uint64(f), keys, rank, places)
                m = _sorted_runs(label, values, start, n, places, SHIFT, 0, count.one, runs)
            else:
                low = sort_rows(codes, order, start, n, np.uint64(f), long_keys, other)
                m = _sorted_runs(label, values, start, n, long_keys, 32, low, count.one, runs)
            sign = rule.signs[f]
            best = offer(judge, sign, f, runs, work.scores, m, node, width, i, best, found)
        score[i] = best


@kernel
def search_pairs(rule, count, pool, slots, batch, lo, hi, found, work):
    """`split_pairs` on features lo ... hi - 1 of nodes whose sums are pool[slot]."""
    width, score, judge = pool.shape[2], found.score, judge_of(rule, count)
    for i in range(slots.shape[0]):
        node, best = pair_node(batch, i), score[i]
        for f in range(lo, hi):
            m = kept_runs(pool[slots[i], f], count, work.runs)
            sign = rule.signs[f]
            best = offer(judge, sign, f, work.runs, work.scores, m, node, width, i, best, found)
        score[i] = best
