"""Sparse matrices of SciPy: host data, of which an entry that is not stored is 0.0.

A stored NaN is missing, as in dense arrays. What is read of a matrix is rows and columns of it, and
dense blocks of a few rows; never all of it as floats. Estimators and models work on CSR with every
entry once (`canonical`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.streamed import Decoded, Streamed

# Cells of a dense block: it stays small beside the codes of the matrix.
BLOCK_CELLS = 1 << 20


def is_sparse(X: Any) -> bool:
    """A matrix or an array of scipy.sparse, which whoever has one has imported."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)


def in_blocks(X: Any) -> bool:
    """A sparse matrix, or decoded rows: dense blocks of a few rows are what is read of them."""
    return isinstance(X, Decoded) or is_sparse(X)


def is_no_array(X: Any) -> bool:
    """Rows that an engine has no view of."""
    return isinstance(X, Streamed) or in_blocks(X)


def check_dense(X: Any, for_what: str) -> None:
    """Raise where X is sparse."""
    if is_sparse(X):
        raise TypeError(
            f"{for_what} takes dense X; got {type(X).__name__}, which is sparse. X.toarray() is "
            "dense."
        )


def canonical(X: Any) -> Any:
    """X as CSR with every entry once; the user's own is left as it is."""
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is X or np.shares_memory(rows.data, X.data) else rows
        rows.sum_duplicates()
    return rows


def take_rows(X: Any, at: Any) -> Any:
    """The rows of an array, a sparse matrix or streamed rows at the given positions."""
    return X[at] if is_no_array(X) else locate(X).xp.take(X, at, axis=0)


def take_columns(X: Any, at: np.ndarray) -> Any:
    """The columns of an array or a sparse matrix at the given positions (of the host)."""
    if is_sparse(X):
        return X[:, at]
    where = locate(X)
    return where.xp.take(X, where.put(at), axis=1)


def column(X: Any, f: int) -> Any:
    """Column f [rows] of an array, a sparse matrix or decoded rows."""
    return X[:, [f]].toarray()[:, 0] if is_sparse(X) else X[:, f]


def dense_blocks(X: Any) -> Iterator[tuple[slice, np.ndarray]]:
    """The rows of what is read in blocks, some at a time."""
    n, p = X.shape
    size = max(1, BLOCK_CELLS // max(1, p))
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        yield rows, X[rows].toarray()
