"""Losses over the pairs of queries: rows of a query at different levels (kernels/queries.py).

Pairs of the exponential loss factorise by level, and are never looked at one by one
(kernels/host/levels.py):

    dR/dF_i ~ e^F_i sum over higher rows of e^-F  -  e^-F_i sum over lower rows of e^F

Those of the logistic loss do not factorise: each costs a division, and none is stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import softplus
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels import exponential
from ensemble_gpu.kernels.host.levels import shifts, walk
from ensemble_gpu.kernels.queries import CUT, Queries, segment_bounds, segment_sums
from ensemble_gpu.losses.pairwise import PairLoss, integers, sums_by_row

# Pairs of queries that are looked at together by array calls.
BLOCK_PAIRS = 1 << 21


@dataclass(frozen=True)
class Terms:
    """What pairs of the exponential loss are products of (kernels/host/levels.py).

    a = e^(F - M) [row]; `down` and `up` its integers and those of e^(m - F), times weights [row];
    A and B their sums, e = e^(m - M), `below` = e^(P - M), `above` = e^(M - N) [segment, host].
    """

    a: Any
    down: Any
    up: Any
    A: np.ndarray
    B: np.ndarray
    e: np.ndarray
    below: np.ndarray
    above: np.ndarray


@dataclass(frozen=True, kw_only=True)
class QueryExponential(PairLoss):
    """phi(v) = e^-v of the pairs of queries: RankBoost's loss (Freund, Iyer, Schapire & Singer).

    Every term is relative to the highest or lowest F of its query and level: none overflows.
    Margins are cut to +-300.
    """

    name = "exponential"
    longest_step = 4.0
    kernel = "query exponential"
    queries: Queries = field(repr=False)

    def terms(self, F: Any) -> Terms:
        """e^F and e^-F of the rows, relative to the highest and lowest F of their segments."""
        queries = self.queries
        where, starts = queries.where, queries.starts
        xp = where.xp
        low, high = segment_bounds(F, queries.segment, starts, where)
        floor = where.full(-CUT)
        a = self.exp(xp.maximum(F - xp.take(where.put(high), queries.segment), floor))
        e = exponential.exp(np.maximum(low - high, -CUT), NUMPY)
        b = xp.take(where.put(e), queries.segment) / a
        down, up = (
            queries.with_weights_of(integers(terms, queries.bits, where)) for terms in (a, b)
        )
        below, above = np.empty((2, len(low)))
        shifts(queries.first, high, low, CUT, below, above)
        below, above = (exponential.exp(x, NUMPY) for x in (below, above))
        A, B = (segment_sums(terms, starts, where) for terms in (down, up))
        return Terms(a, down, up, A, B, e, below, above)

    def _parts(self, F: Any) -> tuple[Any, Any]:
        """What the pairs with lower and with higher rows add to each row: up and down."""
        queries, found = self.queries, self.terms(F)
        where, xp = queries.where, queries.where.xp
        A, B = found.A / 2.0**queries.bits, found.B / 2.0**queries.bits
        C, D = np.empty((2, len(A)))
        walk(queries.first, found.below, found.above, found.e, A, B, queries.factor, C, D)
        return (
            xp.take(where.put(C), queries.segment) / found.a,
            xp.take(where.put(D), queries.segment) * found.a,
        )

    def value(self, y: Any, F: Any) -> Any:
        return 2.0 * self._parts(F)[0]

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        up, down = self._parts(F)
        return down - up, down + up


@dataclass(frozen=True)
class PairBlock:
    """Pairs by the positions of their rows, and the weight of each (None: ones); `where` arrays."""

    upper: Any
    lower: Any
    weights: Any | None = None


def query_pairs(queries: Queries) -> Iterator[PairBlock]:
    """All pairs of the queries, in blocks; a weight is the product of two."""
    where, xp = queries.where, queries.where.xp
    row_query = np.repeat(np.arange(queries.n_queries), np.diff(queries.row_starts))
    own = np.repeat(queries.starts[:-1], np.diff(queries.starts))
    lower_rows = own - queries.row_starts[row_query]
    ends = np.cumsum(lower_rows)
    cuts = np.searchsorted(ends, np.arange(0, ends[-1], BLOCK_PAIRS), side="left")
    for a, b in zip(cuts, [*cuts[1:], len(ends)], strict=True):
        if a == b:
            continue
        rows, counts = np.arange(a, b), lower_rows[a:b]
        upper = np.repeat(rows, counts)
        offset = np.repeat(np.cumsum(counts) - counts, counts)
        lower = np.arange(len(upper)) - offset + queries.row_starts[row_query[upper]]
        up, down = where.put(upper), where.put(lower)
        w = queries.weights
        yield PairBlock(up, down, None if w is None else xp.take(w, up) * xp.take(w, down))


@dataclass(frozen=True, kw_only=True)
class QueryLogistic(PairLoss):
    """phi(v) = ln(1 + e^-v) of the pairs of queries: RankNet's loss.

    With E = e^(F - highest F of the query) a pair's derivative is -p, p = E_j / (E_i + E_j), its
    second p (1 - p): a division for each pair, which does not factorise. No pair is stored.
    """

    name = "logistic"
    longest_step = 8.0
    kernel = "query logistic"
    queries: Queries = field(repr=False)

    def _delta(self, F: Any) -> Any:
        """What pairs are multiplied by: a function of a block of them, or None."""
        return None

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        queries = self.queries
        where, n = queries.where, queries.n_rows
        xp = where.xp
        _, high = segment_bounds(F, queries.query, queries.row_starts, where)
        top = xp.take(where.put(high), queries.query)
        E = self.exp(xp.maximum(F - top, where.full(-CUT)))
        delta = self._delta(F)
        g, h = where.zeros(n, xp.int64), where.zeros(n, xp.int64)
        for pairs in query_pairs(queries):
            above, below = xp.take(E, pairs.upper), xp.take(E, pairs.lower)
            total = above + below
            p = below / total
            p = p if delta is None else p * delta(pairs)
            terms = [integers(t, queries.bits, where) for t in (p, p * (above / total))]
            for rows, other in ((pairs.upper, pairs.lower), (pairs.lower, pairs.upper)):
                slope, curve = terms
                if queries.weights is not None:
                    w = xp.take(queries.weights, other)
                    slope, curve = slope * w, curve * w
                slope = sums_by_row(rows, slope, n, where)
                g = g - slope if rows is pairs.upper else g + slope
                h = h + sums_by_row(rows, curve, n, where)
        factor = xp.take(where.put(queries.factor), queries.query)
        scale = 2.0**queries.bits
        g, h = (where.as_float64(x) / scale * factor for x in (g, h))
        return g, h

    def value(self, y: Any, F: Any) -> Any:
        """Twice what the pairs with lower rows add to each row."""
        queries = self.queries
        where, n = queries.where, queries.n_rows
        xp = where.xp
        total = where.zeros(n, xp.int64)
        factor = xp.take(where.put(queries.factor), queries.query)
        for pairs in query_pairs(queries):
            v = xp.take(F, pairs.upper) - xp.take(F, pairs.lower)
            # ln(1 + e^-v) / 512 is below 1
            term = softplus(-xp.maximum(v, where.full(-CUT)), self.exp) / 512.0
            q = integers(term, queries.bits, where)
            if queries.weights is not None:
                q = q * xp.take(queries.weights, pairs.lower)
            total = total + sums_by_row(pairs.upper, q, n, where)
        return where.as_float64(total) / 2.0**queries.bits * (1024.0 * factor)
