"""Formulas of rankings: relevance y, scores and the query of every row, as arrays of one device.

A query has ranks 1, 2, ... from its highest score down. Sums are those of integers, multiples of a
power of two so small that they are exact to some last digits: they do not depend on the order of
the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.data.groups import Groups

GAINS = EXPONENTIAL, LINEAR = "exponential", "linear"
# 2^y - 1 is a float64 for y up to this.
MOST_RELEVANCE = 1023
TIES = AVERAGE, WORST, BEST = "average", "worst", "best"


@dataclass(frozen=True)
class Ranked:
    """Rows in order of query, and of falling score within it.

    Query q is the rows starts[q] ... starts[q + 1] - 1 (host), `place` the rank from 0 on. Rows of
    equal scores are the ranks `low` ... `high` - 1.
    """

    order: Any
    query: Any
    starts: np.ndarray
    place: Any
    low: Any
    high: Any
    where: Where

    def sums(self, values: Any) -> np.ndarray:
        """Sums of the rows' values (in this order) by query."""
        where, xp = self.where, self.where.xp
        top = float(xp.max(xp.abs(values)))
        if top == 0.0:
            return np.zeros(len(self.starts) - 1)
        unit = math.ldexp(1.0, math.frexp(top)[1] - 61 + values.shape[0].bit_length())
        q = xp.astype(xp.round(values / unit), xp.int64)
        running = xp.concat([where.zeros(1, xp.int64), xp.cumulative_sum(q, dtype=xp.int64)])
        return np.diff(where.host(xp.take(running, where.put(self.starts)))) * unit


def query_starts(index: Any, where: Where) -> np.ndarray:
    """Where each query begins among rows sorted by query, and the end; int64 on the host."""
    xp = where.xp
    n = index.shape[0]
    new = xp.nonzero(index[1:] != index[:-1])[0]
    return np.concatenate([[0], where.host(new).astype(np.int64) + 1, [n]])


def _starts_of(changes: Any, where: Where) -> Any:
    """For every place the last one up to it where `changes` is true (the first always is)."""
    xp = where.xp
    number = xp.cumulative_sum(xp.astype(changes, xp.int64), dtype=xp.int64) - 1
    return xp.take(xp.nonzero(changes)[0], number)


def ranked(y: Any, scores: Any, index: Any, ties: str = AVERAGE) -> Ranked:
    """Rows by query and score; those of equal scores by relevance, where `ties` asks for it."""
    where = locate(scores)
    xp = where.xp
    keys = [-where.as_float64(scores), index]
    if ties != AVERAGE:
        keys.insert(0, y if ties == WORST else -y)
    order: Any = None
    for key in keys:
        key = key if order is None else xp.take(key, order)
        by_key = xp.argsort(key, stable=True)
        order = by_key if order is None else xp.take(order, by_key)
    query, s = xp.take(index, order), xp.take(scores, order)
    starts = query_starts(query, where)
    n = s.shape[0]
    at = xp.arange(n, dtype=xp.int64, device=where.device)
    sizes = np.diff(starts)
    first = where.put(np.repeat(starts[:-1], sizes))
    one = xp.ones(1, dtype=xp.bool, device=where.device)
    new = xp.concat([one, (query[1:] != query[:-1]) | (s[1:] != s[:-1])])
    begin = xp.astype(_starts_of(new, where), xp.int64)
    back = xp.flip(_starts_of(xp.flip(xp.concat([new[1:], one])), where))
    end = n - xp.astype(back, xp.int64)
    return Ranked(order, query, starts, at - first, begin - first, end - first, where)


def gains_of(y: Any, gains: str, name: str = "y") -> Any:
    """2^y - 1 for whole y, or y itself; an error where y has no gain."""
    where = locate(y)
    xp = where.xp
    low = float(xp.min(y))
    if low < 0.0:
        raise ValueError(f"{name} must be relevance >= 0; the lowest value given is {low:g}.")
    if gains == LINEAR:
        return y
    odd = xp.nonzero((y != xp.floor(y)) | (y > MOST_RELEVANCE))[0]
    if odd.shape[0]:
        raise ValueError(
            f"{name} must hold whole numbers from 0 to {MOST_RELEVANCE} for gains 2^y - 1; got "
            f"{float(y[int(odd[0])]):g}. (ndcg and dcg take any relevance >= 0 with "
            "gains='linear'.)"
        )
    powers = where.put(np.ldexp(1.0, np.arange(0, MOST_RELEVANCE + 1)) - 1.0)
    return xp.take(powers, xp.astype(y, xp.int64))


