"""The `device` parameter: None follows the input, "cpu", "cuda", "auto" (a GPU if there is one)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import HOST, NARROW, is_array, locate, to_numpy
from ensemble_gpu.arrays.plain import widened

DEVICES = (None, "cpu", "cuda", "auto")


def check_device(device: str | None) -> None:
    """Raise where "cuda" is asked for and cannot be had, with what to install."""
    if device == "cuda" and not gpu.available():
        raise RuntimeError(f"device='cuda' was given, but {gpu.why_unavailable()}")


def to_workplace(array: Any, device: str | None = None) -> Any:
    """The user's array where it can be worked on.

    Arrays of the host are seen as NumPy's, without a copy; so are, copied, those that
    device="cpu" asks for and those of a device without 64-bit numbers, with a warning.
    Others stay where they are. Types narrower than float32 that NumPy does not know become float32.
    """
    if not is_array(array) or isinstance(array, np.ndarray):
        return widened(array)
    where = locate(array)
    if where.kind == NARROW and device != "cpu":
        warnings.warn(
            f"{where} has no 64-bit numbers: the array is copied to the host, where the model is "
            "fitted and evaluated. device='cpu' asks for that without this warning.",
            RuntimeWarning,
            stacklevel=2,
        )
    at_host = where.kind in (HOST, NARROW) or device == "cpu"
    return widened(to_numpy(array)) if at_host else array


def from_host(array: Any, device: str | None) -> Any:
    """A validated array, moved once to the GPU where `device` asks for one."""
    if device not in ("cuda", "auto") or array is None or locate(array).kind != HOST:
        return array
    return gpu.to_gpu(np.asarray(to_numpy(array))) if gpu.available() else array
