"""Evaluation of a forest on the CPU.

The nodes are laid out once more for the walk: siblings side by side, so that the next place is
`first child + (x > threshold)` without a branch, and a threshold with the word that names feature
and child. A leaf is its own first child: steps beyond it stay there. Trees are walked one after the
other over a block of rows that stays in the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest

# Cells of a block of rows: the more, the rarer a tree comes from memory. Those of a group of rows,
# which are walked together, stay in the nearest caches beside the tree.
BLOCK_BYTES, GROUP_BYTES = 1 << 21, 1 << 16
LEAST_ROWS, MOST_ROWS = 64, 1 << 14
# Steps between two looks at who has arrived.
STEPS = 4
# So few rows are walked one after the other, each down all trees at once.
FEW_ROWS = 8
# Walks from root to leaf below which a second thread costs more than it brings.
WALKS_PER_THREAD = 2000

PLAIN, MISSING, CATEGORIES = range(3)
FLAGS = 2  # bits of a word between child and feature: "missing goes right", "is a set"
ONE, TWO = np.uint64(1), np.uint64(2)


class Compact(NamedTuple):
    """Place i: threshold[2 i], and word[2 i + 1] = first child, flags, feature; one memory.

    Children are counted from `first` of their tree. `used` are the columns that features number,
    `origin` the positions of the nodes in the PackedForest.
    """

    threshold: np.ndarray
    word: np.ndarray
    shift: np.uint64
    first: np.ndarray
    used: np.ndarray
    origin: np.ndarray
    values: np.ndarray
    subsets: np.ndarray
    width: int
    has_sets: bool
    divisor: float
    intercept: np.ndarray


@kernel
def _survey(roots, left, right, feature, sizes, occurs):
    """How many nodes each tree has, and which features are tested."""
    stack = np.empty(left.shape[0] + 1, dtype=np.int64)
    for t in range(roots.shape[0]):
        stack[0] = roots[t]
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = stack[waiting]
            sizes[t] += 1
            if feature[node] != LEAF:
                occurs[feature[node]] = True
                stack[waiting] = right[node]
                stack[waiting + 1] = left[node]
                waiting += 2


@kernel
def _pack(nodes, column, shift, first, threshold, word, origin, values):
    """Write all trees, depth first, siblings side by side; place 1 of a tree stays empty."""
    roots, feature, node_threshold, missing_left, left, right, subset, node_values = nodes
    stack = np.empty(left.shape[0] + 1, dtype=np.int64)
    for t in range(roots.shape[0]):
        start = first[t]
        origin[start] = roots[t]
        stack[0] = 0
        waiting, end = 1, 2
        while waiting > 0:
            waiting -= 1
            at = stack[waiting]
            place, node = start + at, np.int64(origin[start + at])
            for k in range(values.shape[1]):
                values[place, k] = node_values[node, k]
            if feature[node] == LEAF:
                threshold[2 * place] = np.inf
                word[2 * place + 1] = at << shift
                continue
            flags = (1 - np.int64(missing_left[node])) * 2 + np.int64(subset[node] >= 0)
            is_set = subset[node] >= 0
            threshold[2 * place] = subset[node] if is_set else node_threshold[node]
            word[2 * place + 1] = (end << shift) | (flags << (shift - 2)) | column[feature[node]]
            origin[start + end] = left[node]
            origin[start + end + 1] = right[node]
            stack[waiting] = end + 1
            stack[waiting + 1] = end
            waiting += 2
            end += 2


def _round_down(threshold: np.ndarray) -> np.ndarray:
    """The largest float32 <= threshold: it parts float32 numbers in the same way."""
    with np.errstate(over="ignore"):
        narrow = threshold.astype(np.float32)
    return np.where(narrow > threshold, np.nextafter(narrow, np.float32(-np.inf)), narrow)


def _fits(forest: PackedForest, largest: int, n_used: int) -> bool:
    """Whether 32 bits hold a word, and a float32 the number of a subset."""
    bits = int(largest).bit_length() + FLAGS + int(n_used).bit_length()
    return bits <= 32 and len(forest.subsets) < 1 << 24


def _make(forest: PackedForest, narrow: bool) -> Compact:
    sizes = np.zeros(len(forest.roots), dtype=np.int64)
    occurs = np.zeros(int(forest.feature.max(initial=0)) + 1, dtype=np.bool_)
    _survey(forest.roots, forest.left, forest.right, forest.feature, sizes, occurs)
    ends = np.cumsum(sizes + 1)
    used, column = np.flatnonzero(occurs), np.cumsum(occurs) - 1
    narrow = narrow and _fits(forest, int(sizes.max(initial=0)) + 1, len(used))
    real, natural = (np.float32, np.uint32) if narrow else (np.float64, np.uint64)
    shift = FLAGS + len(used).bit_length()
    n = int(ends[-1]) if len(ends) else 0
    memory, origin = np.zeros(2 * n, dtype=natural), np.zeros(n, dtype=np.int32)
    values = np.zeros((n, forest.values.shape[1]))
    first = ends - sizes - 1
    threshold = _round_down(forest.threshold) if narrow else forest.threshold
    nodes = (
        forest.roots, forest.feature, threshold, forest.missing_left, forest.left, forest.right,
        forest.subset, forest.values,
    )  # fmt: skip
    _pack(nodes, column, shift, first, memory.view(real), memory, origin, values)
    return Compact(
        memory.view(real), memory, np.uint64(shift), first, used, origin, values,
        forest.subsets.reshape(-1), 64 * forest.subsets.shape[1],
        bool((forest.subset >= 0).any()), float(forest.divisor), forest.intercept,
    )  # fmt: skip


def compact(forest: PackedForest, dtype: np.dtype) -> Compact:
    """The forest for columns of float32 or float64; made once, then kept with the forest."""
    narrow = dtype.char == "f"
    kept = forest.layouts
    if narrow not in kept:
        kept[narrow] = _make(forest, narrow)
    return kept[narrow]


@inner(forceinline=True)
def _next(at, base, threshold, word, shift, mask, cells, row):
    """The place below `at` for the row whose cells start at `row`; no cell is NaN.

    `base` is where the tree starts: children are counted from there.
    """
    meta = np.uint64(word[at + at + ONE])
    return base + (meta >> shift) + np.uint64(cells[row + (meta & mask)] > threshold[at + at])


@inner(forceinline=True)
def _next_with_missing(at, base, threshold, word, shift, mask, cells, row):
    meta = np.uint64(word[at + at + ONE])
    x = cells[row + (meta & mask)]
    missing_right = np.uint64(x != x) & (meta >> (shift - ONE)) & ONE
    return base + (meta >> shift) + (np.uint64(x > threshold[at + at]) | missing_right)


@inner(forceinline=True)
def _next_with_sets(at, base, threshold, word, shift, mask, cells, row, subsets, width):
    """Tests of any kind; a category's number beyond the `width` bits of a set counts as missing."""
    meta = np.uint64(word[at + at + ONE])
    x, t = cells[row + (meta & mask)], threshold[at + at]
    is_set = (meta >> (shift - TWO)) & ONE == ONE
    if x != x or (is_set and not 0 <= x < width):
        right = (meta >> (shift - ONE)) & ONE
    elif is_set:
        code = np.uint64(t) * np.uint64(width) + np.uint64(x)
        right = ~(subsets[code >> np.uint64(6)] >> (code & np.uint64(63))) & ONE
    else:
        right = np.uint64(x > t)
    return base + (meta >> shift) + right


