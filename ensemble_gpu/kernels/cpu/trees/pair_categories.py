"""The best set of categories to go left, of nodes with two statistics.

Categories are put in order of their mean response, and what lies behind each of them is scored like
the thresholds of a number (pair_scores.py): what kernels/host/search.py would find.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.trees.pair_runs import CODE, FIRST, ROWS_OF, SECOND, last_run
from ensemble_gpu.kernels.cpu.trees.pair_scores import counts_rows, offer, response, scan
from ensemble_gpu.kernels.host.records import (
    ABOVE,
    BIN,
    FEATURE,
    HAS_MISSING,
    MISSING_LEFT,
    Best,
    Runs,
    runs_for,
)
from ensemble_gpu.kernels.host.search import Node, try_feature
from ensemble_gpu.kernels.host.sorting import sort_places
from ensemble_gpu.kernels.jit import inner


class Categories(NamedTuple):
    """Scratch arrays: the order of categories, the runs in that order, and what a sort needs."""

    order: np.ndarray
    runs: np.ndarray
    keys: np.ndarray
    other: np.ndarray
    general: Runs


def categories_for(width: int, columns: int, workers: int) -> Categories:
    """Those of several workers, one after the other along the first axis."""
    return Categories(
        np.empty((workers, width), dtype=np.int64),
        np.empty((workers, 4, width), dtype=np.int64),
        np.empty((workers, width)),
        np.empty((workers, width), dtype=np.int64),
        Runs(*(np.repeat(a[None], workers, axis=0) for a in runs_for(width, columns))),
    )


@inner
def categories_of(several, worker):
    """The scratch arrays of a worker; None: no feature has categories."""
    if several is None:
        return None
    general = several.general
    return Categories(
        several.order[worker], several.runs[worker], several.keys[worker], several.other[worker],
        Runs(
            general.code[worker], general.cell[worker], general.missing_sums[worker],
            general.order[worker], general.work[worker],
        ),
    )  # fmt: skip


@inner
def _arrange(kind, runs, m, own):
    """The first m runs in order of their mean response, those of equal ones as they are."""
    order, keys, into = own.order, own.keys, own.runs
    for k in range(m):
        order[k], keys[k] = (
            k,
            response(kind, 0.0, last_run(runs, k + 1, 0), last_run(runs, k + 1, 1)),
        )
    sort_places(keys, order, np.int64(0), m, own.other)
    first, second, rows = np.int64(0), np.int64(0), np.int64(0)
    for k in range(m):
        run = order[k] + 1
        first += last_run(runs, run, 0)
        second += last_run(runs, run, 1)
        rows += last_run(runs, run, 2)
        into[CODE, k], into[FIRST, k], into[SECOND, k] = runs[CODE, order[k]], first, second
        into[ROWS_OF, k] = rows


@inner
def _offer_each(rule, f, runs, m, missing, node, width, i, best, found, general):
    """Offer every category against all others."""
    whole, columns = node.whole, node.whole.shape[0]
    for c in range(columns):
        general.missing_sums[c] = last_run(runs, m + 1, c) if missing else np.int64(0)
    for k in range(m):
        general.code[k] = runs[CODE, k]
        for c in range(columns):
            general.cell[k, c] = last_run(runs, k + 1, c)
    found.score[i] = best
    place = Best(found.score[i : i + 1], found.record[i], found.left[i], found.subset[i])
    try_feature(rule, f, general, m, Node(whole, node.bounds, node.key), width - 1, place)
    return found.score[i]


@inner
def offer_categories(judge, rule, f, runs, scores, m, node, batch, at, width, i, best, found, own):
    """Offer the m runs of feature f, whose rows are counted, to entry `at` of a batch."""
    g0, g1, gn = np.int64(0), np.int64(0), np.int64(0)
    missing = m > 0 and runs[CODE, m - 1] == width - 1
    if missing:
        g0, g1, gn = last_run(runs, m, 0), last_run(runs, m, 1), last_run(runs, m, 2)
        m -= 1
    if m == 0 or (m == 1 and not missing):
        return best
    if rule.one_category:
        whole = Node(batch.whole[at], batch.bounds[at], batch.key[at])
        return _offer_each(rule, f, runs, m, missing, whole, width, i, best, found, own.general)
    _arrange(judge.kind, runs, m, own)
    ordered, sign = own.runs, np.int64(0)
    score, last, to_left, _ = scan(
        counts_rows(judge), sign, ordered, m, node, g0, g1, gn, missing, best, scores
    )
    if last < 0:
        return best
    record, left, subset = found.record, found.left, found.subset
    record[i, FEATURE], record[i, BIN], record[i, ABOVE] = f, -1, 0
    record[i, MISSING_LEFT], record[i, HAS_MISSING] = to_left, missing
    left[i, 0] = ordered[FIRST, last] + (g0 if to_left else np.int64(0))
    left[i, 1] = ordered[SECOND, last] + (g1 if to_left else np.int64(0))
    for w in range(subset.shape[1]):
        subset[i, w] = 0
    for k in range(last + 1):
        code = ordered[CODE, k]
        subset[i, code // 64] |= np.uint64(1) << np.uint64(code % 64)
    return score


@inner(forceinline=True)
def offer_to(judge, rule, f, m, node, batch, at, width, i, best, found, work, categories, tally):
    """`offer` to entry `at` of a batch, whatever the codes of the feature are."""
    # the first condition is decided by the compiler, the second by the feature
    if categories is not None:  # noqa: SIM102
        if rule.categorical[f]:
            return offer_categories(
                judge, rule, f, work.runs, work.scores, m, node, batch, at, width, i, best, found,
                categories,
            )  # fmt: skip
    return offer(
        judge, rule.signs[f], f, work.runs, work.scores, m, node, width, i, best, found, tally
    )
