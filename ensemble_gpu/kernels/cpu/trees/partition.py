"""Rows of a tree on the CPU: a node has a range of one array, and a split sorts the range."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.host.records import BIN, FEATURE, MISSING_LEFT
from ensemble_gpu.kernels.jit import inner, kernel


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


@inner(forceinline=True)
def _sort_rows(
    labelled, n_values, threshold, cells, steps, record, bits, missing_code, rows, a, b, others
):
    """`_sort`, compiled for the constants that it is given first."""
    order, label, values = rows.order, rows.label, rows.values.reshape(-1)
    other_order, other_label, other_values = others.order, others.label, others.values.reshape(-1)
    first, step = np.uint64(record[FEATURE]) * np.uint64(steps[1]), np.uint64(steps[0])
    cut, missing_left = record[BIN], record[MISSING_LEFT] == 1
    # a left row goes to place right + apart, which moves by one whichever row it was
    right, apart = np.uint64(b - 1), np.uint64(a - (b - 1))
    for t in range(np.uint64(a), np.uint64(b)):
        code = np.int64(cells[first + np.uint64(order[t]) * step])
        if threshold:
            left = (code <= cut) | ((code == missing_code) & missing_left)
        else:
            left = _goes_left(code, cut, missing_left, missing_code, bits)
        # a product in place of a branch that nobody can guess
        is_left = np.uint64(left)
        at = right + is_left * apart
        other_order[at] = order[t]
        if labelled:
            other_label[at] = label[t]
        for s in range(np.uint64(n_values)):
            other_values[at * np.uint64(n_values) + s] = values[t * np.uint64(n_values) + s]
        right -= np.uint64(1) - is_left
        apart += np.uint64(1)
    return np.int64(right) + 1 - a


@inner
def _sort(cells, steps, record, bits, missing_code, rows, a, b, others):
    """Rows a ... b - 1 to the same places of `others`: left ones from the front, others backwards.

    How many go left. The code of a row is cells[steps[0] row + steps[1] feature]: codes lie row by
    row or feature by feature.
    """
    labelled, n_values = rows.label.shape[0] > 0, rows.values.shape[1]
    if record[BIN] < 0 or n_values > 1:
        return _sort_rows(
            labelled, n_values, False, cells, steps, record, bits, missing_code, rows, a, b, others
        )
    if labelled:
        return _sort_rows(
            True, 1, True, cells, steps, record, bits, missing_code, rows, a, b, others
        )
    return _sort_rows(False, 1, True, cells, steps, record, bits, missing_code, rows, a, b, others)


@inner
def _settle(rows, a, n_left, b, left, right, others):
    """Rows that `_sort` left at a ... b - 1 of `others`, to places `left` and `right` and on."""
    order, label, values = rows.order, rows.label, rows.values
    other_order, other_label, other_values = others.order, others.label, others.values
    n, last, from_ = np.uint64(n_left), np.uint64(b - 1), np.uint64(a)
    n_right, to_left, to_right = np.uint64(b - a - n_left), np.uint64(left), np.uint64(right)
    for k in range(n):
        order[to_left + k] = other_order[from_ + k]
    for k in range(n_right):
        order[to_right + k] = other_order[last - k]
    for s in range(values.shape[1]):
        for k in range(n):
            values[to_left + k, s] = other_values[from_ + k, s]
        for k in range(n_right):
            values[to_right + k, s] = other_values[last - k, s]
    if label.shape[0] > 0:
        for k in range(n):
            label[to_left + k] = other_label[from_ + k]
        for k in range(n_right):
            label[to_right + k] = other_label[last - k]


# Columns of a piece: its node, rows start ... stop - 1, how many go left, and where those of left
# and right go.
NODE, START, STOP, N_LEFT, TO_LEFT, TO_RIGHT, PIECE = range(7)


@inner(forceinline=True)
def _sort_pieces(worker, first, last, pieces, cells, steps, rows, starts, stops, record, subset,
                 others):  # fmt: skip
    """Sort the rows of pieces first ... last - 1; those of whole nodes settle at once."""
    for k in range(first, last):
        i, a, b = pieces[k, NODE], pieces[k, START], pieces[k, STOP]
        n = _sort(cells, steps, record[i], subset[i], rows.width - 1, rows, a, b, others)
        pieces[k, N_LEFT] = n
        if starts[i] == a and stops[i] == b:
            _settle(rows, a, n, b, a, a + n, others)


@inner(forceinline=True)
def _settle_pieces(worker, first, last, pieces, rows, starts, stops, others):
    for k in range(first, last):
        i, a, b = pieces[k, NODE], pieces[k, START], pieces[k, STOP]
        if starts[i] != a or stops[i] != b:
            left, right = pieces[k, TO_LEFT], pieces[k, TO_RIGHT]
            _settle(rows, a, pieces[k, N_LEFT], b, left, right, others)


@inner(forceinline=True)
def move_rows(
    crew, piece_rows, pieces, cells, steps, rows, starts, stops, record, subset, others, n_left
):
    """Left rows to the front of each range, right rows behind them, both in their order.

    Ranges, and pieces of about `piece_rows` rows of larger ones, are shared among the workers.
    """
    n, cut = 0, False
    for i in range(starts.shape[0]):
        size = stops[i] - starts[i]
        parts = max(np.int64(1), size // piece_rows)
        cut = cut or parts > 1
        n_left[i] = 0
        for part in range(parts):
            pieces[n, NODE] = i
            pieces[n, START] = starts[i] + size * part // parts
            pieces[n, STOP] = starts[i] + size * (part + 1) // parts
            n += 1
    share(
        crew, n, _sort_pieces,
        (pieces, cells, steps, rows, starts, stops, record, subset, others),
    )  # fmt: skip
    for k in range(n):
        n_left[pieces[k, NODE]] += pieces[k, N_LEFT]
    if not cut:
        return
    last, left, right = np.int64(-1), np.int64(0), np.int64(0)
    for k in range(n):
        i = pieces[k, NODE]
        if i != last:
            left, right, last = starts[i], starts[i] + n_left[i], i
        pieces[k, TO_LEFT], pieces[k, TO_RIGHT] = left, right
        left += pieces[k, N_LEFT]
        right += pieces[k, STOP] - pieces[k, START] - pieces[k, N_LEFT]
    share(crew, n, _settle_pieces, (pieces, rows, starts, stops, others))


@kernel
def partition(crew, pieces, cells, steps, rows, starts, stops, record, subset, others, n_left):
    """`move_rows` for Python, a range a piece."""
    whole = np.int64(rows.order.shape[0] + 1)
    move_rows(
        crew, whole, pieces, cells, steps, rows, starts, stops, record, subset, others, n_left
    )


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
