"""Decompositions where the arrays are; on the host, with a warning, where their library has none.

`linalg` is an extension of the array API, which a library need not have.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where


def eigh(A: Any, where: Where) -> tuple[Any, Any]:
    """Eigenvalues, ascending, and eigenvectors of a symmetric A [n, n]."""
    return _called("eigh", where, A)


def svd(A: Any, where: Where, *, full_matrices: bool = False) -> tuple[Any, Any, Any]:
    """U, s, V' of A [n, p]."""
    return _called("svd", where, A, full_matrices=full_matrices)


def solve_linear(A: Any, B: Any, where: Where) -> Any:
    """A^-1 B."""
    return _called("solve", where, A, B)


def trace(A: Any, where: Where) -> float:
    """The sum of the diagonal of A [n, n]."""
    xp = where.xp
    at = xp.arange(A.shape[0], device=where.device) * (A.shape[0] + 1)
    return float(xp.sum(xp.take(xp.reshape(A, (-1,)), at)))


def _called(name: str, where: Where, *arrays: Any, **options: Any) -> Any:
    try:
        function = getattr(where.xp.linalg, name)
    except AttributeError:
        warnings.warn(
            f"{where} has no linalg.{name}: it is computed on the host.",
            RuntimeWarning,
            stacklevel=3,
        )
        found = getattr(np.linalg, name)(*map(where.host, arrays), **options)
        if isinstance(found, tuple):
            return tuple(where.put(np.ascontiguousarray(part)) for part in found)
        return where.put(found)
    return function(*arrays, **options)
