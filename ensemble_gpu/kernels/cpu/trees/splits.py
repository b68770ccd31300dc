"""The best splits of nodes of any kind on the CPU: sums per code, then kernels/host/search.py.

Only codes that occurred are looked at, because most nodes have few rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.class_splits import (
    COUNTED_PLACE,
    COUNTED_SHIFT,
    best_cut,
    best_gini_cut,
    counted_keys,
    keep_cut,
    left_sums,
    present_classes,
)
from ensemble_gpu.kernels.cpu.trees.meetings import n_listed
from ensemble_gpu.kernels.cpu.trees.rows import SMALL, WIDE
from ensemble_gpu.kernels.cpu.trees.sorting import PLACE, SHIFT, sort_rows, sorted_keys
from ensemble_gpu.kernels.cpu.trees.sums import add
from ensemble_gpu.kernels.host.records import FEATURE, Best, Runs, runs_for
from ensemble_gpu.kernels.host.search import Node, runs_of, try_feature
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import EXACT_WEIGHT, GINI

LOW_HALF = np.uint64(0xFFFFFFFF)


class NodeWork(NamedTuple):
    """Scratch arrays of `split_nodes`: `sums` [code, column] and `seen` are zero before and after.

    `keys` and `other` are for rows that are sorted instead, where there are more than WIDE codes.
    """

    sums: np.ndarray
    seen: np.ndarray
    words: np.ndarray
    keys: np.ndarray
    other: np.ndarray
    runs: Runs


def node_work(width: int, columns: int, largest: int) -> NodeWork:
    """For nodes of up to `largest` rows."""
    added, sorted_ = (0, largest) if width > WIDE else (width, 0)
    seen = np.zeros(-(-added // 8) * 8, dtype=np.uint8)
    return NodeWork(
        np.zeros((added, columns), dtype=np.int64), seen, seen.view(np.uint64),
        np.empty(sorted_, dtype=np.uint64), np.empty(sorted_, dtype=np.uint64),
        runs_for(added + sorted_, columns),
    )  # fmt: skip


@inner
def _collect(seen, words, sums, missing_code, runs):
    """The runs of the codes seen, which are cleared; how many. `missing_sums` gets the missing."""
    m, code, cell, columns = 0, runs.code, runs.cell, sums.shape[1]
    for c in range(columns):
        runs.missing_sums[c] = 0
    for word in range(words.shape[0]):
        if words[word] == 0:
            continue
        for b in range(8 * word, 8 * word + 8):
            if seen[b] == 0:
                continue
            occurs = False
            for c in range(columns):
                value = sums[b, c]
                occurs = occurs or value != 0
                sums[b, c] = 0
                cell[m, c] = value
            if occurs and b == missing_code:
                for c in range(columns):
                    runs.missing_sums[c] = cell[m, c]
            elif occurs:
                code[m] = b
                m += 1
        words[word] = 0
    return m


@inner
def _sorted_cells(rows, a, n, f, counted, keys, other, runs):
    """`_collect` of rows that are sorted by their codes instead."""
    code, cell, label, values = runs.code, runs.cell, rows.label, rows.values
    low = sort_rows(rows.codes, rows.order, a, n, f, keys, other)
    columns, labelled = cell.shape[1], label.shape[0] > 0
    n_stats, m, last = columns - counted, np.int64(-1), np.int64(-1)
    for k in range(n):
        own, t = np.int64(keys[k] >> np.uint64(32)), np.uint64(a) + (keys[k] & LOW_HALF)
        if own != last:
            m += 1
            code[m], last = own + low, own
            for c in range(columns):
                cell[m, c] = 0
        if labelled:
            cell[m, np.uint64(label[t])] += values[t, 0]
        else:
            for s in range(n_stats):
                cell[m, s] += values[t, s]
        if counted:
            cell[m, n_stats] += 1
    missing = code[m] == rows.width - 1
    for c in range(columns):
        runs.missing_sums[c] = cell[m, c] if missing else 0
    m += not missing
    return m if labelled or counted else _without_zeros(code, cell, m)


@inner
def _without_zeros(code, cell, n):
    """Runs that add up to nothing count as absent, as in `_collect`."""
    m = 0
    for k in range(n):
        occurs = False
        for c in range(cell.shape[1]):
            occurs = occurs or cell[k, c] != 0
            cell[m, c] = cell[k, c]
        code[m] = code[k]
        m += occurs
    return m


@inner
def _runs(rows, a, n, f, counted, work):
    """The runs of feature f in rows a ... a + n - 1; how many."""
    if rows.width > WIDE:
        return _sorted_cells(rows, a, n, f, counted, work.keys, work.other, work.runs)
    add(rows, a, a + n, f, counted, work.sums, work.seen)
    return _collect(work.seen, work.words, work.sums, rows.width - 1, work.runs)


@inner
def search_nodes(rule, rows, which, batch, found, work):
    """The best splits of the nodes `which` of a batch, into their places of `found`."""
    features, n_codes = batch.features, rows.width - 1
    for at in range(which.shape[0]):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        a, n = batch.start[i], batch.stop[i] - batch.start[i]
        node = Node(batch.whole[i], batch.bounds[i], batch.key[i])
        best = Best(found.score[i : i + 1], found.record[i], found.left[i], found.subset[i])
        for j in range(n_listed(features, own)):
            f = features[own, j]
            m = _runs(rows, a, n, np.uint64(f), rule.counted, work)
            try_feature(rule, f, work.runs, m, node, n_codes, best)


@inner
def search_class_nodes(rule, rows, which, batch, found, work, classes):
    """`search_nodes` of classes without conditions: nodes of few rows have searches of their own.

    Where values are missing the general one looks at the feature. A node whose children are pure
    has no better split.
    """
    # arrays have names of their own: reading one out of a tuple counts references
    features, n_codes, record, score = batch.features, rows.width - 1, found.record, found.score
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    keys, places, rank = classes.sorting.keys, classes.sorting.places, classes.sorting.rank
    owner, total, left, right = classes.own, classes.total, classes.left, classes.right
    long_keys, counts = classes.keys, classes.counts
    kind, logs, shift = rule.kind, rule.logs, np.uint64(COUNTED_SHIFT)
    n_sorted = long_keys.shape[0] if kind == GINI else np.int64(0)
    for at in range(which.shape[0]):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        a, n = batch.start[i], batch.stop[i] - batch.start[i]
        node = Node(batch.whole[i], batch.bounds[i], batch.key[i])
        best = Best(score[i : i + 1], record[i], found.left[i], found.subset[i])
        small, q, weight, at_feature = n <= SMALL, np.int64(0), np.int64(0), np.int64(-1)
        if small or n <= n_sorted:
            q, weight = present_classes(label, a, n, batch.whole[i], classes)
        exact = kind == GINI and weight < EXACT_WEIGHT
        for j in range(n_listed(features, own)):
            if exact and score[i] == float(weight):
                break
            f, cut, higher = features[own, j], np.int64(-1), score[i]
            below, above, highest = np.int64(0), np.int64(0), n_codes
            if small:
                sorted_keys(codes, order, a, n, np.uint64(f), keys, rank, places)
                highest = np.int64(places[n - 1] >> SHIFT)
                if exact and highest < n_codes:
                    higher, cut = best_gini_cut(
                        SHIFT, PLACE, values, a, n, places, owner, left, total, q, weight, higher
                    )
                elif highest < n_codes:
                    for c in range(q):
                        right[c] = total[c]
                    higher, cut = best_cut(
                        kind, logs, values, a, n, places, owner, left, right, q, weight, higher
                    )
                if cut >= 0:
                    below, above = places[cut] >> SHIFT, places[cut + 1] >> SHIFT
            elif exact and n <= n_sorted:
                counted_keys(codes, order, a, n, np.uint64(f), counts, long_keys)
                highest = np.int64(long_keys[n - 1] >> shift)
                if highest < n_codes:
                    higher, cut = best_gini_cut(
                        shift, np.uint64(COUNTED_PLACE), values, a, n, long_keys, owner, left,
                        total, q, weight, higher,
                    )  # fmt: skip
                if cut >= 0:
                    below, above = long_keys[cut] >> shift, long_keys[cut + 1] >> shift
            if cut >= 0:
                score[i], at_feature = higher, f
                keep_cut(i, f, below, above, found)
            elif highest == n_codes:
                m = _runs(rows, a, n, np.uint64(f), rule.counted, work)
                try_feature(rule, f, work.runs, m, node, n_codes, best)
        if at_feature >= 0 and record[i, FEATURE] == at_feature:
            left_sums(rows, a, n, record[i], found.left[i])


@kernel
def split_nodes(rule, rows, which, batch, found, work):
    """`search_nodes` for Python."""
    search_nodes(rule, rows, which, batch, found, work)


@kernel
def split_class_nodes(rule, rows, which, batch, found, work, classes):
    """`search_class_nodes` for Python."""
    search_class_nodes(rule, rows, which, batch, found, work, classes)


@kernel
def search_sums(rule, pool, slots, batch, lo, hi, found, runs):
    """The best splits on features lo ... hi - 1 of nodes whose sums are pool[slot]."""
    n_codes = pool.shape[2] - 1
    for i in range(slots.shape[0]):
        sums = pool[slots[i]]
        node = Node(batch.whole[i], batch.bounds[i], batch.key[i])
        best = Best(found.score[i : i + 1], found.record[i], found.left[i], found.subset[i])
        for f in range(lo, hi):
            m = runs_of(sums[f], runs)
            try_feature(rule, f, runs, m, node, n_codes, best)
