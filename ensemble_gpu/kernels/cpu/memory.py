"""Large arrays that do not outlive their use."""

from __future__ import annotations

import math
import mmap
import threading
import weakref
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


class _Kept(threading.local):
    """A thread's arrays: {use: (of what matrix, the array)}."""

    def __init__(self) -> None:
        self.arrays: dict[str, tuple[Any, np.ndarray]] = {}


_KEPT = _Kept()


def kept_array(matrix: np.ndarray, use: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """As `scratch_array`, but trees of one matrix take it over from each other.

    To have it from the system anew would cost a boosted tree a tenth of its time. It is given back
    when the matrix is. One at a time on a thread may have it, for the time of a call.
    """
    arrays, dtype = _KEPT.arrays, np.dtype(dtype)
    owner, array = arrays.get(use, (lambda: None, np.empty(0)))
    fits = array.dtype == dtype and array.shape[1:] == shape[1:] and len(array) >= shape[0]
    if not fits or owner() is not matrix:
        array = scratch_array(shape, dtype)
        arrays[use] = weakref.ref(matrix, lambda _: arrays.pop(use, None)), array
    return array[: shape[0]]
