"""All levels of a tree in compiled code, for the usual case: two statistics, features drawn.

What trees/grow.py does with the methods of a grower, without coming back to the interpreter: the
trees of a forest grow on several threads, which would wait for each other's turn at its lock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.pair_splits import search_rows
from ensemble_gpu.kernels.cpu.trees.partition import copy_rows, move_rows
from ensemble_gpu.kernels.cpu.trees.rows import Rows
from ensemble_gpu.kernels.host.criteria import write_pair_gains
from ensemble_gpu.kernels.host.nodes import list_open, write_children, write_features
from ensemble_gpu.kernels.host.records import RECORD, FoundArrays, NodeBatch
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import NEVER

# Nodes of a level that are split at once: what is known of them for a while stays small.
BLOCK = 4096


class Growth(NamedTuple):
    """How the tree grows: k of p features drawn for a node; when to stop (max_depth -1: no limit).

    A gain of the share `rounding` of a node's score counts as 0. Every `tidy` levels codes are laid
    out anew.
    """

    p: int
    k: int
    least_rows: int
    max_depth: int
    least_gain: float
    rounding: float
    tidy: int


class Layout(NamedTuple):
    """Codes and targets in the order of the nodes: row t of `laid` is row place[t] of the matrix.

    `matrix_words` and `laid_words` are the same memories, eight bytes at once. `target` belongs to
    the rows as they are first, `targets` to the matrix, `laid_target` to the rows laid out anew;
    so do `cells` and `laid_cells`, all codes in one dimension; `steps` are between rows and codes.
    """

    matrix_words: np.ndarray
    laid_words: np.ndarray
    laid: np.ndarray
    place: np.ndarray
    target: np.ndarray
    targets: np.ndarray
    laid_target: np.ndarray
    cells: np.ndarray
    laid_cells: np.ndarray
    steps: tuple[int, int]


class Block(NamedTuple):
    """Scratch arrays for the nodes of a block."""

    nodes: np.ndarray
    pending: np.ndarray
    keys: np.ndarray
    worth: np.ndarray
    n_left: np.ndarray
    batch: NodeBatch
    found: FoundArrays


def block_of(n: int) -> Block:
    kind = np.int64
    none = np.zeros((0, 0), dtype=kind)
    batch = NodeBatch(
        np.empty(n, kind), np.empty(n, kind), none, np.empty((n, 2), kind), np.zeros((0, 2)),
        np.zeros(0, dtype=np.uint64),
    )  # fmt: skip
    found = FoundArrays(
        np.empty(n), np.empty((n, RECORD), kind), np.empty((n, 2), kind),
        np.zeros((n, 0), dtype=np.uint64),
    )  # fmt: skip
    return Block(
        np.empty(n, kind), np.empty(n, kind), np.empty(n, np.uint64), np.empty(n),
        np.empty(n, kind), batch, found,
    )  # fmt: skip


@inner(inline="always")
def _lay_out(rows, layout, others):
    """Lay out codes and targets in the order of the nodes."""
    order, place = rows.order, layout.place
    for t in range(order.shape[0]):
        others.order[t] = place[order[t]]
    for t in range(order.shape[0]):
        place[t] = others.order[t]
        order[t] = t
    copy_rows(layout.matrix_words, place, layout.laid_words)
    if layout.targets.shape[0] > 0:
        for t in range(order.shape[0]):
            layout.laid_target[t] = layout.targets[place[t]]


@inner
def _impure(nodes, m, order, target, start, stop):
    """Drop the nodes whose rows have one target; how many are left."""
    kept = 0
    for i in range(m):
        node, mixed = nodes[i], False
        for t in range(start[node] + 1, stop[node]):
            if target[order[t]] != target[order[start[node]]]:
                mixed = True
                break
        nodes[kept] = node
        kept += mixed
    return kept


@inner(inline="always")
def _search(kind, l2, rows, growth, m, start, stop, tree, block, work):
    """Best splits of m nodes on k features drawn for each; without success on more."""
    nodes, pending, batch, found = block.nodes, block.pending, block.batch, block.found
    for i in range(m):
        node = nodes[i]
        pending[i] = i
        batch.start[i], batch.stop[i] = start[node], stop[node]
        found.score[i] = NEVER
        for s in range(2):
            batch.whole[i, s] = tree.sums[node, s]
    n = m
    for first in range(0, growth.p, growth.k):
        features = np.empty((n, min(growth.k, growth.p - first)), dtype=np.int64)
        for i in range(n):
            block.keys[i] = tree.key[nodes[pending[i]]]
        write_features(block.keys[:n], growth.p, first, features)
        own = NodeBatch(batch.start, batch.stop, features, batch.whole, batch.bounds, batch.key)
        search_rows(kind, l2, rows, pending[:n], own, found, work)
        left = 0
        for i in range(n):
            pending[left] = pending[i]
            left += found.score[pending[i]] == NEVER
        n = left
        if n == 0:
            break


@inner(inline="always")
def _keep_good(m, least_gain, block):
    """Move the nodes that are worth a split to the front; how many."""
    batch, found, kept = block.batch, block.found, 0
    for i in range(m):
        if found.score[i] == NEVER or block.worth[i] < least_gain:
            continue
        block.nodes[kept], block.worth[kept] = block.nodes[i], block.worth[i]
        batch.start[kept], batch.stop[kept] = batch.start[i], batch.stop[i]
        for c in range(RECORD):
            found.record[kept, c] = found.record[i, c]
        for s in range(2):
            found.left[kept, s] = found.left[i, s]
        kept += 1
    return kept


@kernel
def grow_levels(rule, rows, layout, others, growth, ranges, tree, block, work):
    """Grow from the root at place 0 of the arrays of `tree`, which have room.

    The rows of node i are ranges[0][i] ... ranges[1][i] - 1. Returns how many nodes there are, and
    whether rows were laid out anew.
    """
    start, stop = ranges
    labelled = rows.label.shape[0] > 0
    target, cells = layout.target, layout.cells
    first, last, levels, moved = np.int64(0), np.int64(1), 0, False
    while first < last:
        if levels > 0 and levels % growth.tidy == 0:
            _lay_out(rows, layout, others)
            rows = Rows(layout.laid, rows.order, rows.label, rows.values, rows.width)
            target, cells, moved = layout.laid_target, layout.laid_cells, True
        end = last
        for a in range(first, end, BLOCK):
            m = list_open(
                a, min(a + BLOCK, end), tree, growth.least_rows, growth.max_depth, labelled,
                block.nodes,
            )  # fmt: skip
            if not labelled and target.shape[0] > 0:
                m = _impure(block.nodes, m, rows.order, target, start, stop)
            if m == 0:
                continue
            found = block.found
            _search(rule.kind, rule.l2, rows, growth, m, start, stop, tree, block, work)
            write_pair_gains(
                rule.kind, rule.l2, tree.sums, block.nodes[:m], found.score, growth.rounding,
                block.worth,
            )  # fmt: skip
            m = _keep_good(m, growth.least_gain, block)
            batch, record, n_left = block.batch, found.record, block.n_left
            move_rows(
                cells, layout.steps, rows, batch.start[:m], batch.stop[:m], record,
                found.subset, others, n_left,
            )  # fmt: skip
            write_children(
                block.nodes[:m], record, found.subset, found.left, n_left, block.worth,
                rule.kind, rule.l2, rule.signs, last, tree,
            )  # fmt: skip
            for i in range(m):
                child, middle = last + 2 * i, batch.start[i] + n_left[i]
                start[child], stop[child] = batch.start[i], middle
                start[child + 1], stop[child + 1] = middle, batch.stop[i]
            last += 2 * m
        first = end
        levels += 1
    return last, moved
