"""The runs of a node: which codes of a feature occur in it, with sums up to and including each.

Of nodes with two statistics (two classes, or weight and target). Up to SMALL rows are sorted by
their codes, more are added up by code, and large nodes have kept sums.

Where rows are counted the first statistic and the count are in one integer, x 2^shift + rows
(`Counting`): one addition serves both. Kept sums of packed moments go without: a child whose rows
have moments enough has rows enough, and where that is in doubt the rows are counted (`Tally`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import FEATURES, SMALL, WIDE, Sorting, sorting_for
from ensemble_gpu.kernels.jit import inner

# Rows of the runs [5, run]: the codes that occur in a node, the two sums up to and including each,
# how many rows that are (0 where nobody counts), and room for the run of each code.
CODE, FIRST, SECOND, ROWS_OF, PLACE = range(5)


class Counting(NamedTuple):
    """x 2^shift + one: the first statistic of a row and the row; `one` is 0 where nobody counts.

    `exact`: no sum has more digits than a float, whose differences are then exact.

    `sure`: children with a first sum of at least that much have rows enough, and no other row is
    counted along; 0: they are.
    """

    shift: int
    one: int
    exact: bool
    sure: int


UNCOUNTED = Counting(0, 0, False, 0)


def counting(first: int, second: int, n_rows: int, counted: bool) -> Counting | None:
    """For n rows with statistics of up to `first` and `second`.

    None: the first statistic and the count do not fit in one integer.
    """
    bits, shift = (first * n_rows).bit_length(), n_rows.bit_length() if counted else 0
    exact = max(bits, (second * n_rows).bit_length()) <= 53
    return Counting(shift, int(counted), exact, 0) if bits + shift < 63 else None


class KeptCounting(NamedTuple):
    """How rows are counted in kept sums: of ordered features, and of those that have categories.

    Categories are put in an order of their own, and most of their splits would be in doubt: their
    rows are counted along, where any are.
    """

    ordered: Counting
    sets: Counting
    categorical: np.ndarray


@inner
def counting_of_kept(count, min_rows, categorical, rows):
    """Where all packed moments have 0 < h <= most, a sum H is that of at least H / most rows, and a
    code occurs where its H is not 0.
    """
    values, n = rows.values, rows.values.shape[0]
    if count.one == 0 or rows.label.shape[0] > 0 or values.shape[1] == 2:
        return KeptCounting(count, count, categorical)
    least, most = np.int64(0xFFFFFFFF), np.int64(0)
    for t in range(n):
        h = values[t, 0] & np.int64(0xFFFFFFFF)
        least, most = min(least, h), max(most, h)
    if least == 0:
        return KeptCounting(count, count, categorical)
    sure = np.int64(min_rows * most)
    return KeptCounting(Counting(np.int64(0), np.int64(0), count.exact, sure), count, categorical)


@inner(forceinline=True)
def counting_of(kept, f):
    """How the rows of feature f are counted."""
    return kept.sets if kept.categorical[f] else kept.ordered


class Tally(NamedTuple):
    """The rows of a node, to be counted where it matters: order[start] ... order[stop - 1]."""

    codes: np.ndarray
    order: np.ndarray
    start: int
    stop: int


@inner
def count_rows(tally, f, m, runs):
    """Write how many rows of a node the runs of feature f have, up to and including each."""
    codes, order, feature, rows = tally.codes, tally.order, np.uint64(f), runs[ROWS_OF]
    place = runs[PLACE]
    for k in range(m):
        place[runs[CODE, k]], rows[k] = k, 0
    for t in range(np.uint64(tally.start), np.uint64(tally.stop)):
        rows[place[codes[np.uint64(order[t]), feature]]] += 1
    for k in range(1, m):
        rows[k] += rows[k - 1]


class PairWork(NamedTuple):
    """Scratch arrays of `split_pairs`: `sums` and `seen` are zero before and after.

    `words` is the memory of `seen`, eight codes at once; `scores` [7, run] is what scores are made
    of, and they; `keys` and `other` are for nodes of which more than SMALL rows are sorted.
    """

    sums: np.ndarray
    seen: np.ndarray
    words: np.ndarray
    runs: np.ndarray
    scores: np.ndarray
    sorting: Sorting
    keys: np.ndarray
    other: np.ndarray


def work_for(codes: np.ndarray, width: int, largest: int) -> PairWork:
    """For nodes of up to `largest` rows."""
    wide = width > WIDE
    n_words, long = (0, largest) if wide else (-(-width // 8), 0)
    seen = np.zeros(FEATURES * 8 * n_words, dtype=np.uint8)
    n_runs = max(8 * n_words, long, SMALL) + 1
    return PairWork(
        np.zeros(FEATURES * 16 * n_words, dtype=np.int64), seen, seen.view(np.uint64),
        np.empty((5, n_runs), dtype=np.int64), np.empty((7, n_runs)), sorting_for(codes),
        np.empty(long, dtype=np.uint64), np.empty(long, dtype=np.uint64),
    )  # fmt: skip


def works_for(codes: np.ndarray, width: int, largest: int, workers: int) -> PairWork:
    """Those of several workers, one after the other along the first axis."""
    work = work_for(codes, width, largest)

    def several(array: np.ndarray) -> np.ndarray:
        return np.repeat(array[None], workers, axis=0)

    sorting = Sorting(*(several(a) for a in work.sorting))
    seen = several(work.seen)
    others = {name: several(getattr(work, name)) for name in ("sums", "runs", "scores")}
    others |= {name: several(getattr(work, name)) for name in ("keys", "other")}
    return PairWork(seen=seen, words=seen.view(np.uint64), sorting=sorting, **others)


@inner
def work_of(works, worker):
    """The scratch arrays of a worker."""
    sorting = works.sorting
    return PairWork(
        works.sums[worker], works.seen[worker], works.words[worker], works.runs[worker],
        works.scores[worker],
        Sorting(sorting.keys[worker], sorting.places[worker], sorting.rank[worker]),
        works.keys[worker], works.other[worker],
    )  # fmt: skip


@inner(forceinline=True)
def pair(values, t):
    """A row's two moments, which may be packed in one integer (`Engine.moments`)."""
    if values.shape[1] == 2:
        return values[t, 0], values[t, 1]
    low = values[t, 0] & np.int64(0xFFFFFFFF)
    return low, (values[t, 0] - low) >> np.int64(32)


