"""Gaps between bins (see kernels/edges.py) on the CPU, without sorting whole columns.

A column is spread over buckets, which are in order; only the buckets that hold a cut are sorted.
Threads share the columns. 100,000 normal values take 0.5 ms, a sort of them 4.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.edges import sample_positions
from ensemble_gpu.kernels.jit import inner, kernel

CELLS_PER_THREAD = 20_000
# Buckets of a column at most, and values of one that is spread again before it is sorted.
MOST_BUCKETS, LARGE = 1 << 13, 256
# Up to so many rows NumPy's sort is faster.
SORTED_ROWS = 20_000
# Times that values are spread before quicksort has the rest.
MOST_LEVELS = 6
# Values that insertion sorts fastest.
SHORT = 16


@inner
def _gather(worker, first, last, X, rows, out):
    """Columns of some of the rows, one contiguous row of `out` each."""
    for i in range(first, last):
        r = rows[i]
        for f in range(X.shape[1]):
            out[f, i] = X[r, f]


@inner
def _insert(v, start, stop):
    """Sort v[start:stop], which is short."""
    for i in range(start + 1, stop):
        x, j = v[i], i
        while j > start and v[j - 1] > x:
            v[j] = v[j - 1]
            j -= 1
        v[j] = x


@inner
def _sort(v, start, stop):
    """Sort v[start:stop]: quicksort, the longer part later, and insertion of what is short."""
    if stop - start <= SHORT:
        _insert(v, start, stop)
        return
    stack = np.empty((64, 2), dtype=np.int64)
    stack[0, 0], stack[0, 1], height = start, stop, 1
    while height > 0:
        height -= 1
        low, high = stack[height, 0], stack[height, 1]
        while high - low > SHORT:
            a, b, c = v[low], v[(low + high) // 2], v[high - 1]
            pivot = max(min(a, b), min(max(a, b), c))
            i, j = low, high - 1
            while i <= j:
                while v[i] < pivot:
                    i += 1
                while v[j] > pivot:
                    j -= 1
                if i <= j:
                    v[i], v[j] = v[j], v[i]
                    i += 1
                    j -= 1
            if j + 1 - low > high - i:
                stack[height, 0], stack[height, 1] = low, j + 1
                low = i
            else:
                stack[height, 0], stack[height, 1] = i, high
                high = j + 1
            height += 1
        _insert(v, low, high)


@inner
def _key(bits):
    """An integer in the order of the floats that have these bits."""
    sign = np.uint64(1) << np.uint64(63)
    return ~bits if bits & sign else bits | sign


@inner
def _spread(v, start, stop, by_exponent, spare, bucket, first):
    """Put v[start:stop] into buckets b = first[b] ... first[b + 1] - 1; returns their number.

    Buckets between the least and the largest value are of equal width or, `by_exponent`, have
    equally many floats: that tells apart what lies close to zero. Rounding keeps the order, so no
    value in a later bucket is less. 0 buckets: all values are the same.
    """
    n = stop - start
    low = high = v[start]
    for i in range(start, stop):
        low, high = min(low, v[i]), max(high, v[i])
    if low == high:
        return 0
    n_buckets = max(1, min(n // 4, first.shape[0] - 1))
    last = n_buckets - 1
    scale = n_buckets / (high - low)
    for b in range(n_buckets + 1):
        first[b] = 0
    if by_exponent or not 0.0 < scale < np.inf:
        ends, bits = np.array([low, high]).view(np.uint64), v.view(np.uint64)
        origin = _key(ends[0])
        scale = n_buckets / float(_key(ends[1]) - origin)
        for i in range(n):
            b = min(np.int64(float(_key(bits[start + i]) - origin) * scale), last)
            bucket[i] = b
            first[b + 1] += 1
    else:
        for i in range(n):
            b = min(np.int64((v[start + i] - low) * scale), last)
            bucket[i] = b
            first[b + 1] += 1
    first[0] = start
    for b in range(n_buckets):
        first[b + 1] += first[b]
    for i in range(n):
        b = np.int64(bucket[i])
        spare[first[b]] = v[start + i]
        first[b] += 1
    for b in range(n_buckets, 0, -1):
        first[b] = first[b - 1]
    first[0] = start
    for i in range(start, stop):
        v[i] = spare[i]
    return n_buckets


@inner
def _sort_bucket(v, start, stop, spare, bucket, inside, stack):
    """Sort a bucket; a large one is spread again, by exponent and by width in turn."""
    stack[0, 0], stack[0, 1], stack[0, 2], height = start, stop, 1, 1
    while height > 0:
        height -= 1
        low, high, level = stack[height, 0], stack[height, 1], stack[height, 2]
        if high - low <= LARGE or level > MOST_LEVELS:
            _sort(v, low, high)
            continue
        for b in range(_spread(v, low, high, level % 2 == 1, spare, bucket, inside)):
            if inside[b + 1] - inside[b] <= LARGE:
                _sort(v, inside[b], inside[b + 1])
            else:
                stack[height, 0], stack[height, 1] = inside[b], inside[b + 1]
                stack[height, 2] = level + 1
                height += 1


@inner
def _every_gap(v, m, most, out):
    """The values on both sides of every change of sorted values; how many there are."""
    found = 0
    for i in range(1, m):
        if v[i] > v[i - 1]:
            if found < most - 1:
                out[0, found], out[1, found] = v[i - 1], v[i]
            found += 1
    return found


@inner
def _make_ready(b, v, first, ready, work):
    """Sort the values of a bucket."""
    if first[b + 1] - first[b] <= SHORT:
        _insert(v, first[b], first[b + 1])
    else:
        spare, bucket, inside, stack = work
        _sort_bucket(v, first[b], first[b + 1], spare, bucket, inside, stack)
    ready[b] = True


@inner
def _cut(j, m, most):
    """Where the j-th of `most` equal shares of m values ends."""
    return np.int64(np.uint64(j * m) // np.uint64(most))


@inner
def _column_gaps(column, most, out, v, first, ready, work):
    """Gaps of one column: at every change of the value if there are fewer than `most`; else after
    equal shares of the values, where a value that fills several shares is one of its own.
    """
    m = 0
    for i in range(column.shape[0]):
        v[m] = column[i]
        m += column[i] == column[i]
    n_buckets, first[0], first[1] = 1, 0, m
    if m > 0:
        n_buckets = _spread(v, 0, m, False, work[0], work[1], first)
    occupied = 0
    for b in range(n_buckets):
        occupied += first[b + 1] > first[b]
        ready[b] = False
    if occupied <= most:  # perhaps fewer values than bins
        for b in range(n_buckets):
            _make_ready(b, v, first, ready, work)
        found = _every_gap(v, m, most, out)
        if found < most:
            return found
    found, i, b = 0, 0, 0
    for j in range(1, most):
        cut = _cut(j, m, most)
        if cut <= i:  # within the bin before
            continue
        i = cut
        while first[b + 1] < i:
            b += 1
        if not ready[b]:  # bucket b holds value i - 1
            _make_ready(b, v, first, ready, work)
        while True:
            while i < first[b + 1] and v[i] == v[i - 1]:
                i += 1
            if i < first[b + 1] or i == m:
                break
            while first[b + 1] == i:
                b += 1
            if not ready[b]:
                _make_ready(b, v, first, ready, work)
        if i == m:
            break
        out[0, found], out[1, found] = v[i - 1], v[i]
        found += 1
    return found


@inner
def _gaps_of(worker, start, stop, sample, most, out, found):
    n = sample.shape[1]
    v, spare, bucket = np.empty(n), np.empty(n), np.empty(n, dtype=np.uint16)
    n_buckets = min(MOST_BUCKETS, n // 4 + 1)
    first, inside = np.empty((2, n_buckets + 1), dtype=np.int64)
    ready = np.empty(n_buckets, dtype=np.bool_)
    stack = np.empty((n // LARGE + 2, 3), dtype=np.int64)
    work = spare, bucket, inside, stack
    for f in range(start, stop):
        found[f] = _column_gaps(sample[f], most, out[f], v, first, ready, work)


@kernel
def _columns(crew, X, rows, out):
    share(crew, rows.shape[0], _gather, (X, rows, out))


@kernel
def _gaps(crew, sample, most, out, found):
    share(crew, sample.shape[0], _gaps_of, (sample, most, out, found))


@kernel
def _gaps_in_order(sample, most, out, found):
    """`_column_gaps` of columns that are sorted, NaN last."""
    for f in range(sample.shape[0]):
        v, m = sample[f], 0
        while m < v.shape[0] and v[m] == v[m]:
            m += 1
        found[f] = _every_gap(v, m, most, out[f])
        if found[f] < most:
            continue
        i, found[f] = 0, 0
        for j in range(1, most):
            cut = _cut(j, m, most)
            if cut <= i:  # within the bin before
                continue
            i = cut
            while i < m and v[i] == v[i - 1]:
                i += 1
            if i == m:
                break
            out[f, 0, found[f]], out[f, 1, found[f]] = v[i - 1], v[i]
            found[f] += 1


def gaps(X: np.ndarray, rows: np.ndarray, max_bins: int | None, run: Run) -> list[np.ndarray]:
    """[2, gaps] of every column: the values on both sides of each cut; NaN is left out."""
    chosen = rows if max_bins is None else rows[sample_positions(rows.shape[0])]
    most = max(2, rows.shape[0]) if max_bins is None else max_bins
    n_features, n = X.shape[1], chosen.shape[0]
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    both = np.empty((n_features, 2, min(most, n)))
    found = np.zeros(n_features, dtype=np.int64)
    if n <= SORTED_ROWS:
        sample = np.array(X[chosen].T, dtype=dtype, order="C")
        sample.sort(axis=1)
        _gaps_in_order(sample, most, both, found)
    else:
        sample = np.empty((n_features, n), dtype=dtype)
        run = run.limited_to(sample.size, CELLS_PER_THREAD)
        run.call(_columns, X, chosen, sample)
        run.call(_gaps, sample, most, both, found)
    return [two[:, :k].copy() for two, k in zip(both, found.tolist(), strict=True)]