@inner(inline="always")
def _start(first, i):
    """Where the tree of walk i starts; None: at the beginning."""
    if first is None:
        return np.uint64(0)
    return np.uint64(first[i])


@inner
def _walk(threshold, word, shift, subsets, width, kind, cells, stride, first, place, active):
    """place[i] = the leaf of walk i.

    Either `first` is None and walk i is that of row i, `stride` cells further, down one tree; or
    all walks are those of one row (stride 0), and first[i] is where the tree of walk i starts.
    """
    mask = (ONE << (shift - TWO)) - ONE
    remaining = np.uint64(place.shape[0])
    for i in range(remaining):
        active[i] = i
        place[i] = _start(first, i)
    while remaining > 0:
        kept = np.uint64(0)
        for j in range(remaining):
            i = active[j]
            base = _start(first, i)
            at, row = place[i], i * stride
            if kind == PLAIN:
                for _ in range(STEPS):
                    at = _next(at, base, threshold, word, shift, mask, cells, row)
            elif kind == MISSING:
                for _ in range(STEPS):
                    at = _next_with_missing(at, base, threshold, word, shift, mask, cells, row)
            else:
                for _ in range(STEPS):
                    at = _next_with_sets(
                        at, base, threshold, word, shift, mask, cells, row, subsets, width
                    )
            place[i] = at
            active[kept] = i
            kept += np.uint64(base + (np.uint64(word[at + at + ONE]) >> shift) != at)
        remaining = kept


