"""Edges and codes on the CPU: threads over blocks of rows, a branchless search per value."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit, prange

from ensemble_gpu.data.binning import midpoints, sample_positions

LANES = 8  # features per tile
BLOCK_ROWS = 2048


@njit(cache=True, nogil=True)
def _gather_sample(X, rows, out, missing):
    """Columns of the sampled rows, one contiguous row of `out` each; NaN sorts last as inf."""
    for i in range(rows.shape[0]):
        r = rows[i]
        for f in range(X.shape[1]):
            x = X[r, f]
            if x != x:
                missing[f] += 1
                out[f, i] = np.inf
            else:
                out[f, i] = x


@njit(cache=True, nogil=True)
def _cut_positions(values, max_bins, cuts):
    """`data.binning.cut_positions` for one sorted column; returns how many cuts."""
    m = values.shape[0]
    found = 0
    for i in range(1, m):
        if values[i] > values[i - 1]:
            if found < max_bins - 1:
                cuts[found] = i
            found += 1
    if found < max_bins:
        return found
    found = 0
    last = 0
    for j in range(1, max_bins):
        i = j * m // max_bins
        while i < m and values[i] == values[i - 1]:
            i += 1
        if i < m and i > last:
            cuts[found] = i
            found += 1
            last = i
    return found


def edges(X: np.ndarray, rows: np.ndarray, max_bins: int, threads: int) -> list[np.ndarray]:
    """Edges of every column (see data/binning.py), sorted by a few threads."""
    chosen = rows[sample_positions(rows.shape[0])]
    n_features = X.shape[1]
    dtype = X.dtype if X.dtype.kind == "f" else np.dtype(np.float64)
    sample = np.empty((n_features, chosen.shape[0]), dtype=dtype)
    missing = np.zeros(n_features, dtype=np.int64)
    _gather_sample(X, chosen, sample, missing)

    def one(feature: int) -> np.ndarray:
        sample[feature].sort()
        values = sample[feature, : chosen.shape[0] - missing[feature]].astype(np.float64)
        cuts = np.empty(max_bins, dtype=np.int64)
        at = cuts[: _cut_positions(values, max_bins, cuts)]
        return midpoints(values[at - 1], values[at])

    if threads == 1 or sample.size < 100_000:
        return [one(f) for f in range(n_features)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(one, range(n_features)))


@njit(cache=True, nogil=True, inline="always")
def _code(x, edges, steps):
    """Number of edges < x: a binary search without branches; edges padded with inf."""
    low = 0
    step = 1 << steps
    for _ in range(steps):
        step >>= 1
        low += step * (edges[low + step - 1] < x)
    return low


@njit(cache=True, nogil=True)
def _encode_block(X, rows, padded, steps, missing_code, out, start, stop):
    n_features = X.shape[1]
    for f in range(n_features):
        tile, lane = f // LANES, f % LANES
        column_edges = padded[f]
        for i in range(start, stop):
            x = X[rows[i], f]
            if x != x:
                out[tile, i, lane] = missing_code
            else:
                out[tile, i, lane] = _code(x, column_edges, steps)


@njit(cache=True, nogil=True, parallel=True)
def _encode_parallel(X, rows, padded, steps, missing_code, out, blocks):
    n = rows.shape[0]
    for b in prange(blocks):
        start = b * BLOCK_ROWS
        stop = min(n, start + BLOCK_ROWS)
        _encode_block(X, rows, padded, steps, missing_code, out, start, stop)


def encode(
    X: np.ndarray, edges: list[np.ndarray], rows: np.ndarray, width: int, run: Any
) -> np.ndarray:
    """Codes as tiles of eight features: codes[tile][row][8]; unused lanes hold 0."""
    n, tiles = rows.shape[0], -(-X.shape[1] // LANES)
    steps = max(1, int(max((len(e) for e in edges), default=0)).bit_length())
    padded = np.full((X.shape[1], (1 << steps) - 1), np.inf)
    for f, e in enumerate(edges):
        padded[f, : len(e)] = e
    codes = np.zeros((tiles, n, LANES), dtype=np.uint8 if width <= 256 else np.uint16)
    blocks = -(-n // BLOCK_ROWS)
    if run.threads == 1 or blocks == 1:
        for b in range(blocks):
            stop = min(n, (b + 1) * BLOCK_ROWS)
            _encode_block(X, rows, padded, steps, width - 1, codes, b * BLOCK_ROWS, stop)
    else:
        with run.pool():
            _encode_parallel(X, rows, padded, steps, width - 1, codes, blocks)
    return codes