def discounts(n: int, k: int | None) -> np.ndarray:
    """1 / log2(1 + rank) of ranks 1 ... n; 0 beyond k."""
    d = 1.0 / np.log2(np.arange(2.0, n + 2.0))
    if k is not None:
        d[k:] = 0.0
    return d


def dcg_of_queries(y: Any, scores: Any, index: Any, k: int | None, gains: str, ties: str) -> Any:
    """sum over ranks of gain / log2(1 + rank), of every query (host)."""
    rows = ranked(y, scores, index, ties)
    where, xp = rows.where, rows.where.xp
    d = discounts(int(np.diff(rows.starts).max()), k)
    gain = xp.take(gains_of(y, gains), rows.order)
    if ties != AVERAGE:
        return rows.sums(gain * xp.take(where.put(d), rows.place))
    running = where.put(np.concatenate([[0.0], np.cumsum(d)]))
    several = where.as_float64(rows.high - rows.low)
    mean = (xp.take(running, rows.high) - xp.take(running, rows.low)) / several
    alone = several == 1.0
    return rows.sums(gain * xp.where(alone, xp.take(where.put(d), rows.place), mean))


def ndcg_of_queries(
    y: Any, scores: Any, index: Any, k: int | None = None, gains: str = EXPONENTIAL,
    ties: str = AVERAGE, empty: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """DCG over the highest possible; `empty` where that is 0, no row being relevant."""
    found = dcg_of_queries(y, scores, index, k, gains, ties)
    best = dcg_of_queries(y, locate(y).as_float64(y), index, k, gains, BEST)
    return np.where(best > 0.0, found / np.where(best > 0.0, best, 1.0), empty)


def average_precisions(
    y: Any, scores: Any, index: Any, k: int | None = None, relevant: float = 1.0,
    empty: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """Mean over the relevant rows of the share of relevant rows up to their rank.

    Rows of equal scores all have the rank of the last of them. With k: rows beyond rank k count 0,
    and the mean is over min(k, relevant rows).
    """
    rows = ranked(y, scores, index)
    where, xp = rows.where, rows.where.xp
    hit = xp.astype(xp.take(y, rows.order) >= relevant, xp.int64)
    running = xp.concat([where.zeros(1, xp.int64), xp.cumulative_sum(hit, dtype=xp.int64)])
    first = where.put(np.repeat(rows.starts[:-1], np.diff(rows.starts)))
    up_to = where.as_float64(xp.take(running, first + rows.high) - xp.take(running, first))
    value = where.as_float64(hit) * up_to / where.as_float64(rows.high)
    if k is not None:
        value = xp.where(rows.high <= k, value, xp.zeros_like(value))
    hits = rows.sums(where.as_float64(hit))
    most = hits if k is None else np.minimum(hits, k)
    return np.where(hits > 0.0, rows.sums(value) / np.maximum(most, 1.0), empty)


def reciprocal_ranks(
    y: Any, scores: Any, index: Any, k: int | None = None, relevant: float = 1.0,
    empty: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """1 / rank of the first relevant row (of rows of equal scores the last rank); 0 beyond k."""
    rows = ranked(y, scores, index)
    where, xp = rows.where, rows.where.xp
    hit = xp.take(y, rows.order) >= relevant
    running = xp.cumulative_sum(xp.astype(hit, xp.int64), dtype=xp.int64)
    before = where.put(np.repeat(rows.starts[:-1], np.diff(rows.starts)))
    padded = xp.concat([where.zeros(1, xp.int64), running])
    is_first = hit & (running - xp.take(padded, before) == 1)
    value = 1.0 / where.as_float64(rows.high)
    if k is not None:
        value = xp.where(rows.high <= k, value, xp.zeros_like(value))
    found = rows.sums(xp.where(is_first, value, xp.zeros_like(value)))
    return np.where(rows.sums(where.as_float64(hit)) > 0.0, found, empty)


def misordered(y: Any, scores: Any, index: Any, weights: Any | None) -> tuple[Any, Any]:
    """Weight of the pairs of each query in the wrong order, equal scores half; of all pairs.

    A pair is two rows of a query with different y; it weighs w_i w_j. Levels are told apart bit by
    bit of their number: pairs that differ in a bit and agree in all higher ones are counted by one
    sort, so n rows of L levels cost log L sorts.
    """
    where = locate(scores)
    xp = where.xp
    w = xp.ones_like(where.as_float64(y)) if weights is None else weights / xp.max(weights)
    levels = xp.unique_values(y)
    level = xp.astype(xp.searchsorted(levels, y), xp.int64)
    by_score = xp.argsort(where.as_float64(scores), stable=True)
    index, level, s, w = (xp.take(a, by_score) for a in (index, level, scores, w))
    n_bits = max(1, int(levels.shape[0] - 1).bit_length())
    wrong: Any = 0.0
    every: Any = 0.0
    for bit in range(n_bits):
        found = _misordered_by(index, level, s, w, bit, n_bits, where)
        wrong, every = wrong + found[0], every + found[1]
    return wrong, every


def _misordered_by(
    index: Any, level: Any, s: Any, w: Any, bit: int, n_bits: int, where: Where
) -> tuple[np.ndarray, np.ndarray]:
    """`misordered` of the pairs whose levels first differ in a bit; rows ascend by score."""
    xp = where.xp
    n = s.shape[0]
    group = index * (1 << (n_bits - bit)) + (level >> (bit + 1))
    order = xp.argsort(group, stable=True)
    group, s, w = xp.take(group, order), xp.take(s, order), xp.take(w, order)
    upper = (xp.take(level, order) >> bit) & 1 == 1
    zero = xp.zeros_like(w)
    one = xp.ones(1, dtype=xp.bool, device=where.device)
    other = xp.concat([one, group[1:] != group[:-1]])
    tied = xp.concat([one, (group[1:] != group[:-1]) | (s[1:] != s[:-1])])

    def ends(changes: Any) -> tuple[Any, Any]:
        begin = xp.astype(_starts_of(changes, where), xp.int64)
        back = xp.flip(_starts_of(xp.flip(xp.concat([changes[1:], one])), where))
        return begin, n - xp.astype(back, xp.int64)

    lower = xp.where(upper, zero, w)
    running = xp.concat([zero[:1], xp.cumulative_sum(lower)])
    first, last = (xp.take(running, at) for at in ends(other))
    low, high = (xp.take(running, at) for at in ends(tied))
    own = xp.where(upper, w, zero)
    wrong = own * ((last - high) + 0.5 * (high - low))
    query = xp.take(index, order)
    starts = query_starts(query, where)
    view = Ranked(order, query, starts, None, None, None, where)
    return view.sums(wrong), view.sums(own * (last - first))


def query_weights(index: Any, weights: Any | None, groups: Groups) -> np.ndarray | None:
    """What queries weigh in a mean: as given, or the mean of their rows' weights; None: 1 each."""
    if groups.weights is not None:
        present = np.unique(locate(index).host(index))
        return groups.weights[present]
    if weights is None:
        return None
    where = locate(index)
    order = where.xp.argsort(index, stable=True)
    query = where.xp.take(index, order)
    starts = query_starts(query, where)
    view = Ranked(order, query, starts, None, None, None, where)
    return view.sums(where.xp.take(weights, order)) / np.diff(starts)


def mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Mean over the queries, by weight; of those that are not NaN."""
    known = ~np.isnan(values)
    if not known.any():
        return math.nan
    if weights is None:
        return float(np.mean(values[known]))
    w = weights[known]
    if not w.any():
        return math.nan
    return float(np.sum(values[known] * w) / np.sum(w))


def _by_query(function: Any, **options: Any) -> Any:
    """function(y, scores, weights, groups) -> mean over the queries, as named metrics have it."""

    def metric(y: Any, scores: Any, weights: Any, groups: Groups) -> float:
        values = function(y, scores, groups.index, **options)
        return mean(values, query_weights(groups.index, weights, groups))

    return metric


def ndcg(k: int | None = None) -> Any:
    return _by_query(ndcg_of_queries, k=k)


def average_precision(k: int | None = None) -> Any:
    return _by_query(average_precisions, k=k)


def reciprocal_rank(k: int | None = None) -> Any:
    return _by_query(reciprocal_ranks, k=k)


def pairwise_error(y: Any, scores: Any, weights: Any, groups: Groups) -> float:
    """Share of the pairs in the wrong order; pairs of a query weigh as it does."""
    wrong, every = misordered(y, scores, groups.index, weights)
    if groups.weights is not None:
        present = np.unique(locate(groups.index).host(groups.index))
        wrong, every = wrong * groups.weights[present], every * groups.weights[present]
    total = float(np.sum(every))
    return float(np.sum(wrong)) / total if total > 0.0 else math.nan