@inner
def _load(X, by_column, used, start, n, has_sets, cells):
    """Copy the used cells of n rows, row after row; returns what kind of tests they need."""
    absent, stride = False, used.shape[0]
    if by_column:
        for u in range(stride):
            column = X[used[u]]
            for i in range(n):
                value = column[start + i]
                absent |= value != value
                cells[i * stride + u] = value
    else:
        for i in range(n):
            row = X[start + i]
            for u in range(stride):
                value = row[used[u]]
                absent |= value != value
                cells[i * stride + u] = value
    if has_sets:
        return CATEGORIES
    return MISSING if absent else PLAIN


@inner
def _evaluate_blocks(worker, low, high, X, by_column, forest, sizes, out):
    """out[i] = sum of the leaves' values, tree after tree, of blocks low ... high - 1 of rows."""
    block, group = sizes
    n_outputs, stride = out.shape[1], forest.used.shape[0]
    cells = np.empty(block * max(1, stride), dtype=forest.threshold.dtype)
    place, active = np.empty(group, dtype=np.uint64), np.empty(group, dtype=np.uint64)
    for b in range(low, high):
        start = b * block
        n = min(block, out.shape[0] - start)
        kind = _load(X, by_column, forest.used, start, n, forest.has_sets, cells)
        for i in range(start, start + n):
            for k in range(n_outputs):
                out[i, k] = 0.0
        for t in range(forest.first.shape[0]):
            root = forest.first[t]
            threshold, word = forest.threshold[2 * root :], forest.word[2 * root :]
            for first in range(0, n, group):
                m = min(group, n - first)
                _walk(
                    threshold, word, forest.shift, forest.subsets, forest.width, kind,
                    cells[first * stride :], np.uint64(stride), None, place[:m], active,
                )  # fmt: skip
                for i in range(m):
                    at = np.uint64(root) + place[i]
                    for k in range(n_outputs):
                        out[start + first + i, k] += forest.values[at, k]
        for i in range(start, start + n):
            for k in range(n_outputs):
                out[i, k] = out[i, k] / forest.divisor + forest.intercept[k]


@inner
def _apply_blocks(worker, low, high, X, by_column, forest, sizes, out):
    """out[i, t] = position of the leaf of row i in tree t, of blocks low ... high - 1 of rows."""
    block, group = sizes
    stride = forest.used.shape[0]
    cells = np.empty(block * max(1, stride), dtype=forest.threshold.dtype)
    place, active = np.empty(group, dtype=np.uint64), np.empty(group, dtype=np.uint64)
    for b in range(low, high):
        start = b * block
        n = min(block, out.shape[0] - start)
        kind = _load(X, by_column, forest.used, start, n, forest.has_sets, cells)
        for t in range(forest.first.shape[0]):
            root = forest.first[t]
            threshold, word = forest.threshold[2 * root :], forest.word[2 * root :]
            for first in range(0, n, group):
                m = min(group, n - first)
                _walk(
                    threshold, word, forest.shift, forest.subsets, forest.width, kind,
                    cells[first * stride :], np.uint64(stride), None, place[:m], active,
                )  # fmt: skip
                for i in range(m):
                    out[start + first + i, t] = forest.origin[np.uint64(root) + place[i]]


