"""The best splits of many nodes with two statistics and no conditions: the usual case, made fast.

Two classes with GINI, or weight and target with VARIANCE: what kernels/host/search.py would find,
in the same order and with the same operations. Most nodes of a tree have few rows, so a node costs
little besides them: up to SMALL rows are sorted by their codes, more are added up by code; either
way the codes that occur follow with their sums (the runs).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import FEATURES, ROWS, SMALL, WIDE, Sorting, sorting_for
from ensemble_gpu.kernels.cpu.trees.sorting import SHIFT, sort_rows, sorted_keys
from ensemble_gpu.kernels.host.criteria import gini_of_pairs, pair_score, variance_of_pairs
from ensemble_gpu.kernels.host.records import ABOVE, BIN, FEATURE, HAS_MISSING, MISSING_LEFT
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import GINI

VECTOR = 8  # runs from which scores are worth a loop of their own


# Rows of the runs [3, run]: the codes that occur in a node, and their two sums.
CODE, FIRST, SECOND = range(3)


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
        np.empty((3, n_runs), dtype=np.int64), np.empty((5, n_runs)), sorting_for(codes),
        np.empty(long, dtype=np.uint64), np.empty(long, dtype=np.uint64),
    )  # fmt: skip


@inner(forceinline=True)
def pair(values, t):
    """A row's two moments, which may be packed in one integer (`Engine.moments`)."""
    if values.shape[1] == 2:
        return values[t, 0], values[t, 1]
    low = values[t, 0] & np.int64(0xFFFFFFFF)
    return low, (values[t, 0] - low) >> np.int64(32)


@inner(forceinline=True)
def _scan(kind, l2, runs, m, t0, t1, g0, g1, missing, best, scores):
    """(score, last run on the left, missing left) of the best split above `best`, else -1 runs."""
    at, to_left = -1, False
    l0, l1 = np.int64(0), np.int64(0)
    if not missing and m > VECTOR:
        # sums first, then scores without a branch: the divisions run side by side
        for i in range(m - 1):
            l0 += runs[FIRST, i]
            l1 += runs[SECOND, i]
            scores[0, i], scores[1, i] = float(l0), float(l1)
            scores[2, i], scores[3, i] = float(t0 - l0), float(t1 - l1)
        if kind == GINI:
            for i in range(m - 1):
                a, b, c, d = scores[0, i], scores[1, i], scores[2, i], scores[3, i]
                scores[4, i] = gini_of_pairs(a, b, c, d)
        else:
            for i in range(m - 1):
                a, b, c, d = scores[0, i], scores[1, i], scores[2, i], scores[3, i]
                scores[4, i] = variance_of_pairs(a, b, c, d, l2)
        for i in range(m - 1):
            if scores[4, i] > best:
                best, at = scores[4, i], i
        return best, at, False
    for i in range(m - 1):
        l0 += runs[FIRST, i]
        l1 += runs[SECOND, i]
        if missing:
            score = pair_score(kind, l2, l0 + g0, l1 + g1, t0 - l0 - g0, t1 - l1 - g1)
            if score > best:
                best, at, to_left = score, i, True
        score = pair_score(kind, l2, l0, l1, t0 - l0, t1 - l1)
        if score > best:
            best, at, to_left = score, i, False
    if missing:
        score = pair_score(kind, l2, t0 - g0, t1 - g1, g0, g1)
        if score > best:
            best, at, to_left = score, m - 1, False
    return best, at, to_left


@inner(forceinline=True)
def _sorted_runs(label, values, a, n, keys, shift, low, runs):
    """Runs of rows that are sorted: a key is (code - low) 2^shift + place; how many."""
    classes, m, last, mask = label.shape[0] > 0, -1, np.int64(-1), (1 << shift) - 1
    for k in range(n):
        own, t = (np.int64(keys[k]) >> shift) + low, a + (np.int64(keys[k]) & mask)
        if classes:
            w = values[t, 0]
            y = w if label[t] != 0 else np.int64(0)
            x = w - y
        else:
            x, y = pair(values, t)
        new = own != last
        m += new
        runs[CODE, m] = own
        runs[FIRST, m] = x + (np.int64(0) if new else runs[FIRST, m])
        runs[SECOND, m] = y + (np.int64(0) if new else runs[SECOND, m])
        last = own
    m += 1
    return m if classes else _without_zeros(runs, m)


@inner(forceinline=True)
def _without_zeros(runs, n):
    """Runs that add up to nothing count as absent, as they do in sums by code."""
    m = 0
    for k in range(n):
        x, y = runs[FIRST, k], runs[SECOND, k]
        runs[CODE, m], runs[FIRST, m], runs[SECOND, m] = runs[CODE, k], x, y
        m += x != 0 or y != 0
    return m


@inner(forceinline=True)
def _add(codes, order, label, values, a, b, f, sums, base, seen, mark):
    """Add up rows a ... b - 1 by the code of feature f: sums[base + 2 code + statistic]."""
    if label.shape[0] > 0:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            sums[base + np.uint64(2) * code + np.uint64(label[t])] += values[t, 0]
    else:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            at = base + np.uint64(2) * code
            x, y = pair(values, t)
            sums[at] += x
            sums[at + np.uint64(1)] += y


