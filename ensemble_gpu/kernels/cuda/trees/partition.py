"""The rows of a tree's nodes on the GPU: who goes left, who is pure, which leaf a row reaches.

One thread a row, whatever the sizes of the nodes: the rows of the nodes at hand are counted
through, and a binary search finds a row's node. A partition is stable without a barrier: a running
sum of "goes left", which is the array library's, says how many rows of its node go left before a
row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.cuda.trees.codes import code_of
from ensemble_gpu.kernels.tree_protocol import LEAF

# Columns of the nodes at hand: rows before its own, index of the first in `order`, and its split.
OFFSET, START, FEATURE, BIN, MISSING_LEFT, NODE = range(6)

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _node_of(nodes, u):
    """The last node with OFFSET <= u; the last entry is an end."""
    low, high = np.int32(0), np.int32(nodes.shape[0] - 1)
    while high - low > 1:
        middle = np.int32((low + high) >> 1)
        if nodes[middle, OFFSET] <= u:
            low = middle
        else:
            high = middle
    return low


@cuda.jit(device=True)
def _goes_left(code, last_bin, missing_left, missing_code, subset, i):
    if code == missing_code:
        return missing_left != 0
    if last_bin >= 0:
        return code <= last_bin
    return (subset[i, code >> 6] >> np.uint64(code & 63)) & np.uint64(1) != np.uint64(0)


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def mark(codes, order, nodes, subset, lane_bits, missing_code, node_of, goes):
    """node_of[u], and goes[u] = 1 where row u of the nodes goes left."""
    u = np.int32(cuda.grid(1))
    while u < goes.shape[0]:
        i = _node_of(nodes, u)
        row = order[nodes[i, START] + u - nodes[i, OFFSET]]
        code = code_of(codes, row, nodes[i, FEATURE], lane_bits)
        node_of[u] = i
        left = _goes_left(code, nodes[i, BIN], nodes[i, MISSING_LEFT], missing_code, subset, i)
        goes[u] = 1 if left else 0
        u = np.int32(u + cuda.gridsize(1))


@kernel()
def scatter(order, nodes, node_of, running, before, moved):
    """moved = the rows of each node, those that go left first, both in their order.

    running[u] rows up to u go left, before[i] those before node i.
    """
    u = np.int32(cuda.grid(1))
    while u < running.shape[0]:
        i = node_of[u]
        offset = nodes[i, OFFSET]
        goes = running[u] - (running[u - 1] if u > 0 else np.int32(0))
        position = np.int32(running[u] - goes - before[i])
        if goes == 0:
            position = np.int32(before[i + 1] - before[i] + (u - offset) - position)
        moved[offset + position] = order[nodes[i, START] + u - offset]
        u = np.int32(u + cuda.gridsize(1))


@kernel()
def restore(nodes, node_of, moved, order):
    """The rows of the nodes, moved, back into their ranges."""
    u = np.int32(cuda.grid(1))
    while u < moved.shape[0]:
        i = node_of[u]
        order[nodes[i, START] + u - nodes[i, OFFSET]] = moved[u]
        u = np.int32(u + cuda.gridsize(1))


@kernel()
def number_rows(order, nodes, out):
    """out[row] = the number of its node, given in the column of the feature."""
    u = np.int32(cuda.grid(1))
    while u < nodes[nodes.shape[0] - 1, OFFSET]:
        i = _node_of(nodes, u)
        out[order[nodes[i, START] + u - nodes[i, OFFSET]]] = nodes[i, FEATURE]
        u = np.int32(u + cuda.gridsize(1))


@kernel()
def compare(order, nodes, target, differs):
    """differs[i] = 1 where a row of node i has another target than its first row."""
    u = np.int32(cuda.grid(1))
    while u < nodes[nodes.shape[0] - 1, OFFSET]:
        i = _node_of(nodes, u)
        first = nodes[i, START]
        if target[order[first + u - nodes[i, OFFSET]]] != target[order[first]]:
            differs[i] = 1
        u = np.int32(u + cuda.gridsize(1))


@kernel()
def sum_by(index, values, sums):
    """sums[index[i], s] += values[i, s]."""
    i = np.int32(cuda.grid(1))
    while i < values.shape[0]:
        s = np.int32(0)
        while s < values.shape[1]:
            cuda.atomic.add(sums, (index[i], s), values[i, s])
            s = np.int32(s + 1)
        i = np.int32(i + cuda.gridsize(1))


@kernel()
def leaves(codes, nodes, subset, lane_bits, missing_code, out):
    """The leaf of every row; nodes = (feature, bin, missing left, left child, right child)."""
    row = np.int32(cuda.grid(1))
    while row < out.shape[0]:
        node = np.int32(0)
        while nodes[node, 0] != LEAF:
            code = code_of(codes, row, nodes[node, 0], lane_bits)
            if _goes_left(code, nodes[node, 1], nodes[node, 2], missing_code, subset, node):
                node = nodes[node, 3]
            else:
                node = nodes[node, 4]
        out[row] = node
        row = np.int32(row + cuda.gridsize(1))


# --- launchers -------------------------------------------------------------------------------


def launch_mark(
    shape: Shape, lane_bits: int, width: int, codes: Any, order: Any,
    nodes: Any, subset: Any, node_of: Any, goes: Any,
) -> None:  # fmt: skip
    sizes = np.int32(lane_bits), np.int32(width - 1)
    launch(mark, *shape, codes, order, nodes, subset, *sizes, node_of, goes)


def launch_reorder(
    shape: Shape, order: Any, nodes: Any, node_of: Any, running: Any,
    before: Any, moved: Any,
) -> None:  # fmt: skip
    """Sort the rows of every node by their side."""
    launch(scatter, *shape, order, nodes, node_of, running, before, moved)
    launch(restore, *shape, nodes, node_of, moved, order)


def launch_number_rows(shape: Shape, order: Any, nodes: Any, out: Any) -> None:
    launch(number_rows, *shape, order, nodes, out)


def launch_compare(shape: Shape, order: Any, nodes: Any, target: Any, differs: Any) -> None:
    launch(compare, *shape, order, nodes, target, differs)


def launch_sum_by(shape: Shape, index: Any, values: Any, sums: Any) -> None:
    launch(sum_by, *shape, index, values, sums)


def launch_leaves(
    shape: Shape, lane_bits: int, width: int, codes: Any, nodes: Any,
    subset: Any, out: Any,
) -> None:  # fmt: skip
    sizes = np.int32(lane_bits), np.int32(width - 1)
    launch(leaves, *shape, codes, nodes, subset, *sizes, out)
