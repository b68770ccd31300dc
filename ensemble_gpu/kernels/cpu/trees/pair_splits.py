"""The best splits of many nodes with two statistics and no conditions: the usual case, made fast.

Two classes with GINI, or weight and target with VARIANCE: what kernels/host/search.py would find,
in the same order and with the same operations. Most nodes of a tree have few rows, so a node costs
little besides them: up to SMALL rows are sorted by their codes, more are added up by code; either
way the codes that occur follow with their sums (the runs).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ensemble_gpu.kernels.cpu.trees.sorting import (
    SHIFT,
    SMALL,
    WIDE,
    key_array,
    sort_rows,
    sorted_keys,
)
from ensemble_gpu.kernels.host.records import ABOVE, BIN, FEATURE, HAS_MISSING, MISSING_LEFT
from ensemble_gpu.kernels.tree_protocol import GINI

FEATURES, ROWS = 8, 1024
VECTOR = 8  # runs from which scores are worth a loop of their own


@njit(cache=True, nogil=True, forceinline=True)
def pair(values, t):
    """A row's two moments, which may be packed in one integer (`Engine.moments`)."""
    if values.shape[1] == 2:
        return values[t, 0], values[t, 1]
    low = values[t, 0] & np.int64(0xFFFFFFFF)
    return low, (values[t, 0] - low) >> np.int64(32)


@njit(cache=True, nogil=True, forceinline=True)
def _score(kind, l0, l1, r0, r1):
    a, b, c, d = float(l0), float(l1), float(r0), float(r1)
    if kind == GINI:
        return -2.0 * (a * b / (a + b)) + -2.0 * (c * d / (c + d))
    return (b * b / a if l0 > 0 else 0.0) + (d * d / c if r0 > 0 else 0.0)


@njit(cache=True, nogil=True, forceinline=True)
def _scan(kind, r0, r1, m, t0, t1, g0, g1, missing, best, scores):
    """(score, last run on the left, missing left) of the best split above `best`, else -1 runs."""
    at, to_left = -1, False
    l0, l1 = np.int64(0), np.int64(0)
    if not missing and m > VECTOR:
        # sums first, then scores without a branch: the divisions run side by side
        for i in range(m - 1):
            l0 += r0[i]
            l1 += r1[i]
            scores[0, i], scores[1, i] = float(l0), float(l1)
            scores[2, i], scores[3, i] = float(t0 - l0), float(t1 - l1)
        if kind == GINI:
            for i in range(m - 1):
                a, b, c, d = scores[0, i], scores[1, i], scores[2, i], scores[3, i]
                scores[4, i] = -2.0 * (a * b / (a + b)) + -2.0 * (c * d / (c + d))
        else:
            for i in range(m - 1):
                a, b, c, d = scores[0, i], scores[1, i], scores[2, i], scores[3, i]
                left = b * b / (a if a > 0.0 else 1.0)
                right = d * d / (c if c > 0.0 else 1.0)
                scores[4, i] = (left if a > 0.0 else 0.0) + (right if c > 0.0 else 0.0)
        for i in range(m - 1):
            if scores[4, i] > best:
                best, at = scores[4, i], i
        return best, at, False
    for i in range(m - 1):
        l0 += r0[i]
        l1 += r1[i]
        if missing:
            score = _score(kind, l0 + g0, l1 + g1, t0 - l0 - g0, t1 - l1 - g1)
            if score > best:
                best, at, to_left = score, i, True
        score = _score(kind, l0, l1, t0 - l0, t1 - l1)
        if score > best:
            best, at, to_left = score, i, False
    if missing:
        score = _score(kind, t0 - g0, t1 - g1, g0, g1)
        if score > best:
            best, at, to_left = score, m - 1, False
    return best, at, to_left


@njit(cache=True, nogil=True, forceinline=True)
def _sorted_runs(codes, order, label, values, a, n, f, classes, keys, rank, places, code, r0, r1):
    """Runs of a small node, sorted; how many. The missing code comes last."""
    sorted_keys(codes, order, a, n, f, keys, rank, places)
    return _runs(label, values, a, n, classes, places, SHIFT, 0, code, r0, r1)


@njit(cache=True, nogil=True, forceinline=True)
def _runs(label, values, a, n, classes, keys, shift, low, code, r0, r1):
    """Runs of rows that are sorted: a key is (code - low) 2^shift + place."""
    m, last, mask = -1, np.int64(-1), (1 << shift) - 1
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
        code[m] = own
        r0[m] = x + (np.int64(0) if new else r0[m])
        r1[m] = y + (np.int64(0) if new else r1[m])
        last = own
    m += 1
    return m if classes else _without_zeros(code, r0, r1, m)


@njit(cache=True, nogil=True, forceinline=True)
def _without_zeros(code, r0, r1, n):
    """Runs that add up to nothing count as absent, as they do in sums by code."""
    m = 0
    for k in range(n):
        code[m], r0[m], r1[m] = code[k], r0[k], r1[k]
        m += r0[k] != 0 or r1[k] != 0
    return m


