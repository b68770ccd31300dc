"""Codes of evenly spaced thresholds on the CPU: no search, a subtraction and a scaling a value."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel

LANES = 8  # features per tile
ROWS = 1024  # of a block
CELLS_PER_THREAD = 40_000


@inner
def _blocks(worker, first, last, Z, low, per, missing_code, words):
    """A tile's eight codes are the bytes of a word, which are put in one feature after the other:
    a loop over rows that lie side by side, without a branch.
    """
    n, p = Z.shape
    for block in range(first, last):
        start, stop = block * ROWS, min(n, (block + 1) * ROWS)
        for f in range(p):
            base, factor, shift = low[f], per[f], np.int64(8 * (f % LANES))
            column, own = Z[start:stop, f], words[f // LANES, start:stop]
            for i in range(own.shape[0]):
                z = column[i]
                code = (z - base) * factor if z == z else missing_code
                own[i] |= np.int64(code) << shift


@kernel
def _encode(crew, Z, low, per, missing_code, words):
    share(
        crew, (Z.shape[0] + ROWS - 1) // ROWS, _blocks, (Z, low, per, missing_code, words)
    )  # fmt: skip


def encode(
    Z: np.ndarray, low: np.ndarray, step: np.ndarray, missing_code: int, run: Run
) -> np.ndarray:
    """floor((z - low) / step), steps powers of two: [tile, row, 8]; unused lanes hold 0."""
    n, p = Z.shape
    words = np.zeros((-(-p // LANES), n), dtype=np.int64)
    run = run.limited_to(n * p, CELLS_PER_THREAD)
    run.call(_encode, Z, low, 1.0 / step, float(missing_code), words)
    return words.astype("<i8", copy=False).view(np.uint8).reshape(*words.shape, LANES)
