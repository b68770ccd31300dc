"""The best splits of small nodes with three or more classes and no conditions.

What kernels/host/search.py would find, with the same operations. A small node has rows of few
classes, so scores run over those alone; rows are sorted by their codes, and nothing is cleared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import SMALL, Sorting, sorting_for
from ensemble_gpu.kernels.cpu.trees.sorting import PLACE, SHIFT
from ensemble_gpu.kernels.host.criteria import class_score
from ensemble_gpu.kernels.host.records import ABOVE, BIN, FEATURE, HAS_MISSING, MISSING_LEFT
from ensemble_gpu.kernels.jit import inner


class ClassWork(NamedTuple):
    """Scratch arrays: the numbers of classes that occur in a node, and their sums.

    `own[t]` is the class of row t among those that occur, `classes` which they are; `number` is
    zero for every class before and after.
    """

    own: np.ndarray
    classes: np.ndarray
    number: np.ndarray
    total: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sorting: Sorting


def class_work(codes: np.ndarray, n_classes: int) -> ClassWork:
    def small() -> np.ndarray:
        return np.empty(SMALL, dtype=np.int64)

    number = np.zeros(n_classes, dtype=np.int64)
    return ClassWork(small(), small(), number, small(), small(), small(), sorting_for(codes))


@inner
def present_classes(label, a, n, whole, work):
    """Number the classes of rows a ... a + n - 1, ascending; (how many, their weight)."""
    own, classes, number, total = work.own, work.classes, work.number, work.total
    for t in range(n):
        number[label[a + t]] = 1
    q, weight = 0, np.int64(0)
    for k in range(number.shape[0]):
        if number[k] > 0:
            classes[q] = k
            number[k] = q
            total[q] = whole[k]
            weight += whole[k]
            q += 1
    for t in range(n):
        own[t] = number[label[a + t]]
    for j in range(q):
        number[classes[j]] = 0
    return q, weight


@inner(forceinline=True)
def best_cut(kind, logs, values, a, n, keys, own, left, right, q, weight, best):
    """(score, last row on the left) of the best cut above `best` of n sorted rows; else -1 rows.

    `right` holds the sums of the q classes, of the given weight.
    """
    w_left, at = np.int64(0), -1
    for j in range(q):
        left[j] = 0
    for k in range(n - 1):
        t = np.int64(keys[k]) & PLACE
        w = values[a + t, 0]
        left[own[t]] += w
        right[own[t]] -= w
        w_left += w
        if keys[k] >> SHIFT == keys[k + 1] >> SHIFT:
            continue
        score = class_score(kind, q, logs, left, w_left)
        score += class_score(kind, q, logs, right, weight - w_left)
        if score > best:
            best, at = score, k
    return best, at


@inner
def keep_cut(i, f, keys, at, found):
    """Write down the split of feature f behind row `at`; its sums follow (`left_sums`)."""
    record = found.record
    record[i, FEATURE], record[i, BIN] = f, keys[at] >> SHIFT
    record[i, ABOVE] = keys[at + 1] >> SHIFT
    record[i, MISSING_LEFT], record[i, HAS_MISSING] = 0, 0


@inner
def left_sums(rows, a, n, record, left):
    """Sums of the left child of a split without missing values."""
    for c in range(left.shape[0]):
        left[c] = 0
    f = np.uint64(record[FEATURE])
    for t in range(a, a + n):
        if np.int64(rows.codes[rows.order[t], f]) <= record[BIN]:
            left[rows.label[t]] += rows.values[t, 0]
