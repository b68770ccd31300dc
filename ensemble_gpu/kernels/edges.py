"""Bin edges: quantiles of a column, exact midpoints where it has few distinct values.

With v_0 < v_1 < ... the sorted distinct values of a column's sample of m values:

- at most `max_bins` of them: an edge in the middle of every neighbouring pair (exact);
- more: for j = 1 ... max_bins - 1 the first change of value at or after position j m / max_bins,
  each change once.

Without `max_bins` the sample is all rows, and every column is exact.

A value x has code = number of edges < x, so x <= edge goes left. Edges are float64 and comparisons
are made in float64, hence a float32 column and its float64 copy get the same codes.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np

from ensemble_gpu.kernels.protocol import EVEN_BINS

# Rows that edges are computed from; beyond this many a sample gives the same quantiles to well
# within a bin's width (bench/fit_cost.py shows the share of the fit spent here).
SAMPLE_ROWS = 1 << 17

MAX_BINS_LIMIT = 65_534


def sample_positions(n_rows: int, limit: int = SAMPLE_ROWS) -> np.ndarray:
    """Positions of the rows that edges are computed from, spread evenly, jittered by a hash.

    A plain stride would resonate with periodic data; the jitter comes from a multiplicative hash
    of the counter, so the sample is the same on every backend and needs no seed.
    """
    if n_rows <= limit:
        return np.arange(n_rows, dtype=np.int64)
    counter = np.arange(limit, dtype=np.uint64)
    start = counter * np.uint64(n_rows) // np.uint64(limit)
    stop = (counter + np.uint64(1)) * np.uint64(n_rows) // np.uint64(limit)
    jitter = (counter * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(33)
    return (start + jitter % (stop - start)).astype(np.int64)


def cut_positions(rank: Any, max_bins: int, xp: Any, device: Any) -> Any:
    """Positions in a sorted column where a new bin starts.

    rank[i] counts the changes of value up to position i; it may live on any device.
    """
    m, last = rank.shape[0], int(rank[-1])
    if last < max_bins:
        return xp.searchsorted(rank, xp.arange(1, last + 1, dtype=rank.dtype, device=device))
    target = xp.arange(1, max_bins, dtype=xp.int64, device=device) * m // max_bins
    cuts = xp.unique_values(xp.searchsorted(rank, xp.take(rank, target - 1), side="right"))
    return cuts[cuts < m]


def midpoints(below: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Below / 2 + above / 2, or `below` where rounding would reach `above`; no overflow."""
    middle = below * 0.5 + above * 0.5
    return np.where(middle < above, middle, below)


def even_edges(low: np.ndarray, step: np.ndarray) -> list[np.ndarray]:
    """Edges below low + k step, k = 1 ... EVEN_BINS - 1, of features of integers.

    A value has the code floor((z - low) / step): edges lie half a unit below.
    """
    k = np.arange(1, EVEN_BINS)
    return [a + k * s - 0.5 for a, s in zip(low.tolist(), step.tolist(), strict=True)]


def edges_of(gaps: list[np.ndarray]) -> list[np.ndarray]:
    """Edges in the middle of the gaps [2, edges] between values, a feature at a time."""
    stops = list(accumulate(gap.shape[1] for gap in gaps))
    edges = midpoints(*np.concatenate(gaps, axis=1)) if gaps else np.zeros(0)
    return [edges[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
