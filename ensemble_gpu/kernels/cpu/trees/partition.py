"""Rows of a tree on the CPU: a node has a range of one array, and a split sorts the range."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.host.records import BIN, FEATURE, MISSING_LEFT
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import LEAF


@inner
def copy_rows(words, order, out):
    """out[t] = words[order[t]], row by row."""
    for t in range(order.shape[0]):
        for w in range(words.shape[1]):
            out[t, w] = words[order[t], w]


@inner
def _goes_left(code, last_bin, missing_left, missing_code, bits):
    if code == missing_code:
        return missing_left
    if last_bin >= 0:
        return code <= last_bin
    return (bits[code // 64] >> np.uint64(code % 64)) & np.uint64(1) != 0


@inner
def move_rows(cells, steps, rows, starts, stops, record, subset, others, n_left):
    """Left rows to the front of each range, right rows behind them, both in their order.

    The code of a row is cells[steps[0] row + steps[1] feature]: codes lie row by row or feature by
    feature.
    """
    order, label, values = rows.order, rows.label, rows.values
    other_order, other_label, other_values = others.order, others.label, others.values
    labelled, missing_code, n_values = label.shape[0] > 0, rows.width - 1, values.shape[1]
    by_row, by_feature = np.uint64(steps[0]), np.uint64(steps[1])
    for i in range(starts.shape[0]):
        at, away = starts[i], 0
        cut, bits, missing_left = record[i, BIN], subset[i], record[i, MISSING_LEFT] == 1
        first = np.uint64(record[i, FEATURE]) * by_feature
        plain = cut >= 0
        for t in range(starts[i], stops[i]):
            row = order[t]
            code = np.int64(cells[first + np.uint64(row) * by_row])
            if plain and code != missing_code:
                left = code <= cut
            else:
                left = _goes_left(code, cut, missing_left, missing_code, bits)
            # both places are written, one counter moves: no branch to be guessed wrong
            order[at] = row
            other_order[away] = row
            if labelled:
                own = label[t]
                label[at] = own
                other_label[away] = own
            for s in range(n_values):
                value = values[t, s]
                values[at, s] = value
                other_values[away, s] = value
            at += left
            away += not left
        n_left[i] = at - starts[i]
        for t in range(away):
            order[at + t] = other_order[t]
            for s in range(n_values):
                values[at + t, s] = other_values[t, s]
        if labelled:
            for t in range(away):
                label[at + t] = other_label[t]


@kernel
def partition(cells, steps, rows, starts, stops, record, subset, others, n_left):
    """`move_rows` for Python."""
    move_rows(cells, steps, rows, starts, stops, record, subset, others, n_left)


@kernel
def gather(words, order, out):
    """`copy_rows` for Python."""
    copy_rows(words, order, out)


@kernel
def place(order, starts, stops, nodes, out):
    """out[row] = the node whose range the row is in."""
    for i in range(starts.shape[0]):
        for t in range(starts[i], stops[i]):
            out[order[t]] = nodes[i]


@kernel
def pure(order, target, starts, stops, out):
    """Whether the rows of each range have one target."""
    for i in range(starts.shape[0]):
        out[i] = True
        for t in range(starts[i] + 1, stops[i]):
            if target[order[t]] != target[order[starts[i]]]:
                out[i] = False
                break


@kernel
def leaves(codes, start, stop, tree, missing_code, out):
    """The leaf of rows start ... stop - 1 of the matrix; `tree` are the arrays of a CodeTree."""
    feature, last_bin, missing_left, left, right, subset = tree
    for row in range(start, stop):
        node = np.int64(0)
        while feature[node] != LEAF:
            code = np.int64(codes[row, feature[node]])
            to_left = _goes_left(
                code, last_bin[node], missing_left[node], missing_code, subset[node]
            )
            node = np.int64(left[node] if to_left else right[node])
        out[row] = node
