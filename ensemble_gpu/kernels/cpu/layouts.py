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


def made_when_used(codes: Codes) -> tuple[np.ndarray, np.ndarray]:
    """Room for the codes as [feature, row], and which features are there already.

    Whoever needs another one fills it in; pages that are not written to take no memory.
    """
    with _MAKING:
        if "as used" not in codes.columns:
            if "columns" in codes.columns:
                known = codes.columns["columns"], np.ones(codes.n_features, dtype=np.bool_)
            else:
                shape = codes.n_features, codes.n_rows
                known = np.empty(shape, dtype=codes.data.dtype), np.zeros(shape[0], dtype=np.bool_)
            codes.columns["as used"] = known
        return codes.columns["as used"]


def column(codes: Codes, feature: int) -> np.ndarray:
    """The feature's codes side by side, kept."""
    columns, made = made_when_used(codes)
    if not made[feature]:
        columns[feature] = codes.data[feature // 8, :, feature % 8]
        made[feature] = True
    return columns[feature]
