"""Sparse X: its bins and codes from the entries that are stored, and models evaluated on it.

Bins are those of kernels/edges.py. A column's sample of m values has its stored ones and as many
zeros as are left; with u_0 < u_1 < ... the distinct values and c_k the number of values <= u_k,

- at most `max_bins` of them: a gap between every u_k and u_(k + 1);
- more: for j = 1 ... max_bins - 1 the gap after the first u_k with c_k >= j m / max_bins, once.

All that is of the host. Codes are made in the layout of an engine, one number for every cell; a
model sees dense blocks of a few rows, of the columns that it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.sparse import dense_blocks, in_blocks
from ensemble_gpu.kernels.edges import sample_positions
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest

# Entries whose codes are put in place at once: bounds the memory of their positions.
MOST_ENTRIES = 1 << 22


def gaps(X: Any, rows: np.ndarray, max_bins: int | None) -> list[np.ndarray]:
    """[2, gaps] of every column over some rows: the values on both sides of each cut."""
    chosen = rows if max_bins is None else rows[sample_positions(rows.shape[0])]
    most = max(2, rows.shape[0]) if max_bins is None else max_bins
    X = X[chosen].tocsc()
    return [
        _column_gaps(X.data[a:b].astype(np.float64), X.shape[0], most)
        for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)
    ]


def _column_gaps(stored: np.ndarray, n: int, most: int) -> np.ndarray:
    zeros = n - len(stored)
    values, counts = np.unique(stored[~np.isnan(stored)], return_counts=True)
    if zeros:
        at = int(np.searchsorted(values, 0.0))
        if at < len(values) and values[at] == 0.0:
            counts[at] += zeros
        else:
            values, counts = np.insert(values, at, 0.0), np.insert(counts, at, zeros)
    if len(values) < 2:
        return np.zeros((2, 0))
    last = np.arange(len(values) - 1)  # of every bin
    if len(values) > most:
        ends = np.cumsum(counts)
        shares = np.arange(1, most, dtype=np.int64) * ends[-1] // most
        last = np.unique(np.searchsorted(ends, shares))
        last = last[last < len(values) - 1]
    return np.stack([values[last], values[last + 1]])


def encode(X: Any, edges: list[np.ndarray], rows: np.ndarray, width: int, out: np.ndarray) -> None:
    """out[tile, i, lane] = code of row rows[i] in feature tile lanes + lane; NaN is width - 1.

    `out` is of any strides; lanes that have no feature hold 0.
    """
    X = X[rows].tocsc()
    zeros = np.zeros((out.shape[0], 1, out.shape[2]), dtype=out.dtype)
    zeros.reshape(-1)[: len(edges)] = [np.searchsorted(e, 0.0) for e in edges]
    out[...] = zeros
    step = max(1, MOST_ENTRIES // max(1, -(-X.nnz // X.shape[1])))
    for first in range(0, X.shape[1], step):
        _put_codes(X, edges, slice(first, min(first + step, X.shape[1])), width - 1, out)


def _put_codes(
    X: Any, edges: list[np.ndarray], columns: slice, missing_code: int, out: np.ndarray
) -> None:
    """The codes of the entries that are stored in some columns."""
    ends = X.indptr[columns.start : columns.stop + 1]
    stored = slice(int(ends[0]), int(ends[-1]))
    values = X.data[stored].astype(np.float64)
    codes = np.empty(len(values), dtype=out.dtype)
    for f, (a, b) in enumerate(zip(ends[:-1] - ends[0], ends[1:] - ends[0], strict=True)):
        codes[a:b] = np.searchsorted(edges[columns.start + f], values[a:b])
    codes[np.isnan(values)] = missing_code
    feature = np.repeat(np.arange(columns.start, columns.stop), np.diff(ends))
    lanes = out.shape[2]
    out[feature // lanes, X.indices[stored], feature % lanes] = codes


def evaluate(engine: Engine, X: Any, tables: PackedTables) -> Any:
    """Engine.evaluate of X, which may be sparse or decoded."""
    if not in_blocks(X):
        return engine.evaluate(engine.view(X), tables)
    X = X[:, tables.features]
    own = replace(tables, features=np.arange(X.shape[1]), layouts={})
    return _by_block(lambda block: engine.evaluate(block, own), engine, X)


def evaluate_forest(engine: Engine, X: Any, forest: PackedForest) -> Any:
    """Engine.evaluate_forest of X, which may be sparse or decoded."""
    if not in_blocks(X):
        return engine.evaluate_forest(engine.view(X), forest)
    X, own = _used(X, forest)
    return _by_block(lambda block: engine.evaluate_forest(block, own), engine, X)


def apply_forest(engine: Engine, X: Any, forest: PackedForest) -> Any:
    """Engine.apply_forest of X, which may be sparse or decoded."""
    if not in_blocks(X):
        return engine.apply_forest(engine.view(X), forest)
    X, own = _used(X, forest)
    return _by_block(lambda block: engine.apply_forest(block, own), engine, X)


def _used(X: Any, forest: PackedForest) -> tuple[Any, PackedForest]:
    """The columns that some tree tests (one at least), and the forest in terms of these."""
    inner = forest.feature != LEAF
    used = np.unique(forest.feature[inner]) if inner.any() else np.zeros(1, dtype=np.int64)
    feature = np.where(inner, np.searchsorted(used, forest.feature), LEAF)
    feature = feature.astype(forest.feature.dtype)
    feature.flags.writeable = False  # as in every model: kernels are compiled for that
    return X[:, used], replace(forest, feature=feature, layouts={})


def _by_block(function: Callable[[Any], Any], engine: Engine, X: Any) -> Any:
    """function(block) of all rows, as one array; at least one block."""
    blocks = (block for _, block in dense_blocks(X))
    parts = [function(engine.view(block)) for block in blocks]
    return np.concatenate(parts if parts else [function(engine.view(X.toarray()))])
