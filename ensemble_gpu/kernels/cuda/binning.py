"""Codes on the GPU: a branchless search per value, eight (or four) codes to a 64-bit word."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.sparse import encode as encode_sparse

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _search(x, edges, f, steps):
    """Number of edges < x, compared in float64; edges are padded with inf to 2^steps - 1."""
    low = np.int32(0)
    step = np.int32(1 << steps)
    while step > 1:
        step = np.int32(step >> 1)
        if edges[f, low + step - 1] < x:
            low = np.int32(low + step)
    return low


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def encode(X, rows, edges, steps, width, lanes, bits, spread, codes):
    """codes[tile, i]: `lanes` codes of `bits` bits of row rows[i], NaN as width - 1.

    Lanes without a feature hold i & spread: their sums are never read, and adds of neighbouring
    threads fall into different cells instead of all into one.
    """
    i = np.int32(cuda.grid(1))
    while i < rows.shape[0]:
        row = rows[i]
        tile = np.int32(0)
        while tile < codes.shape[0]:
            word = np.uint64(0)
            lane = np.int32(0)
            while lane < lanes:
                f = np.int32(tile * lanes + lane)
                code = np.int32(i & spread)
                if f < X.shape[1]:
                    x = np.float64(X[row, f])
                    code = np.int32(width - 1) if x != x else _search(x, edges, f, steps)
                word |= np.uint64(code) << np.uint64(lane * bits)
                lane = np.int32(lane + 1)
            codes[tile, i] = word
            tile = np.int32(tile + 1)
        i = np.int32(i + cuda.gridsize(1))


# --- launchers -------------------------------------------------------------------------------


def padded_edges(edges: list[np.ndarray]) -> tuple[np.ndarray, int]:
    """Edges as one array, padded with inf to 2^steps - 1 a feature; and steps."""
    steps = max(1, max((len(e) for e in edges), default=0).bit_length())
    padded = np.full((len(edges), (1 << steps) - 1), np.inf)
    for f, e in enumerate(edges):
        padded[f, : len(e)] = e
    return padded, steps


def launch_encode(
    shape: Shape, steps: int, width: int, lanes: int, X: Any, rows: Any, edges: Any, codes: Any
) -> None:
    sizes = (np.int32(v) for v in (steps, width, lanes, 64 // lanes, _spread(width)))
    launch(encode, *shape, X, rows, edges, *sizes, codes)


def _spread(width: int) -> int:
    """All ones, below the width."""
    return (1 << (width.bit_length() - 1)) - 1


def sparse_words(
    X: Any, edges: list[np.ndarray], rows: np.ndarray, width: int, lanes: int
) -> np.ndarray:
    """What `encode` makes of the rows of a sparse matrix, on the host: uint64 [tile, row]."""
    n, p, tiles = rows.shape[0], len(edges), -(-len(edges) // lanes)
    codes = np.empty((tiles, n, lanes), dtype=f"<u{8 // lanes}")
    encode_sparse(X, edges, rows, width, codes)
    codes[-1, :, p - (tiles - 1) * lanes :] = (np.arange(n) & _spread(width))[:, None]
    return codes.reshape(tiles, n * lanes).view("<u8")
