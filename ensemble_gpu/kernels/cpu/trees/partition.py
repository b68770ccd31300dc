"""Rows of a tree on the CPU: a node has a range of one array, and a split sorts the range."""

from __future__ import annotations

import numpy as np
from numba import njit

from ensemble_gpu.kernels.tree_protocol import LEAF

ROWS = 1024  # of a block that stays in the cache


@njit(cache=True, nogil=True)
def transpose(rows, out):
    """out[f, row] = rows[row, f], in blocks of rows that stay in the cache."""
    for a in range(0, rows.shape[0], ROWS):
        for f in range(out.shape[0]):
            for row in range(a, min(a + ROWS, rows.shape[0])):
                out[f, row] = rows[row, f]


@njit(cache=True, nogil=True)
def gather(words, order, out):
    """out[t] = words[order[t]], row by row."""
    for t in range(order.shape[0]):
        for w in range(words.shape[1]):
            out[t, w] = words[order[t], w]


@njit(cache=True, nogil=True)
def _goes_left(code, last_bin, missing_left, missing_code, bits):
    if code == missing_code:
        return missing_left
    if last_bin >= 0:
        return code <= last_bin
    return (bits[code // 64] >> np.uint64(code % 64)) & np.uint64(1) != 0


@njit(cache=True, nogil=True)
def partition(
    codes, order, label, values, missing_code, starts, stops, feature, last_bin, missing_left,
    subset, other_order, other_label, other_values, n_left
):  # fmt: skip
    """Left rows to the front of each range, right rows behind them, both in their order."""
    labelled = label.shape[0] > 0
    for i in range(starts.shape[0]):
        at, away = starts[i], 0
        f, cut, bits = np.uint64(feature[i]), last_bin[i], subset[i]
        plain = cut >= 0
        for t in range(starts[i], stops[i]):
            row = order[t]
            code = np.int64(codes[row, f])
            if plain and code != missing_code:
                left = code <= cut
            else:
                left = _goes_left(code, cut, missing_left[i], missing_code, bits)
            # both places are written, one counter moves: no branch to be guessed wrong
            order[at] = row
            other_order[away] = row
            if labelled:
                own = label[t]
                label[at] = own
                other_label[away] = own
            for s in range(values.shape[1]):
                value = values[t, s]
                values[at, s] = value
                other_values[away, s] = value
            at += left
            away += not left
        n_left[i] = at - starts[i]
        for t in range(away):
            order[at + t] = other_order[t]
            for s in range(values.shape[1]):
                values[at + t, s] = other_values[t, s]
        if labelled:
            for t in range(away):
                label[at + t] = other_label[t]


@njit(cache=True, nogil=True)
def place(order, starts, stops, nodes, out):
    """out[row] = the node whose range the row is in."""
    for i in range(starts.shape[0]):
        for t in range(starts[i], stops[i]):
            out[order[t]] = nodes[i]


@njit(cache=True, nogil=True)
def pure(order, target, starts, stops, out):
    """Whether the rows of each range have one target."""
    for i in range(starts.shape[0]):
        out[i] = True
        for t in range(starts[i] + 1, stops[i]):
            if target[order[t]] != target[order[starts[i]]]:
                out[i] = False
                break


@njit(cache=True, nogil=True)
def leaves(codes, start, stop, feature, last_bin, missing_left, left, right, subset, missing, out):
    """The leaf of rows start ... stop - 1 of the matrix."""
    for row in range(start, stop):
        node = 0
        while feature[node] != LEAF:
            code = np.int64(codes[row, feature[node]])
            to_left = _goes_left(code, last_bin[node], missing_left[node], missing, subset[node])
            node = left[node] if to_left else right[node]
        out[row] = node
