"""All levels of a tree in compiled code, for the usual case: two statistics, features drawn.

What trees/grow.py does with the methods of a grower, without coming back to the interpreter: the
trees of a forest grow on several threads, which would wait for each other's turn at its lock.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ensemble_gpu.kernels.cpu.trees.pair_splits import split_pairs
from ensemble_gpu.kernels.cpu.trees.partition import gather, partition
from ensemble_gpu.kernels.host.criteria import gains
from ensemble_gpu.kernels.host.nodes import draw_features, fork, open_nodes
from ensemble_gpu.kernels.host.records import ABOVE, BIN, FEATURE, HAS_MISSING, MISSING_LEFT, RECORD
from ensemble_gpu.kernels.tree_protocol import NEVER

# Nodes of a level that are split at once: what is known of them for a while stays small.
BLOCK = 4096


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _search(kind, codes, order, label, values, width, p, k, nodes, start, stop, sums, key, score,
            record, left):  # fmt: skip
    """Best splits of nodes on k features drawn for each; without success on more."""
    pending = np.arange(nodes.shape[0])
    for first in range(0, p, k):
        own = nodes[pending]
        features = np.empty((own.shape[0], min(k, p - first)), dtype=np.int64)
        draw_features(key[own], p, first, features)
        n = own.shape[0]
        own_score, own_record = np.full(n, NEVER), np.full((n, RECORD), -1, dtype=np.int64)
        own_left = np.zeros((n, 2), dtype=np.int64)
        split_pairs(
            kind, codes, order, label, values, width, start[own].astype(np.int64),
            stop[own].astype(np.int64), features, sums[own], own_score, own_record, own_left,
        )  # fmt: skip
        score[pending], record[pending], left[pending] = own_score, own_record, own_left
        pending = pending[own_score == NEVER]
        if pending.shape[0] == 0:
            break


@njit(cache=True, nogil=True)
def _divide(
    rule, codes, order, label, values, others, width, p, k, least_gain, rounding, nodes, start,
    stop, last, feature, last_bin, above, missing_left, subset, left, sums, n_rows, depth, gain,
    bounds, key
):  # fmt: skip
    """Split the nodes that are worth it, children from `last` on; returns the new end."""
    m = nodes.shape[0]
    score, record = np.empty(m), np.empty((m, RECORD), dtype=np.int64)
    left_sums, worth = np.empty((m, 2), dtype=np.int64), np.empty(m)
    _search(
        rule.kind, codes, order, label, values, width, p, k, nodes, start, stop, sums, key, score,
        record, left_sums,
    )  # fmt: skip
    gains(rule, sums, nodes, score, rounding, worth)
    good = np.empty(m, dtype=np.bool_)
    for i in range(m):
        good[i] = score[i] > NEVER and worth[i] >= least_gain
    nodes, record, left_sums, worth = nodes[good], record[good], left_sums[good], worth[good]
    m = nodes.shape[0]
    columns = record.T.copy()
    to_left, bits = columns[MISSING_LEFT] == 1, np.zeros((m, 0), dtype=np.uint64)
    n_left = np.empty(m, dtype=np.int64)
    starts, stops = start[nodes].astype(np.int64), stop[nodes].astype(np.int64)
    partition(
        codes, order, label, values, width - 1, starts, stops, columns[FEATURE], columns[BIN],
        to_left, bits, others[0], others[1], others[2], n_left,
    )  # fmt: skip
    fork(
        nodes, columns[FEATURE], columns[BIN], columns[ABOVE], to_left, columns[HAS_MISSING] == 1,
        bits, left_sums, n_left, worth, label.shape[0] == 0, rule.signs, last, feature, last_bin,
        above, missing_left, subset, left, sums, n_rows, depth, gain, bounds, key,
    )  # fmt: skip
    for i in range(m):
        a = last + 2 * i
        start[a], stop[a] = starts[i], starts[i] + n_left[i]
        start[a + 1], stop[a + 1] = stop[a], stops[i]
    return last + 2 * m


@njit(cache=True, nogil=True)
def grow_levels(
    rule, codes, order, label, values, target, matrix, targets, place, laid, others, width, p, k,
    least, max_depth, least_gain, rounding, tidy, start, stop, feature, last_bin, above,
    missing_left, subset, left, sums, n_rows, depth, gain, bounds, key
):  # fmt: skip
    """Grow from the root at place 0 of the arrays, which have room.

    Now and then codes and targets are laid out in the order of the nodes: row t of `laid` is row
    place[t] of the matrix. Returns how many nodes there are, and whether that happened.
    """
    labelled = label.shape[0] > 0
    first, last, levels, moved = np.int64(0), np.int64(1), 0, False
    nodes = np.empty(BLOCK, dtype=np.int64)
    while first < last:
        if levels > 0 and levels % tidy == 0:
            place[:] = place[order]
            gather(matrix.view(np.uint64), place, laid.view(np.uint64))
            codes, moved = laid, True
            if target.shape[0] > 0:
                target = targets[place]
            for t in range(order.shape[0]):
                order[t] = t
        end = last
        for a in range(first, end, BLOCK):
            every = np.arange(a, min(a + BLOCK, end))
            m = open_nodes(every, n_rows, depth, sums, least, max_depth, labelled, nodes)
            if not labelled and target.shape[0] > 0:
                m = _impure(nodes, m, order, target, start, stop)
            if m > 0:
                last = _divide(
                    rule, codes, order, label, values, others, width, p, k, least_gain, rounding,
                    nodes[:m], start, stop, last, feature, last_bin, above, missing_left, subset,
                    left, sums, n_rows, depth, gain, bounds, key,
                )  # fmt: skip
        first = end
        levels += 1
    return last, moved
