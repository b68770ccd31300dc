"""Rows in queries: the order in which pairs of them are added up without being listed.

Rows are ordered by query, and within a query by level, the graded relevance. A segment is the rows
of one query and level, a range:

    segment s    the rows starts[s] ... starts[s + 1] - 1
    query q      the segments first[q] ... first[q + 1] - 1, levels ascending

A pair is two rows of a query at different levels. It weighs c_q W_i W_j, W integer weights of rows
(None: ones), c_q the weight of the query. `factor[q]` is c_q times one number for all queries, the
weight of the rows divided by twice that of the pairs: the losses (losses/by_query.py) are means
over pairs, and the sum of their parts over the rows has the size of a loss of single rows.

Terms in (0, 1] are added up as integers, rint(term 2^bits): sums below 2^62 whatever the rows, the
same in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where

# Exponents of e^(F - shift) are cut to +-CUT: a product of two such numbers is far from overflow.
CUT = 300.0
# Bits of a term at most: |term| 2^MOST_BITS is below 2^51, where rint is exact in float64.
MOST_BITS = 44


@dataclass(frozen=True)
class Queries:
    """Segments of ordered rows.

    `levels` [segment] is the relevance; `weights` int64 [row] in `where`, or None; `bits` as above.
    `ties` [row] in `where` is the order of rows with equal scores (None: not needed).
    """

    starts: np.ndarray
    first: np.ndarray
    levels: np.ndarray
    factor: np.ndarray
    weights: Any | None
    bits: int
    where: Where
    ties: Any | None = None

    @property
    def n_rows(self) -> int:
        return int(self.starts[-1])

    @property
    def n_queries(self) -> int:
        return len(self.first) - 1

    @cached_property
    def query_of_segment(self) -> np.ndarray:
        return np.repeat(np.arange(self.n_queries), np.diff(self.first))

    @cached_property
    def segment(self) -> Any:
        """The segment of every row, int64 in `where`."""
        sizes = np.diff(self.starts)
        return self.where.put(np.repeat(np.arange(len(sizes), dtype=np.int64), sizes))

    @cached_property
    def row_starts(self) -> np.ndarray:
        """Where the rows of every query begin, and the last one's end."""
        return self.starts[self.first]

    @cached_property
    def query(self) -> Any:
        """The query of every row, int64 in `where`."""
        sizes = np.diff(self.row_starts)
        return self.where.put(np.repeat(np.arange(len(sizes), dtype=np.int64), sizes))

    def with_weights_of(self, terms: Any) -> Any:
        """Integer terms times the weights of their rows."""
        return terms if self.weights is None else terms * self.weights


def segment_sums(values: Any, starts: np.ndarray, where: Where) -> np.ndarray:
    """Sums of the int64 values [row] of every range of rows, on the host; exact modulo 2^64."""
    xp = where.xp
    running = xp.concat([where.zeros(1, xp.int64), xp.cumulative_sum(values, dtype=xp.int64)])
    ends = where.host(xp.take(running, where.put(starts.astype(np.int64))))
    return np.diff(ends)


def segment_bounds(values: Any, segment: Any, starts: np.ndarray, where: Where) -> Any:
    """(lowest, highest) of the values [row] of every range, on the host; no range is empty."""
    xp = where.xp
    order = xp.argsort(values, stable=True)
    order = xp.take(order, xp.argsort(xp.take(segment, order), stable=True))
    found = xp.take(values, order)
    low = xp.take(found, where.put(starts[:-1].astype(np.int64)))
    high = xp.take(found, where.put(starts[1:].astype(np.int64) - 1))
    return where.host(low), where.host(high)


@dataclass(frozen=True)
class PairWeights:
    """The weights of all pairs of queries as products: what stumps are scored by.

    A pair of row i of segment s above row j of segment t weighs

        up_i down_j rise_s (product of the steps from t to s) scale_q

    `up` and `down` are int64 [row] in the engine's namespace, `ups` and `downs` their sums, `enter`
    and `rise` [segment] on the host: sums over lower segments are carried up by `enter` (see
    kernels/host/levels.py). `scale` [query] makes weights integers.
    """

    queries: Queries
    up: Any
    down: Any
    ups: np.ndarray
    downs: np.ndarray
    enter: np.ndarray
    rise: np.ndarray
    scale: np.ndarray
