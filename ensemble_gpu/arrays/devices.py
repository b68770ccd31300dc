"""The `device` parameter: None follows the input, "cpu", "cuda", "auto" (a GPU if there is one)."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import CUDA, HOST, is_array, locate, to_numpy

DEVICES = (None, "cpu", "cuda", "auto")


def move(array: Any, device: str | None) -> Any:
    """An array where `device` wants it; lists, frames and None are left for validation."""
    if device is None or not is_array(array):
        return array
    kind = locate(array).kind
    if device == "cpu":
        return array if kind == HOST else to_numpy(array)
    if kind == CUDA or (device == "auto" and not gpu.available()):
        return array
    return gpu.to_gpu(to_numpy(array))


def check_device(device: str | None) -> None:
    """Raise where "cuda" is asked for and cannot be had, with what to install."""
    if device == "cuda" and not gpu.available():
        raise RuntimeError(f"device='cuda' was given, but {gpu.why_unavailable()}")
