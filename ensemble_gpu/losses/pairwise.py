"""Losses over pairs of rows: i is to be ranked above j.

    R(F) = sum over pairs w_ij phi(F_i - F_j) / sum w_ij,    phi(v) = e^-v  or  ln(1 + e^-v)

A constant added to F changes nothing. Derivatives are those of n R / 2 with respect to single F_i,
n the weight of the rows: with them the second derivatives of rows that weigh 1 have the size that
they have in classification.

Pairs are the rows of a query at different levels (kernels/queries.py), or they are given
(`PairList`). Of the exponential loss those of a query factorise by level, and are never looked at
one by one (kernels/host/levels.py):

    dR/dF_i ~ e^F_i sum over higher rows of e^-F  -  e^-F_i sum over lower rows of e^F

Terms are added up as integers, so a gradient does not depend on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import LARGEST_EXPONENT, softplus
from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.kernels import exponential
from ensemble_gpu.kernels.host.levels import shifts, walk
from ensemble_gpu.kernels.queries import CUT, Queries, segment_bounds, segment_sums
from ensemble_gpu.losses.base import RANKING, Loss
from ensemble_gpu.model.link import IDENTITY

# Pairs of queries that are looked at together by array calls.
BLOCK_PAIRS = 1 << 21


@dataclass(frozen=True, kw_only=True)
class PairLoss(Loss):
    """What losses over pairs have in common; y is part of the pairs."""

    task = RANKING
    link_name = IDENTITY
    by_row = False

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """0: every constant is as good."""
        return np.zeros(1)


def integers(terms: Any, bits: int, where: Where) -> Any:
    """Terms in (0, 1] as int64 multiples of 2^-bits."""
    return where.xp.astype(where.xp.round(terms * 2.0**bits), where.xp.int64)


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


def sums_by_row(index: Any, terms: Any, n_rows: int, where: Where) -> Any:
    """Sums of int64 terms of the rows `index`, where the terms are: exact modulo 2^64."""
    xp = where.xp
    order = xp.argsort(index, stable=True)
    running = xp.cumulative_sum(xp.take(terms, order), dtype=xp.int64)
    running = xp.concat([where.zeros(1, xp.int64), running])
    rows = xp.arange(n_rows + 1, dtype=index.dtype, device=where.device)
    ends = xp.take(running, xp.searchsorted(xp.take(index, order), rows, side="left"))
    return ends[1:] - ends[:-1]


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


@dataclass(frozen=True)
class Ranks:
    """What the change of NDCG is made of.

    Gains of the levels [segment], the inverse of each query's highest DCG [query] (0: none of its
    rows is relevant), discounts 1 / log2(2 + rank), ranks from 0 on, and up to which of them pairs
    count.
    """

    gains: np.ndarray
    best: np.ndarray
    discounts: np.ndarray
    truncation: int


@dataclass(frozen=True, kw_only=True)
class QueryLambda(QueryLogistic):
    """The logistic loss of pairs, each times |change of NDCG| if its rows changed places.

        delta_ij = (gain_i - gain_j) |d(rank_i) - d(rank_j)| / highest DCG of the query

    (LambdaMART, Burges 2010.) Pairs both of whose rows rank below `truncation` are left out. Equal
    scores are ranked by a hash of what the rows hold. The derivatives are not those of a function;
    the value is 1 - NDCG, the mean over queries that have relevant rows.
    """

    name = "lambda"
    convex = False
    kernel = "query lambda"
    ranks: Ranks = field(repr=False)

    def _places(self, F: Any) -> Any:
        """The rank of every row in its query, int64."""
        queries = self.queries
        where, xp = queries.where, queries.where.xp
        starts = xp.take(where.put(queries.row_starts[:-1].astype(np.int64)), queries.query)
        by_tie = queries.ties + starts  # positions of rows, query by query, in the order of ties
        order = xp.argsort(-xp.take(F, by_tie), stable=True)
        order = xp.take(order, xp.argsort(xp.take(queries.query, order), stable=True))
        rows = xp.take(by_tie, order)  # query by query, best first
        place = xp.arange(queries.n_rows, dtype=xp.int64, device=where.device) - starts
        return xp.take(place, xp.argsort(rows, stable=True))

    def _delta(self, F: Any) -> Any:
        queries, ranks = self.queries, self.ranks
        where, xp = queries.where, queries.where.xp
        place = self._places(F)
        discount = xp.take(where.put(ranks.discounts), place)
        gains, best = where.put(ranks.gains), where.put(ranks.best)
        zero = where.full(0.0)

        def delta(pairs: PairBlock) -> Any:
            gain = xp.take(gains, xp.take(queries.segment, pairs.upper)) - xp.take(
                gains, xp.take(queries.segment, pairs.lower)
            )
            gain = gain * xp.take(best, xp.take(queries.query, pairs.upper))
            step = xp.abs(xp.take(discount, pairs.upper) - xp.take(discount, pairs.lower))
            first = xp.minimum(xp.take(place, pairs.upper), xp.take(place, pairs.lower))
            return xp.where(first < ranks.truncation, gain * step, zero)

        return delta

    def value(self, y: Any, F: Any) -> Any:
        """1 - NDCG of all rows, the same for every row; equal scores share their discounts."""
        queries, where = self.queries, self.queries.where
        gains = np.repeat(self.ranks.gains, np.diff(queries.starts))
        first = queries.row_starts[:-1]
        best = np.add.reduceat(gains * self.ranks.discounts[_ideal_places(queries)], first)
        dcg = np.add.reduceat(gains * self._shared_discounts(F), first)
        judged = best > 0.0
        mean = float(np.mean(dcg[judged] / best[judged])) if judged.any() else 1.0
        return where.xp.zeros_like(F) + (1.0 - mean)

    def _shared_discounts(self, F: Any) -> np.ndarray:
        """The mean discount of the ranks of all rows of a query with the score of the row."""
        queries, where = self.queries, self.queries.where
        query = where.host(queries.query)
        at = queries.row_starts[query] + where.host(self._places(F))
        order = np.empty_like(at)
        order[at] = np.arange(len(at))
        sorted_F = where.host(F)[order]
        new = np.ones(len(at), dtype=bool)
        new[1:] = (query[1:] != query[:-1]) | (sorted_F[1:] != sorted_F[:-1])
        starts = np.flatnonzero(new)
        discounts = self.ranks.discounts[np.arange(len(at)) - queries.row_starts[query]]
        sizes = np.diff([*starts, len(at)])
        mean = np.repeat(np.add.reduceat(discounts, starts) / sizes, sizes)
        return mean[at]


def _ideal_places(queries: Queries) -> np.ndarray:
    """Ranks of the rows where higher levels come first: rows of a query in reverse."""
    sizes = np.diff(queries.row_starts)
    ends = np.repeat(queries.row_starts[1:], sizes)
    return ends - 1 - np.arange(queries.n_rows)


@dataclass(frozen=True)
class PairList:
    """Given pairs: `upper` is preferred to `lower`, positions of rows, with integer weights."""

    upper: Any
    lower: Any
    weights: Any
    total: int
    n_rows: int
    bits: int
    where: Where


@dataclass(frozen=True, kw_only=True)
class GivenPairs(PairLoss):
    """Losses of pairs that were given: a pass costs so many exponentials as there are pairs."""

    pairs: PairList = field(repr=False)

    def _margins(self, F: Any) -> Any:
        xp, pairs = self.pairs.where.xp, self.pairs
        return xp.take(F, pairs.upper) - xp.take(F, pairs.lower)

    def _sums(self, terms: Any) -> tuple[Any, Any]:
        """Sums of the terms in (0, 1] by upper and by lower row, times n / (2 sum of weights)."""
        pairs, where = self.pairs, self.pairs.where
        q = integers(terms, pairs.bits, where) * pairs.weights
        factor = pairs.n_rows / (2.0 * pairs.total)
        up, down = (
            where.as_float64(sums_by_row(rows, q, pairs.n_rows, where)) / 2.0**pairs.bits * factor
            for rows in (pairs.upper, pairs.lower)
        )
        return up, down


@dataclass(frozen=True, kw_only=True)
class PairExponential(GivenPairs):
    """phi(v) = e^-v of given pairs; terms are relative to the largest, e^D. |v| is cut at 532."""

    name = "exponential"
    longest_step = 4.0

    def terms(self, F: Any) -> tuple[Any, float]:
        """e^-v relative to the largest, and that one."""
        v, xp = self._margins(F), self.pairs.where.xp
        largest = min(max(-float(xp.min(v)), -LARGEST_EXPONENT), LARGEST_EXPONENT)
        terms = self.exp(xp.minimum(-v - largest, self.pairs.where.full(0.0)))
        return terms, float(exponential.exp(np.array([largest]), NUMPY)[0])

    def _parts(self, F: Any) -> tuple[Any, Any]:
        terms, scale = self.terms(F)
        up, down = self._sums(terms)
        return up * scale, down * scale

    def value(self, y: Any, F: Any) -> Any:
        return 2.0 * self._parts(F)[0]

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        up, down = self._parts(F)
        return down - up, down + up


@dataclass(frozen=True, kw_only=True)
class PairLogistic(GivenPairs):
    """phi(v) = ln(1 + e^-v) of given pairs; |v| is cut at 532."""

    name = "logistic"
    longest_step = 8.0

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        v, xp, full = self._margins(F), self.pairs.where.xp, self.pairs.where.full
        E = self.exp(xp.minimum(v, full(LARGEST_EXPONENT)))
        p = 1.0 / (1.0 + E)
        up, down = self._sums(p)
        more, rest = self._sums(p * (E * p))
        return down - up, more + rest

    def value(self, y: Any, F: Any) -> Any:
        v, xp = self._margins(F), self.pairs.where.xp
        v = xp.maximum(v, self.pairs.where.full(-LARGEST_EXPONENT))
        return 2048.0 * self._sums(softplus(-v, self.exp) / 1024.0)[0]
