"""Codes on the CPU: threads over blocks of rows, a branchless search per value."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.kernels.cpu.edges import (
    BLOCK_ROWS,
    GUIDED_ROWS,
    guided_count,
    guides_of,
    load_column,
    no_guides,
)
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.sparse import encode as encode_sparse

LANES = 8  # features per tile
CELLS_PER_THREAD = 40_000


@inner
def _encode_block(X, rows, guides, missing_code, out, apart, start, stop):
    """Codes of a block. In `out`, tiles lie apart[0] codes apart and rows apart[1]."""
    low = guides[2]
    n = stop - start
    x = np.empty(n, dtype=np.float64)
    place = np.empty(n, dtype=np.int32)
    for f in range(X.shape[1]):
        absent = load_column(X, rows, f, start, x, low[f])
        guided_count(x, guides, f, place)
        at = f // LANES * apart[0] + f % LANES
        for i in range(n):
            out[at + (start + i) * apart[1]] = place[i]
        if absent:
            for i in range(n):
                value = X[rows[start + i], f]
                if value != value:
                    out[at + (start + i) * apart[1]] = missing_code


@inner
def _encode_blocks(worker, block, last_block, X, rows, guides, missing_code, out, apart):
    n = rows.shape[0]
    for b in range(block, last_block):
        start, stop = b * BLOCK_ROWS, min(n, (b + 1) * BLOCK_ROWS)
        _encode_block(X, rows, guides, missing_code, out, apart, start, stop)


@kernel
def _encode(crew, X, rows, guides, missing_code, out, apart):
    n_blocks = (rows.shape[0] + BLOCK_ROWS - 1) // BLOCK_ROWS
    share(crew, n_blocks, _encode_blocks, (X, rows, guides, missing_code, out, apart))


def encode(
    X: Any, edges: list[np.ndarray], rows: np.ndarray, width: int, run: Run,
    by_row: bool,
) -> np.ndarray:  # fmt: skip
    """Codes as tiles of eight features: [tile, row, 8]; unused lanes hold 0.

    In memory a tile has its rows side by side or, `by_row`, a row its tiles.
    """
    n, n_features = rows.shape[0], X.shape[1]
    tiles = -(-n_features // LANES)
    shape, apart = (tiles, n, LANES), (n * LANES, LANES)
    if by_row:
        shape, apart = (n, tiles, LANES), (LANES, tiles * LANES)
    kind = np.uint8 if width <= 256 else np.uint16 if width <= 1 << 16 else np.uint32
    codes = np.zeros(shape, dtype=kind)
    tiled = codes.transpose(1, 0, 2) if by_row else codes
    if is_sparse(X):
        encode_sparse(X, edges, rows, width, tiled)
        return tiled
    if kind == np.uint32:  # guides would take more memory than X

        def one(f: int) -> None:
            _encode_column(X[rows, f], edges[f], width - 1, tiled, f)

        with ThreadPoolExecutor(run.threads) as pool:
            list(pool.map(one, range(n_features)))
        return tiled
    steps = np.array([max(1, len(e).bit_length()) for e in edges], dtype=np.int64)
    first = np.concatenate([[0], np.cumsum(1 << steps)])
    padded = np.full(first[-1], np.inf)
    for start, e in zip(first, edges, strict=False):
        padded[start : start + len(e)] = e
    make = guides_of if n >= GUIDED_ROWS else no_guides
    guides = make(padded, first[:-1], steps)
    run = run.limited_to(n * n_features, CELLS_PER_THREAD)
    run.call(_encode, X, rows, guides, width - 1, codes.reshape(-1), apart)
    return tiled


def _encode_column(
    x: np.ndarray, edges: np.ndarray, missing_code: int, out: np.ndarray, f: int
) -> None:
    """One feature of `encode`, by a search for every value."""
    code = np.searchsorted(edges, x)
    code[np.isnan(x)] = missing_code
    out[f // LANES, :, f % LANES] = code
