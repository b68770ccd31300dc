"""Large arrays that do not outlive their use."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

# Bytes from which an array has pages of its own.
LARGE = 1 << 20

_PRIVATE = (
    {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}
)


def scratch_array(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """As np.empty, but a large array goes back to the system as soon as nobody has it.

    malloc keeps what it is given back, on every thread that grew a tree, and between the arrays of
    two trees it may find no place for a third. Pages that are not written to take no memory.
    """
    dtype = np.dtype(dtype)
    n = math.prod(shape)
    if n * dtype.itemsize < LARGE:
        return np.empty(shape, dtype=dtype)
    pages = mmap.mmap(-1, n * dtype.itemsize, **_PRIVATE)
    return np.frombuffer(pages, dtype=dtype, count=n).reshape(shape)
