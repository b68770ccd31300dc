"""The leaves of rows in a tree: many rows walk side by side.

A row's next node depends on its last, and to wait for it costs more than to look it up: meanwhile
other rows take a step.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import LEAF

# Rows that walk side by side.
ABREAST = 64

# Columns of a step: to node LEFT where a code of FEATURE is at most LAST or at least FIRST, else to
# node RIGHT. A leaf leads to itself. Where LAST is negative a set of categories goes to LEFT.
FEATURE, LAST, FIRST, TO_RIGHT, TO_LEFT, STEP = range(6)


@inner
def _steps(tree, missing_code):
    """Steps [node, column], and how many of them lead to the deepest leaf."""
    feature, last_bin, missing_left, left, right = tree
    n = feature.shape[0]
    steps, depth = np.empty((n, STEP), dtype=np.int32), np.zeros(n, dtype=np.int32)
    deepest = 0
    for i in range(n):
        steps[i, FEATURE] = max(feature[i], 0)
        steps[i, LAST] = last_bin[i]
        steps[i, FIRST] = missing_code if missing_left[i] else missing_code + 1
        is_leaf = feature[i] == LEAF
        steps[i, TO_LEFT] = i if is_leaf else left[i]
        steps[i, TO_RIGHT] = i if is_leaf else right[i]
        if not is_leaf:  # children have higher numbers
            depth[left[i]] = depth[right[i]] = depth[i] + 1
            deepest = max(deepest, depth[i] + 1)
    return steps, deepest


@inner
def _is_in(subset, code):
    """Whether the bit of a code is set."""
    return (subset[np.uint64(code) >> np.uint64(6)] >> np.uint64(code & 63)) & np.uint64(1) != 0


@inner
def _walk(worker, start, stop, codes, steps, subset, missing_code, depth, out):
    with_sets = subset.shape[1] > 0
    node = np.empty(ABREAST, dtype=np.uint32)
    for a in range(start, stop, ABREAST):
        n = min(ABREAST, stop - a)
        for i in range(n):
            node[i] = 0
        for _ in range(depth):
            moved = np.uint32(0)
            for i in range(np.uint64(n)):
                at = np.uint64(node[i])
                code = np.int32(codes[np.uint64(a) + i, np.uint64(steps[at, FEATURE])])
                to_left = (code <= steps[at, LAST]) | (code >= steps[at, FIRST])
                if with_sets and steps[at, LAST] < 0 and code < missing_code:
                    to_left = _is_in(subset[at], code)
                there = np.uint32(steps[at, np.uint64(TO_RIGHT) + np.uint64(to_left)])
                moved |= there ^ np.uint32(at)
                node[i] = there
            if moved == 0:
                break
        for i in range(n):
            out[a + i] = node[i]


@kernel
def walk(crew, codes, tree, subset, missing_code, out):
    """out[row] = the leaf of the row; `tree` are feature, bin, missing_left, left, right.

    subset[node] are the bits of the codes that go left where the bin is negative; [.., 0]: nowhere.
    """
    steps, depth = _steps(tree, missing_code)
    share(crew, codes.shape[0], _walk, (codes, steps, subset, missing_code, depth, out))