@inner(forceinline=True)
def sorted_runs(label, values, a, n, keys, shift, low, one, runs):
    """Runs of rows that are sorted: a key is (code - low) 2^shift + place; how many."""
    classes, m, last, mask = label.shape[0] > 0, -1, np.int64(-1), (1 << shift) - 1
    first, second, rows = np.int64(0), np.int64(0), np.int64(0)
    for k in range(n):
        own, t = (np.int64(keys[k]) >> shift) + low, a + (np.int64(keys[k]) & mask)
        if classes:
            w = values[t, 0]
            y = w if label[t] != 0 else np.int64(0)
            x = w - y
        else:
            x, y = pair(values, t)
        m += own != last
        first += x
        second += y
        rows += one
        runs[CODE, m], runs[FIRST, m], runs[SECOND, m], runs[ROWS_OF, m] = own, first, second, rows
        last = own
    m += 1
    return m if classes or one == 1 else _without_zeros(runs, m)


@inner(forceinline=True)
def _without_zeros(runs, n):
    """Runs that add up to nothing count as absent, as they do in sums by code."""
    m, before_x, before_y = 0, np.int64(0), np.int64(0)
    for k in range(n):
        x, y = runs[FIRST, k], runs[SECOND, k]
        runs[CODE, m], runs[FIRST, m], runs[SECOND, m], runs[ROWS_OF, m] = runs[CODE, k], x, y, 0
        m += x != before_x or y != before_y
        before_x, before_y = x, y
    return m


@inner(forceinline=True)
def add_rows(codes, order, label, values, a, b, f, count, sums, base, seen, mark):
    """Add up rows a ... b - 1 by the code of feature f: sums[base + 2 code + statistic]."""
    if label.shape[0] > 0 and count.one == 0:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            sums[base + np.uint64(2) * code + np.uint64(label[t])] += values[t, 0]
    elif label.shape[0] > 0:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            at = base + np.uint64(2) * code
            w = values[t, 0]
            y = w if label[t] != 0 else np.int64(0)
            sums[at] += ((w - y) << count.shift) + 1
            sums[at + np.uint64(1)] += y
    else:
        for t in range(a, b):
            code = np.uint64(codes[order[t], f])
            seen[mark + code] = 1
            at = base + np.uint64(2) * code
            x, y = pair(values, t)
            sums[at] += (x << count.shift) + count.one
            sums[at + np.uint64(1)] += y


@inner(forceinline=True)
def added_runs(sums, base, words, word, n_words, count, runs):
    """Runs of a node that was added up, which is cleared; how many."""
    m, rows_mask = 0, (np.int64(1) << count.shift) - 1
    first, second = np.int64(0), np.int64(0)
    for w in range(n_words):
        if words[word + w] == 0:
            continue
        words[word + w] = 0
        for b in range(8 * w, 8 * w + 8):
            at = base + np.uint64(2 * b)
            x, y = sums[at], sums[at + np.uint64(1)]
            sums[at], sums[at + np.uint64(1)] = 0, 0
            first += x
            second += y
            runs[CODE, m], runs[FIRST, m], runs[SECOND, m] = b, first >> count.shift, second
            runs[ROWS_OF, m] = first & rows_mask
            m += x != 0 or y != 0
    return m


@inner(forceinline=True)
def kept_runs(cells, count, runs):
    """Runs of a feature's kept sums [2, code]; how many."""
    m, rows_mask = np.int64(0), (np.int64(1) << count.shift) - 1
    first, second = np.int64(0), np.int64(0)
    codes, firsts, seconds, rows = runs[CODE], runs[FIRST], runs[SECOND], runs[ROWS_OF]
    for b in range(cells.shape[1]):
        x, y = cells[0, b], cells[1, b]
        first += x
        second += y
        codes[m], firsts[m], seconds[m] = b, first >> count.shift, second
        rows[m] = first & rows_mask
        m += (x != 0) | (y != 0)
    return m


@inner(forceinline=True)
def last_run(runs, m, c):
    """Sum c of the last of m runs alone."""
    return runs[FIRST + c, m - 1] - (runs[FIRST + c, m - 2] if m > 1 else np.int64(0))
