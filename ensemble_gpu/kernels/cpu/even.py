"""Codes of evenly spaced thresholds on the CPU: no search, a subtraction and a scaling a value."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel

LANES = 8  # features per tile
ROWS = 256  # of a block
CELLS_PER_THREAD = 40_000


@inner
def _blocks(worker, first, last, Z, low, per, missing_code, out):
    n, p = Z.shape
    for block in range(first, last):
        for i in range(block * ROWS, min(n, (block + 1) * ROWS)):
            for tile in range(out.shape[0]):
                for lane in range(min(LANES, p - LANES * tile)):
                    f = LANES * tile + lane
                    z = Z[i, f]
                    code = (z - low[f]) * per[f]
                    out[tile, i, lane] = np.uint8(code) if z == z else missing_code


@kernel
def _encode(crew, Z, low, per, missing_code, out):
    share(crew, (Z.shape[0] + ROWS - 1) // ROWS, _blocks, (Z, low, per, missing_code, out))


def encode(
    Z: np.ndarray, low: np.ndarray, step: np.ndarray, missing_code: int, run: Run
) -> np.ndarray:
    """floor((z - low) / step), steps powers of two: [tile, row, 8]; unused lanes hold 0."""
    n, p = Z.shape
    out = np.zeros((-(-p // LANES), n, LANES), dtype=np.uint8)
    run = run.limited_to(n * p, CELLS_PER_THREAD)
    run.call(_encode, Z, low, 1.0 / step, np.uint8(missing_code), out)
    return out
