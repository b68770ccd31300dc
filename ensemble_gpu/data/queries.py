"""From queries and relevance to segments of ordered rows (kernels/queries.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.groups import Groups
from ensemble_gpu.kernels.queries import MOST_BITS, Queries

# Weights of rows are whole, or multiples of their sum's 2^-WEIGHT_BITS.
WEIGHT_BITS = 40
# Sums of terms in (0, 1] times weights stay below 2^SUM_BITS.
SUM_BITS = 62


def whole_weights(weights: np.ndarray) -> np.ndarray:
    """Weights as int64: as they are if whole, else in units of 2^-40 of their sum."""
    top = float(weights.max())
    total = math.fsum((weights / top).tolist())
    if top * total < 2.0**WEIGHT_BITS and bool(np.all(weights == np.rint(weights))):
        return weights.astype(np.int64)
    unit = math.ldexp(1.0, math.frexp(total)[1] - WEIGHT_BITS)
    return np.rint(weights / top / unit).astype(np.int64)


def term_bits(largest_sum: int) -> int:
    """Bits of a term in (0, 1], so that the weighted sum of terms stays below 2^62."""
    return min(MOST_BITS, SUM_BITS - int(largest_sum).bit_length())


def queries_of(
    target: Any, groups: Groups, weights: Any | None, where: Where, keys: np.ndarray | None = None
) -> Queries:
    """Segments of rows that are in order of query and target; `keys` order equal scores."""
    xp = where.xp
    index = groups.index
    new_query = where.host(index[1:] != index[:-1])
    new_segment = new_query | where.host(target[1:] != target[:-1])
    n = target.shape[0]
    starts = np.concatenate([[0], np.flatnonzero(new_segment) + 1, [n]]).astype(np.int64)
    row_starts = np.concatenate([[0], np.flatnonzero(new_query) + 1, [n]]).astype(np.int64)
    first = np.searchsorted(starts, row_starts).astype(np.int64)
    at = where.put(starts[:-1])
    levels = where.host(xp.take(target, at)).astype(np.float64)
    query_label = where.host(xp.take(index, where.put(row_starts[:-1])))
    own = None if weights is None else whole_weights(where.host(weights))
    sums = np.diff(starts) if own is None else np.add.reduceat(own, starts[:-1])
    of_query = np.add.reduceat(sums, first[:-1])
    below = np.cumsum(sums) - sums
    below = below - np.repeat(below[first[:-1]], np.diff(first))
    pairs = np.add.reduceat(sums.astype(np.float64) * below.astype(np.float64), first[:-1])
    shares = np.ones(len(pairs)) if groups.weights is None else groups.weights[query_label]
    shares = shares / shares.max()
    total = math.fsum((shares * pairs).tolist())
    factor = shares * (float(of_query.sum()) / (2.0 * total)) if total > 0.0 else shares * 0.0
    return Queries(
        starts, first, levels, factor, None if own is None else where.put(own),
        term_bits(of_query.max()), where,
        None if keys is None else where.put(_by_key(keys, row_starts)),
    )  # fmt: skip


def _by_key(keys: np.ndarray, row_starts: np.ndarray) -> np.ndarray:
    """Positions within each query of its rows in order of their keys."""
    sizes = np.diff(row_starts)
    query = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((keys, query))
    return order.astype(np.int64) - np.repeat(row_starts[:-1], sizes)


def with_pairs(y: np.ndarray, index: np.ndarray, taking_part: np.ndarray) -> np.ndarray:
    """Which rows that take part are in a query with rows of another relevance (host arrays)."""
    out = np.zeros(len(y), dtype=bool)
    at = np.flatnonzero(taking_part)
    if not len(at):
        return out
    n = int(index.max()) + 1
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(low, index[at], y[at])
    np.maximum.at(high, index[at], y[at])
    out[at] = (low < high)[index[at]]
    return out