@inner(forceinline=True)
def _added_runs(sums, base, words, word, n_words, runs):
    """Runs of a node that was added up, which is cleared; how many."""
    m = 0
    for w in range(n_words):
        if words[word + w] == 0:
            continue
        words[word + w] = 0
        for b in range(8 * w, 8 * w + 8):
            at = base + np.uint64(2 * b)
            x, y = sums[at], sums[at + np.uint64(1)]
            sums[at], sums[at + np.uint64(1)] = 0, 0
            runs[CODE, m], runs[FIRST, m], runs[SECOND, m] = b, x, y
            m += x != 0 or y != 0
    return m


@inner(forceinline=True)
def offer(kind, l2, f, runs, scores, m, t0, t1, width, i, best, found):
    """Offer the runs of feature f to node i, whose sums are t0 and t1; returns its best score."""
    g0, g1 = np.int64(0), np.int64(0)
    missing = m > 0 and runs[CODE, m - 1] == width - 1
    if missing:
        m -= 1
        g0, g1 = runs[FIRST, m], runs[SECOND, m]
    if m == 0 or (m == 1 and not missing):
        return best
    score, at, to_left = _scan(kind, l2, runs, m, t0, t1, g0, g1, missing, best, scores)
    if at < 0:
        return best
    record, left = found.record, found.left
    record[i, FEATURE], record[i, BIN] = f, runs[CODE, at]
    record[i, ABOVE] = runs[CODE, at + 1] if at + 1 < m else width - 1
    record[i, MISSING_LEFT], record[i, HAS_MISSING] = to_left, missing
    a, b = (g0, g1) if to_left else (np.int64(0), np.int64(0))
    for k in range(at + 1):
        a += runs[FIRST, k]
        b += runs[SECOND, k]
    left[i, 0], left[i, 1] = a, b
    return score


# In the loops below arrays have names of their own: reading one out of a tuple counts references.


@inner
def search_rows(kind, l2, rows, which, batch, found, work):
    """The best splits of the nodes `which` of a batch, into their places of `found`."""
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    keys, places, rank = work.sorting.keys, work.sorting.places, work.sorting.rank
    sums, seen, words, runs, scores = work.sums, work.seen, work.words, work.runs, work.scores
    starts, stops, whole, features = batch.start, batch.stop, batch.whole, batch.features
    score, tried, width = found.score, features.shape[1], rows.width
    n_words = -(-width // 8)
    stride, apart = np.uint64(16 * n_words), np.uint64(8 * n_words)
    for at in range(which.shape[0]):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        start, stop, t0, t1 = starts[i], stops[i], whole[i, 0], whole[i, 1]
        n, best = stop - start, score[i]
        small = n <= SMALL
        for g in range(0, tried, FEATURES):
            last = min(g + FEATURES, tried)
            if not small:
                for a in range(start, stop, ROWS):
                    b = min(a + ROWS, stop)
                    for j in range(g, last):
                        f, slot = np.uint64(features[own, j]), np.uint64(j - g)
                        _add(
                            codes, order, label, values, a, b, f, sums, slot * stride, seen,
                            slot * apart,
                        )  # fmt: skip
            for j in range(g, last):
                f, slot = features[own, j], j - g
                if small:
                    sorted_keys(codes, order, start, n, np.uint64(f), keys, rank, places)
                    m = _sorted_runs(label, values, start, n, places, SHIFT, 0, runs)
                else:
                    base = np.uint64(slot) * stride
                    m = _added_runs(sums, base, words, slot * n_words, n_words, runs)
                best = offer(kind, l2, f, runs, scores, m, t0, t1, width, i, best, found)
        score[i] = best


@kernel
def split_pairs(kind, l2, rows, which, batch, found, work):
    """`search_rows` for Python."""
    search_rows(kind, l2, rows, which, batch, found, work)


@kernel
def split_wide_pairs(kind, l2, rows, which, batch, found, work):
    """`split_pairs` for more than WIDE codes: the rows of every node are sorted."""
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    keys, places, rank = work.sorting.keys, work.sorting.places, work.sorting.rank
    long_keys, other, runs, scores = work.keys, work.other, work.runs, work.scores
    starts, stops, whole, features = batch.start, batch.stop, batch.whole, batch.features
    score, width = found.score, rows.width
    for at in range(which.shape[0]):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        start, n, t0, t1 = starts[i], stops[i] - starts[i], whole[i, 0], whole[i, 1]
        best = score[i]
        for j in range(features.shape[1]):
            f = features[own, j]
            if n <= SMALL:
                sorted_keys(codes, order, start, n, np.uint64(f), keys, rank, places)
                m = _sorted_runs(label, values, start, n, places, SHIFT, 0, runs)
            else:
                low = sort_rows(codes, order, start, n, np.uint64(f), long_keys, other)
                m = _sorted_runs(label, values, start, n, long_keys, 32, low, runs)
            best = offer(kind, l2, f, runs, scores, m, t0, t1, width, i, best, found)
        score[i] = best


@kernel
def search_pairs(kind, l2, pool, slots, wholes, lo, hi, found, work):
    """`split_pairs` on features lo ... hi - 1 of nodes whose sums are pool[slot]."""
    width, runs, scores, score = pool.shape[2], work.runs, work.scores, found.score
    for i in range(slots.shape[0]):
        slot, t0, t1, best = slots[i], wholes[i, 0], wholes[i, 1], score[i]
        for f in range(lo, hi):
            m = np.int64(0)  # as a literal it would have `offer` compiled once more
            for b in range(width):
                x, y = pool[slot, f, b, 0], pool[slot, f, b, 1]
                runs[CODE, m], runs[FIRST, m], runs[SECOND, m] = b, x, y
                m += x != 0 or y != 0
            best = offer(kind, l2, f, runs, scores, m, t0, t1, width, i, best, found)
        score[i] = best
