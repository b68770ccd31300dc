"""The best splits of small nodes with three or more classes and no conditions.

What kernels/host/search.py would find, with the same operations. A small node has rows of few
classes, so scores run over those alone; rows are sorted by their codes, and nothing is cleared.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ensemble_gpu.kernels.cpu.trees.sorting import PLACE, SHIFT, sorted_keys
from ensemble_gpu.kernels.host.criteria import x_log_x
from ensemble_gpu.kernels.host.records import ABOVE, BIN, FEATURE, HAS_MISSING, MISSING_LEFT
from ensemble_gpu.kernels.tree_protocol import ENTROPY, ERROR, EXACT_WEIGHT


@njit(cache=True, nogil=True, forceinline=True)
def present_classes(label, a, n, own, classes, number):
    """Number the classes of rows a ... a + n - 1, ascending; how many. own[t] is a row's number.

    `number` is zero for every class before and after.
    """
    for t in range(n):
        number[label[a + t]] = 1
    q = 0
    for k in range(number.shape[0]):
        if number[k] > 0:
            classes[q] = k
            number[k] = q
            q += 1
    for t in range(n):
        own[t] = number[label[a + t]]
    for j in range(q):
        number[classes[j]] = 0
    return q


@njit(cache=True, nogil=True, forceinline=True)
def _child(kind, sums, q, weight, logs):
    """`criteria.child_score` over the classes that are there."""
    score = 0.0
    if kind == ERROR:
        largest = np.int64(0)
        for j in range(q):
            largest = max(largest, sums[j])
        return float(largest)
    if kind == ENTROPY:
        for j in range(q):
            score += x_log_x(sums[j], logs)
        return score - x_log_x(weight, logs)
    if weight < EXACT_WEIGHT:
        squares = np.int64(0)
        for j in range(q):
            squares += sums[j] * sums[j]
        return float(squares) / float(weight)
    for j in range(q):
        score += float(sums[j]) * float(sums[j]) / float(weight)
    return score


@njit(cache=True, nogil=True, forceinline=True)
def try_small(
    kind, codes, order, values, a, n, f, own, q, total, weight, missing_code, logs, unsorted, rank,
    keys, left, right, i, best, record
):  # fmt: skip
    """Offer feature f to node i; (best score, rows on the left or -1, whether it is done).

    Not done where values are missing: that is left to the general search.
    """
    sorted_keys(codes, order, a, n, f, unsorted, rank, keys)
    if keys[n - 1] >> SHIFT == missing_code:
        return best, -1, False
    if keys[0] >> SHIFT == keys[n - 1] >> SHIFT:
        return best, -1, True
    for j in range(q):
        left[j], right[j] = 0, total[j]
    w_left, at = np.int64(0), -1
    for k in range(n - 1):
        t = np.int64(keys[k]) & PLACE
        w = values[a + t, 0]
        left[own[t]] += w
        right[own[t]] -= w
        w_left += w
        if keys[k] >> SHIFT == keys[k + 1] >> SHIFT:
            continue
        score = _child(kind, left, q, w_left, logs) + _child(kind, right, q, weight - w_left, logs)
        if score > best:
            best, at = score, k
    if at >= 0:
        record[i, FEATURE], record[i, BIN] = f, keys[at] >> SHIFT
        record[i, ABOVE] = keys[at + 1] >> SHIFT
        record[i, MISSING_LEFT], record[i, HAS_MISSING] = 0, 0
    return best, at, True
