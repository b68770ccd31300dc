"""The `device` parameter: None follows the input, "cpu", "cuda", "auto" (a GPU if there is one)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import HOST, is_array, locate, to_numpy

DEVICES = (None, "cpu", "cuda", "auto")


def check_device(device: str | None) -> None:
    """Raise where "cuda" is asked for and cannot be had, with what to install."""
    if device == "cuda" and not gpu.available():
        raise RuntimeError(f"device='cuda' was given, but {gpu.why_unavailable()}")


def to_device(array: Any, device: str | None) -> Any:
    """The user's array, brought to the host where device="cpu" asks for it."""
    if device == "cpu" and is_array(array) and locate(array).kind != HOST:
        return to_numpy(array)
    return array


def from_host(array: Any, device: str | None) -> Any:
    """A validated array, moved once to the GPU where `device` asks for one."""
    if device not in ("cuda", "auto") or array is None or locate(array).kind != HOST:
        return array
    return gpu.to_gpu(np.asarray(to_numpy(array))) if gpu.available() else array
