"""The codes row by row and column by column, made once and kept with them."""

from __future__ import annotations

import os
import threading

import numpy as np

from ensemble_gpu.kernels.jit import kernel
from ensemble_gpu.kernels.protocol import Codes

ROWS = 1024  # of a block that stays in the cache
_MAKING = threading.Lock()


def _forget_lock() -> None:
    """A forked process has none of the threads that may hold it."""
    global _MAKING
    _MAKING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)


@kernel
def _transpose(tile, out):
    """out[lane, row] = tile[row, lane], in blocks of rows that stay in the cache."""
    for a in range(0, tile.shape[0], ROWS):
        for lane in range(out.shape[0]):
            for row in range(a, min(a + ROWS, tile.shape[0])):
                out[lane, row] = tile[row, lane]


def by_row(codes: Codes) -> np.ndarray:
    """The codes row by row [row, feature], made once."""
    with _MAKING:
        if "rows" not in codes.columns:
            rows = np.ascontiguousarray(codes.data.transpose(1, 0, 2))
            codes.columns["rows"] = rows.reshape(codes.n_rows, -1)
        return codes.columns["rows"]


def by_column(codes: Codes) -> np.ndarray:
    """The codes as [feature, row]; made once."""
    with _MAKING:
        if "columns" not in codes.columns:
            columns = np.empty((codes.n_features, codes.n_rows), dtype=codes.data.dtype)
            for t, tile in enumerate(codes.data):
                _transpose(tile, columns[8 * t : 8 * (t + 1)])
            codes.columns["columns"] = columns
        return codes.columns["columns"]
