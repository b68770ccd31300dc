"""The best splits of many nodes with two statistics: the usual case, made fast.

Most nodes of a tree have few rows, so a node costs little besides them: its runs (pair_runs.py)
come from sorted rows or from sums by code, and are scored feature by feature (pair_scores.py).
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.trees.meetings import n_listed
from ensemble_gpu.kernels.cpu.trees.pair_categories import offer_to
from ensemble_gpu.kernels.cpu.trees.pair_runs import add_rows, added_runs, sorted_runs
from ensemble_gpu.kernels.cpu.trees.pair_scores import judge_of, offer, pair_node
from ensemble_gpu.kernels.cpu.trees.rows import FEATURES, ROWS, SMALL
from ensemble_gpu.kernels.cpu.trees.sorting import SHIFT, sort_rows, sorted_keys
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import GINI

# In the loops below arrays have names of their own: reading one out of a tuple counts references.


@inner
def search_rows(rule, count, rows, which, first, last, batch, found, work, categories):
    """The best splits of the nodes which[first:last] of a batch, into their places of `found`.

    `categories` (None: no feature has any) are scratch arrays.
    """
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    keys, places, rank = work.sorting.keys, work.sorting.places, work.sorting.rank
    sums, seen, words, runs = work.sums, work.seen, work.words, work.runs
    starts, stops, features = batch.start, batch.stop, batch.features
    score, width, judge = found.score, rows.width, judge_of(rule, count)
    n_words, gini = -(-width // 8), rule.kind == GINI
    stride, apart = np.uint64(16 * n_words), np.uint64(8 * n_words)
    for at in range(first, last):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        start, stop, node, tried = starts[i], stops[i], pair_node(batch, i), n_listed(features, own)
        n, best = stop - start, score[i]
        small = n <= SMALL
        for g in range(0, tried, FEATURES):
            end = min(g + FEATURES, tried)
            if not small:
                for a in range(start, stop, ROWS):
                    b = min(a + ROWS, stop)
                    for j in range(g, end):
                        f, slot = np.uint64(features[own, j]), np.uint64(j - g)
                        add_rows(
                            codes, order, label, values, a, b, f, count, sums, slot * stride,
                            seen, slot * apart,
                        )  # fmt: skip
            for j in range(g, end):
                f, slot = features[own, j], j - g
                if gini and small and best == 0.0:
                    break  # pure children: there is no better split
                if small:
                    sorted_keys(codes, order, start, n, np.uint64(f), keys, rank, places)
                    m = sorted_runs(label, values, start, n, places, SHIFT, 0, count.one, runs)
                else:
                    base = np.uint64(slot) * stride
                    m = added_runs(sums, base, words, slot * n_words, n_words, count, runs)
                best = offer_to(
                    judge, rule, f, m, node, batch, i, width, i, best, found, work, categories, None
                )
        score[i] = best


@kernel
def split_pairs(rule, count, rows, which, batch, found, work):
    """`search_rows` for Python."""
    search_rows(rule, count, rows, which, 0, which.shape[0], batch, found, work, None)


@kernel
def split_wide_pairs(rule, count, rows, which, batch, found, work):
    """`split_pairs` for more than WIDE codes: the rows of every node are sorted."""
    codes, order, label, values = rows.codes, rows.order, rows.label, rows.values
    keys, places, rank = work.sorting.keys, work.sorting.places, work.sorting.rank
    long_keys, other, runs = work.keys, work.other, work.runs
    starts, stops, features = batch.start, batch.stop, batch.features
    score, width, judge = found.score, rows.width, judge_of(rule, count)
    for at in range(which.shape[0]):
        i = which[at]
        own = at if features.shape[0] > 1 else 0
        start, n, node = starts[i], stops[i] - starts[i], pair_node(batch, i)
        best = score[i]
        for j in range(features.shape[1]):
            f = features[own, j]
            if n <= SMALL:
                sorted_keys(codes, order, start, n, np.uint64(f), keys, rank, places)
                m = sorted_runs(label, values, start, n, places, SHIFT, 0, count.one, runs)
            else:
                low = sort_rows(codes, order, start, n, np.uint64(f), long_keys, other)
                m = sorted_runs(label, values, start, n, long_keys, 32, low, count.one, runs)
            sign = rule.signs[f]
            best = offer(judge, sign, f, runs, work.scores, m, node, width, i, best, found, None)
        score[i] = best
