"""Evaluation of a forest on the GPU: one thread a row, tree after tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest

# Columns of a node: 16 bytes, one sector with its neighbours.
FEATURE, LEFT, RIGHT, SUBSET, COLUMNS = range(5)
# SUBSET holds 2 (row of the subset + 1) + (missing left): 0 or 1 where the test is a threshold.

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _goes_left(x, threshold, test, subsets):
    """A category's number that is no bit of the subset counts as missing."""
    if x != x:
        return test & 1 != 0
    if test < 2:
        return x <= threshold
    if not 0.0 <= x < 64.0 * subsets.shape[1]:
        return test & 1 != 0
    code = np.int32(x)
    word = subsets[(test >> 1) - 1, code >> 6]
    return (word >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)


@cuda.jit(device=True)
def _walk(X, i, root, nodes, thresholds, subsets):
    """The leaf of row i in the tree that starts at root."""
    at = root
    feature = nodes[at, FEATURE]
    while feature != LEAF:
        x = np.float64(X[i, feature])
        if _goes_left(x, thresholds[at], nodes[at, SUBSET], subsets):
            at = nodes[at, LEFT]
        else:
            at = nodes[at, RIGHT]
        feature = nodes[at, FEATURE]
    return at


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def evaluate_forest(X, roots, nodes, thresholds, subsets, values, divisor, intercept, out):
    """out[i] = (sum of the leaves' values, in the order of the trees) / divisor + intercept.

    Four outputs at a time, so that their sums stay in registers; a walk is repeated where there
    are more.
    """
    outputs = np.int32(out.shape[1])
    i = np.int32(cuda.grid(1))
    while i < X.shape[0]:
        k = np.int32(0)
        while k < outputs:
            second, third = min(k + 1, outputs - 1), min(k + 2, outputs - 1)
            fourth = min(k + 3, outputs - 1)
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            t = np.int32(0)
            while t < roots.shape[0]:
                leaf = _walk(X, i, roots[t], nodes, thresholds, subsets)
                a += values[leaf, k]
                b += values[leaf, second]
                c += values[leaf, third]
                d += values[leaf, fourth]
                t = np.int32(t + 1)
            # where outputs are fewer, the last one is computed, and written, more than once
            out[i, k] = a / divisor + intercept[k]
            out[i, second] = b / divisor + intercept[second]
            out[i, third] = c / divisor + intercept[third]
            out[i, fourth] = d / divisor + intercept[fourth]
            k = np.int32(k + 4)
        i = np.int32(i + cuda.gridsize(1))


@kernel()
def apply_forest(X, roots, nodes, thresholds, subsets, out):
    """out[i, t] = position of the leaf of row i in tree t."""
    i = np.int32(cuda.grid(1))
    while i < X.shape[0]:
        t = np.int32(0)
        while t < roots.shape[0]:
            out[i, t] = _walk(X, i, roots[t], nodes, thresholds, subsets)
            t = np.int32(t + 1)
        i = np.int32(i + cuda.gridsize(1))


# --- launchers -------------------------------------------------------------------------------


def packed(forest: PackedForest) -> tuple[np.ndarray, ...]:
    """Nodes, thresholds and subsets as the kernels take them."""
    nodes = np.empty((len(forest.feature), COLUMNS), dtype=np.int32)
    nodes[:, FEATURE], nodes[:, LEFT], nodes[:, RIGHT] = forest.feature, forest.left, forest.right
    nodes[:, SUBSET] = 2 * (np.maximum(forest.subset, LEAF) + 1) + forest.missing_left
    subsets = forest.subsets if forest.subsets.size else np.zeros((1, 1), dtype=np.uint64)
    return nodes, forest.threshold, subsets


def launch_evaluate_forest(
    shape: Shape, divisor: float, X: Any, roots: Any, nodes: Any, thresholds: Any, subsets: Any,
    values: Any, intercept: Any, out: Any,
) -> None:  # fmt: skip
    launch(
        evaluate_forest, *shape, X, roots, nodes, thresholds, subsets, values,
        np.float64(divisor), intercept, out,
    )  # fmt: skip


def launch_apply_forest(
    shape: Shape, X: Any, roots: Any, nodes: Any, thresholds: Any, subsets: Any, out: Any
) -> None:
    launch(apply_forest, *shape, X, roots, nodes, thresholds, subsets, out)
