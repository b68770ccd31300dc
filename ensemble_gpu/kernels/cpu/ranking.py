"""Gradients of losses over pairs of rows, a query at a time.

The same operations in the same order as losses/by_query.py and losses/lambdas.py, hence the same
bits: integers are added up within a query, and threads share queries. kernels/queries.py has the
order of the rows.

exponential  two sums a segment and a walk through the levels (kernels/host/levels.py): a pass costs
             an exponential and three divisions a row, whatever the number of pairs.
logistic     e^F of every row, and a division for each pair; no pair is kept.
lambda       the same, and each pair times the change of NDCG if the two changed places.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.descent import finish, move
from ensemble_gpu.kernels.cpu.losses import BLOCK, SHIFT, SHIFT_BITS, exp_block, space
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.host.levels import shifts_of_query, walk_query
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.queries import CUT

EXPONENTIAL, LOGISTIC, LAMBDA = range(3)
KINDS = {
    "query exponential": EXPONENTIAL, "query logistic": LOGISTIC, "query lambda": LAMBDA,
}  # fmt: skip


class QueryArrays(NamedTuple):
    """A `Queries` and what the lambda loss has besides; empty where there are none of it.

    `unit` is 2^bits; `most` the segments and `longest` the rows of a query at most. Of rows with
    equal scores the first in order of `ties` has the better rank; `gains` [segment], `best` [query]
    one divided by the highest DCG, `discounts` [rank]; `truncation` is the last rank, from 1 on, of
    which every pair counts.
    """

    starts: np.ndarray
    first: np.ndarray
    factor: np.ndarray
    weights: np.ndarray
    unit: float
    most: int
    longest: int
    ties: np.ndarray
    gains: np.ndarray
    best: np.ndarray
    discounts: np.ndarray
    truncation: int


def arrays_of(loss: Any) -> QueryArrays:
    """What the kernels take of a loss; made once for each."""
    queries = loss.queries
    sizes = np.diff(queries.row_starts)
    nothing, none = np.zeros(0, dtype=np.int64), np.zeros(0)
    ranks = getattr(loss, "ranks", None)
    return QueryArrays(
        queries.starts,
        queries.first,
        queries.factor,
        nothing if queries.weights is None else queries.weights,
        2.0**queries.bits,
        int(np.diff(queries.first).max()),
        int(sizes.max()),
        nothing if queries.ties is None else queries.ties,
        none if ranks is None else ranks.gains,
        none if ranks is None else ranks.best,
        none if ranks is None else ranks.discounts,
        0 if ranks is None else ranks.truncation,
    )


@inner
def _add_terms(n, x, unit, weights, a, work):
    """Sum of W rint(x unit) of n <= BLOCK terms; `a` is the row of the first."""
    shifted, bits = work.shifted, work.bits
    for i in range(n):
        shifted[i] = x[i] * unit + SHIFT
    total = np.int64(0)
    if weights.shape[0] > 0:
        for i in range(n):
            total += (bits[i] - SHIFT_BITS) * weights[a + i]
    else:
        for i in range(n):
            total += bits[i] - SHIFT_BITS
    return total


@inner
def _bounds(x):
    low = high = x[0]
    for i in range(1, x.shape[0]):
        low = min(low, x[i])
        high = max(high, x[i])
    return low, high


@inner
def _exponential(s0, s1, queries, F, digits, work, levels, x, g, h):
    """g and h of the rows of a query, whose F begins with its first row."""
    starts, unit, weights = queries.starts, queries.unit, queries.weights
    r0, n = starts[s0], starts[s1] - starts[s0]
    high, low, e, A, B, below, above, _, _ = levels
    for s in range(s0, s1):
        a, b, k = starts[s] - r0, starts[s + 1] - r0, s - s0
        low[k], high[k] = _bounds(F[a:b])
        top = high[k]
        for i in range(a, b):
            x[i] = max(F[i] - top, -CUT)
        e[k] = max(low[k] - top, -CUT)
    for a in range(0, n, BLOCK):
        b = min(a + BLOCK, n)
        exp_block(b - a, x[a:b], digits, work, g[a:b])
    count = s1 - s0
    shifts_of_query(0, count, high, low, CUT, below, above)
    for part in (e, below, above):
        for a in range(0, count, BLOCK):
            b = min(a + BLOCK, count)
            exp_block(b - a, part[a:b], digits, work, part[a:b])
    for s in range(s0, s1):
        a, b, k = starts[s] - r0, starts[s + 1] - r0, s - s0
        up = down = np.int64(0)
        for c in range(a, b, BLOCK):
            d = min(c + BLOCK, b)
            up += _add_terms(d - c, g[c:d], unit, weights, r0 + c, work)
            for i in range(c, d):
                h[i] = e[k] / g[i]
            down += _add_terms(d - c, h[c:d], unit, weights, r0 + c, work)
        A[k], B[k] = up / unit, down / unit
    return count


@inner
def _exponential_rows(s0, s1, queries, levels, g, h):
    """From a_i = e^(F_i - M) in g to gradients: down = D a and up = C / a, down -+ up."""
    starts = queries.starts
    r0, C, D = starts[s0], levels[7], levels[8]
    for s in range(s0, s1):
        below, above = C[s - s0], D[s - s0]
        for i in range(starts[s] - r0, starts[s + 1] - r0):
            down, up = above * g[i], below / g[i]
            g[i] = down - up
            h[i] = down + up


@inner
def _discounts(s0, s1, queries, F, out, rank):
    """The rank of every row of a query, and what stands at it; ties in their order."""
    r0, n = queries.starts[s0], queries.starts[s1] - queries.starts[s0]
    negative = np.empty(n)
    for t in range(n):
        negative[t] = -F[queries.ties[r0 + t]]
    order = np.argsort(negative, kind="mergesort")
    for place in range(n):
        i = queries.ties[r0 + order[place]]
        rank[i] = place
        out[i] = queries.discounts[place]


@inner
def _pairs(q, ranked, queries, F, digits, work, x, integers, g, h):
    """g and h of the rows of a query, pair by pair: p = E_j / (E_i + E_j), i above j, and p (1-p).

    Times delta, the change of NDCG, where `ranked`.
    """
    starts, unit, weights = queries.starts, queries.unit, queries.weights
    s0, s1 = queries.first[q], queries.first[q + 1]
    r0, n = starts[s0], starts[s1] - starts[s0]
    _, top = _bounds(F)
    E, down, both = g, integers[0], integers[1]
    for i in range(n):
        x[i] = max(F[i] - top, -CUT)
        down[i] = 0
        both[i] = 0
    for a in range(0, n, BLOCK):
        b = min(a + BLOCK, n)
        exp_block(b - a, x[a:b], digits, work, E[a:b])
    rank = integers[2]
    if ranked:
        _discounts(s0, s1, queries, F, x, rank)
    weighted = weights.shape[0] > 0
    own = lower = np.int64(1)
    for s in range(s0 + 1, s1):
        before = starts[s] - r0
        for i in range(before, starts[s + 1] - r0):
            up = squared = np.int64(0)
            if weighted:
                own = weights[r0 + i]
            t, k = s0, starts[s0 + 1] - r0
            for j in range(before):
                total = E[i] + E[j]
                p = E[j] / total
                r = E[i] / total
                if ranked:
                    while j >= k:
                        t += 1
                        k = starts[t + 1] - r0
                    if min(rank[i], rank[j]) >= queries.truncation:
                        continue
                    gained = (queries.gains[s] - queries.gains[t]) * queries.best[q]
                    p = p * (gained * abs(x[i] - x[j]))
                slope = np.int64(np.rint(p * unit))
                curve = np.int64(np.rint(p * r * unit))
                if weighted:
                    lower = weights[r0 + j]
                up += lower * slope
                squared += lower * curve
                down[j] += own * slope
                both[j] += own * curve
            down[i] -= up
            both[i] += squared
    factor = queries.factor[q]
    for i in range(n):
        g[i] = down[i] / unit * factor
        h[i] = both[i] / unit * factor


@inner
def _query(q, kind, queries, F, digits, work, levels, x, integers, g, h):
    """g and h of the rows of query q, in the order of its rows."""
    s0, s1 = queries.first[q], queries.first[q + 1]
    if kind == EXPONENTIAL:
        count = _exponential(s0, s1, queries, F, digits, work, levels, x, g, h)
        _, _, e, A, B, below, above, C, D = levels
        walk_query(0, count, below, above, e, A, B, queries.factor[q], C, D)
        _exponential_rows(s0, s1, queries, levels, g, h)
    else:
        _pairs(q, kind == LAMBDA, queries, F, digits, work, x, integers, g, h)


@inner
def _levels(most):
    return (
        np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most),
        np.empty(most), np.empty(most), np.empty(most), np.empty(most),
    )  # fmt: skip


@inner
def _derivatives_of(worker, start, stop, kind, queries, F, digits, g, h):
    levels, work = _levels(queries.most), space()
    x, integers = np.empty(queries.longest), np.empty((3, queries.longest), dtype=np.int64)
    for q in range(start, stop):
        a, b = queries.starts[queries.first[q]], queries.starts[queries.first[q + 1]]
        _query(q, kind, queries, F[a:b], digits, work, levels, x, integers, g[a:b], h[a:b])


@kernel
def derivatives(crew, kind, queries, F, digits, g, h):
    """g and h of all rows."""
    n = queries.first.shape[0] - 1
    share(crew, n, _derivatives_of, (kind, queries, F, digits, g, h))


@inner
def _pass_of(worker, start, stop, kind, flat, queries, F, index, table, part, units, digits, packed,
             tops):  # fmt: skip
    levels, work = _levels(queries.most), space()
    x, integers = np.empty(queries.longest), np.empty((3, queries.longest), dtype=np.int64)
    g, h = np.empty(queries.longest), np.empty(queries.longest)
    for q in range(start, stop):
        a, b = queries.starts[queries.first[q]], queries.starts[queries.first[q + 1]]
        own = F[0, a:b]
        if index.shape[0] > 0:
            move(b - a, own, index[a:b], table[0])
        _query(q, kind, queries, own, digits, work, levels, x, integers, g, h)
        for c in range(0, b - a, BLOCK):
            d = min(c + BLOCK, b - a)
            finish(d - c, a + c, g[c:d], h[c:d], flat, part, units, work, packed[0], tops[worker])


@kernel
def query_pass(crew, kind, flat, queries, F, index, table, part, units, digits, packed, tops):
    """`GradientPass` of a loss over pairs."""
    n = queries.first.shape[0] - 1
    share(
        crew, n, _pass_of,
        (kind, flat, queries, F, index, table, part, units, digits, packed, tops),
    )  # fmt: skip
