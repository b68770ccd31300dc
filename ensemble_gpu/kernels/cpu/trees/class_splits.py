"""The best splits of nodes with few rows, three or more classes and no conditions.

What kernels/host/search.py would find, with the same operations. A small node has rows of few
classes, so scores run over those alone; rows are sorted by their codes, and nothing is cleared.
Gini's impurity follows row by row, so larger nodes are sorted as well: for every code that occurs
its sums would be looked at class by class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import SMALL, WIDE, Sorting, sorting_for
from ensemble_gpu.kernels.cpu.trees.sorting import PLACE, SHIFT
from ensemble_gpu.kernels.host.criteria import class_score
from ensemble_gpu.kernels.host.records import ABOVE, BIN, FEATURE, HAS_MISSING, MISSING_LEFT
from ensemble_gpu.kernels.jit import inner

# Rows a class of a node that are sorted for Gini's impurity. (Ten classes: 2.5 ns a row more than
# adding them up, and 4 us less a node and feature.)
SORTED_ROWS = 128
# Bits of a key for the place of a row that codes were counted for.
COUNTED_SHIFT = 32
COUNTED_PLACE = (1 << COUNTED_SHIFT) - 1


class ClassWork(NamedTuple):
    """Scratch arrays: the numbers of classes that occur in a node, and their sums.

    `own[t]` is the class of row t among those that occur, `classes` which they are; `number` is
    zero for every class before and after. `keys` and `counts` sort the rows of larger nodes by
    codes that are counted.
    """

    own: np.ndarray
    classes: np.ndarray
    number: np.ndarray
    total: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sorting: Sorting
    keys: np.ndarray
    counts: np.ndarray


def class_work(codes: np.ndarray, width: int, n_classes: int, largest: int) -> ClassWork:
    """For nodes of up to `largest` rows."""
    n_sorted = min(largest, SORTED_ROWS * n_classes) if width <= WIDE else 0
    classes, total, left, right = np.empty((4, max(SMALL, n_classes)), dtype=np.int64)
    return ClassWork(
        np.empty(max(SMALL, n_sorted), dtype=np.int64), classes,
        np.zeros(n_classes, dtype=np.int64), total, left, right, sorting_for(codes),
        np.empty(n_sorted, dtype=np.uint64), np.empty(min(width, WIDE), dtype=np.int64),
    )  # fmt: skip


@inner
def counted_keys(codes, order, a, n, f, counts, keys):
    """keys[:n] = code 2^COUNTED_SHIFT + t of the rows order[a + t], ascending."""
    for code in range(counts.shape[0]):
        counts[code] = 0
    for t in range(n):
        counts[codes[order[a + t], f]] += 1
    before = np.int64(0)
    for code in range(counts.shape[0]):
        before, counts[code] = before + counts[code], before
    for t in range(n):
        code = np.uint64(codes[order[a + t], f])
        keys[counts[code]] = (code << np.uint64(COUNTED_SHIFT)) | np.uint64(t)
        counts[code] += 1


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


@inner(forceinline=True)
def best_gini_cut(shift, place, values, a, n, keys, own, left, total, q, weight, best):
    """`best_cut` of Gini's impurity, of sums of the classes `total` below EXACT_WEIGHT.

    Sums of squares are whole numbers: (s + w)^2 = s^2 + w (2 s + w) is exact. A key is a code
    2^shift + the place of a row.
    """
    w_left, at = np.int64(0), -1
    squares_left, squares_right = np.int64(0), np.int64(0)
    for j in range(q):
        left[j] = 0
        squares_right += total[j] * total[j]
    code = np.int64(keys[0] >> shift)
    for k in range(n - 1):
        t = np.int64(keys[k] & place)
        w, c = values[a + t, 0], own[t]
        here = left[c]
        there = total[c] - here
        squares_left += w * (2 * here + w)
        squares_right -= w * (2 * there - w)
        left[c] = here + w
        w_left += w
        last, code = code, np.int64(keys[k + 1] >> shift)
        if last == code:
            continue
        score = float(squares_left) / float(w_left)
        score += float(squares_right) / float(weight - w_left)
        if score > best:
            best, at = score, k
    return best, at


@inner(forceinline=True)
def keep_cut(i, f, below, above, found):
    """Write down the split of feature f between two codes; its sums follow (`left_sums`)."""
    record = found.record
    record[i, FEATURE], record[i, BIN], record[i, ABOVE] = f, below, above
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