@kernel
def evaluate_blocks(crew, X, by_column, forest, sizes, out):
    """out[i] = sum of the leaves' values; blocks of sizes[0] rows."""
    n_blocks = (out.shape[0] + sizes[0] - 1) // sizes[0]
    share(crew, n_blocks, _evaluate_blocks, (X, by_column, forest, sizes, out))


@kernel
def apply_blocks(crew, X, by_column, forest, sizes, out):
    """out[i, t] = position of the leaf of row i in tree t; blocks of sizes[0] rows."""
    n_blocks = (out.shape[0] + sizes[0] - 1) // sizes[0]
    share(crew, n_blocks, _apply_blocks, (X, by_column, forest, sizes, out))


@kernel
def evaluate_few(X, by_column, forest, out):
    """Row by row, all trees at once: a step of one tree need not wait for that of another."""
    n_trees = forest.first.shape[0]
    cells = np.empty(max(1, forest.used.shape[0]), dtype=forest.threshold.dtype)
    place, active = np.empty(n_trees, dtype=np.uint64), np.empty(n_trees, dtype=np.uint64)
    for i in range(out.shape[0]):
        kind = _load(X, by_column, forest.used, i, 1, forest.has_sets, cells)
        _walk(
            forest.threshold, forest.word, forest.shift, forest.subsets, forest.width, kind, cells,
            np.uint64(0), forest.first, place, active,
        )  # fmt: skip
        for k in range(out.shape[1]):
            total = 0.0
            for t in range(n_trees):
                total += forest.values[place[t], k]
            out[i, k] = total / forest.divisor + forest.intercept[k]


def _contiguous(X: np.ndarray) -> tuple[np.ndarray, bool]:
    """X or its transpose, whichever lies row after row in memory, and whether it is the latter."""
    if X.dtype.char not in "fd":  # neither float32 nor float64
        X = X.astype(np.float64)
    flags = X.flags
    by_rows, by_column = flags.c_contiguous, False
    if not by_rows:
        by_column = flags.f_contiguous
        X = X.T if by_column else np.ascontiguousarray(X)
    X.flags.writeable = False
    return X, by_column


def _sizes(n: int, forest: Compact, threads: int) -> tuple[int, int]:
    """Rows of a block, so that the threads get equally many, and rows that are walked together."""
    row = max(1, len(forest.used)) * forest.threshold.itemsize
    most = min(MOST_ROWS, max(LEAST_ROWS, BLOCK_BYTES // row))
    turns = -(-n // (most * threads))
    block = max(LEAST_ROWS, -(-n // max(1, turns * threads)))
    return block, min(block, max(LEAST_ROWS, GROUP_BYTES // row))


def evaluate_forest(X: np.ndarray, forest: PackedForest, run: Run) -> np.ndarray:
    """float64 [n, outputs]."""
    X, by_column = _contiguous(X)
    n, own = X.shape[by_column], compact(forest, X.dtype)
    out = np.empty((n, len(forest.intercept)))
    if n <= FEW_ROWS:
        evaluate_few(X, by_column, own, out)
        return out
    run = run.limited_to(n * len(forest.roots), WALKS_PER_THREAD)
    sizes = _sizes(n, own, run.threads)
    run.call(evaluate_blocks, X, by_column, own, sizes, out)
    return out


def apply_forest(X: np.ndarray, forest: PackedForest, run: Run) -> np.ndarray:
    """int64 [n, trees]."""
    X, by_column = _contiguous(X)
    n, own = X.shape[by_column], compact(forest, X.dtype)
    out = np.empty((n, len(forest.roots)), dtype=np.int64)
    run = run.limited_to(out.size, WALKS_PER_THREAD)
    sizes = _sizes(n, own, run.threads)
    run.call(apply_blocks, X, by_column, own, sizes, out)
    return out
