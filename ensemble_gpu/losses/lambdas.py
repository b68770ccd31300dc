"""LambdaMART's loss: pairs of queries weigh what NDCG changes if their rows change places."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.kernels.queries import Queries
from ensemble_gpu.losses.by_query import PairBlock, QueryLogistic


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