@njit(cache=True, nogil=True, forceinline=True)
def _add(codes, order, label, values, a, b, f, classes, sums, base, seen, mark):
    """Add up rows a ... b - 1 by the code of feature f: sums[base + 2 code + statistic]."""
    if classes:
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


@njit(cache=True, nogil=True, forceinline=True)
def _added_runs(sums, base, words, word, n_words, code, r0, r1):
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
            code[m], r0[m], r1[m] = b, x, y
            m += x != 0 or y != 0
    return m


@njit(cache=True, nogil=True, forceinline=True)
def _offer(kind, f, code, r0, r1, m, t0, t1, width, i, best, record, left, scores):
    """Offer a feature's runs to node i; returns its best score."""
    g0, g1 = np.int64(0), np.int64(0)
    missing = m > 0 and code[m - 1] == width - 1
    if missing:
        m -= 1
        g0, g1 = r0[m], r1[m]
    if m == 0 or (m == 1 and not missing):
        return best
    found, at, to_left = _scan(kind, r0, r1, m, t0, t1, g0, g1, missing, best, scores)
    if at < 0:
        return best
    record[i, FEATURE], record[i, BIN] = f, code[at]
    record[i, ABOVE] = code[at + 1] if at + 1 < m else width - 1
    record[i, MISSING_LEFT], record[i, HAS_MISSING] = to_left, missing
    left[i, 0], left[i, 1] = (g0, g1) if to_left else (np.int64(0), np.int64(0))
    for k in range(at + 1):
        left[i, 0] += r0[k]
        left[i, 1] += r1[k]
    return found


@njit(cache=True, nogil=True)
def split_pairs(
    kind, codes, order, label, values, width, starts, stops, features, wholes, score, record, left
):  # fmt: skip
    """The best split of each node; features [node, tried], or [1, tried] for all of them."""
    tried, classes = features.shape[1], label.shape[0] > 0
    wide, largest = width > WIDE, max(1, np.max(stops - starts))
    n_words = 0 if wide else -(-width // 8)
    stride = np.uint64(16 * n_words)
    sums = np.zeros(FEATURES * 16 * n_words, dtype=np.int64)
    seen = np.zeros(FEATURES * 8 * n_words, dtype=np.uint8)
    words = seen.view(np.uint64)
    room = max(largest if wide else 8 * n_words, SMALL) + 1
    code, r0, r1 = (
        np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
    )  # fmt: skip
    keys, places = key_array(codes, SMALL), key_array(codes, SMALL)
    rank = np.empty(SMALL, dtype=np.int16)
    scores = np.empty((5, room))
    wide_keys, other_keys = (
        np.empty(largest if wide else 0, dtype=np.uint64),
        np.empty(largest if wide else 0, dtype=np.uint64),
    )  # fmt: skip
    for i in range(starts.shape[0]):
        row = i if features.shape[0] > 1 else 0
        start, stop, t0, t1 = starts[i], stops[i], wholes[i, 0], wholes[i, 1]
        small = stop - start <= SMALL
        best = score[i]
        for g in range(0, tried, FEATURES):
            last = min(g + FEATURES, tried)
            if not small and not wide:
                for a in range(start, stop, ROWS):
                    b = min(a + ROWS, stop)
                    for j in range(g, last):
                        slot = np.uint64(j - g)
                        _add(
                            codes, order, label, values, a, b, np.uint64(features[row, j]),
                            classes, sums, slot * stride, seen,
                            slot * np.uint64(8 * n_words),
                        )  # fmt: skip
            for j in range(g, last):
                f = features[row, j]
                if small:
                    m = _sorted_runs(
                        codes, order, label, values, start, stop - start, np.uint64(f), classes,
                        keys, rank, places, code, r0, r1,
                    )  # fmt: skip
                elif wide:
                    n = stop - start
                    low = sort_rows(codes, order, start, n, np.uint64(f), wide_keys, other_keys)
                    m = _runs(label, values, start, n, classes, wide_keys, 32, low, code, r0, r1)
                else:
                    m = _added_runs(
                        sums, np.uint64(j - g) * stride, words, (j - g) * n_words, n_words, code,
                        r0, r1,
                    )  # fmt: skip
                best = _offer(
                    kind, f, code, r0, r1, m, t0, t1, width, i, best, record, left, scores
                )
        score[i] = best


@njit(cache=True, nogil=True)
def search_pairs(kind, sums, lo, hi, whole, score, record, left, i):
    """`split_pairs` of features lo ... hi - 1 for one node with sums [feature, code, 2]."""
    width = sums.shape[1]
    code, r0, r1 = (
        np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64),
        np.empty(width, dtype=np.int64),
    )  # fmt: skip
    best, scores = score[i], np.empty((5, width))
    for f in range(lo, hi):
        m = 0
        for b in range(width):
            x, y = sums[f, b, 0], sums[f, b, 1]
            code[m], r0[m], r1[m] = b, x, y
            m += x != 0 or y != 0
        best = _offer(
            kind, f, code, r0, r1, m, whole[0], whole[1], width, i, best, record, left, scores
        )
    score[i] = best
