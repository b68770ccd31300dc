"""The namespaces and devices that the tests run on.

NumPy and array-api-strict always; CuPy where ENSEMBLE_GPU_TEST_CUPY=1 (a machine with a GPU).
Of strict's devices one is enough where arrays are only used: `DEVICE` is not strict's default, so
that an array made without its device cannot be mixed with the others. Where arrays are made, moved
and compared (tests/arrays), and where devices choose the engine, all of them are tried.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import array_api_strict
import numpy as np

WITH_CUPY = os.environ.get("ENSEMBLE_GPU_TEST_CUPY") == "1"
ENGINES = ["cpu", "reference"]

# Devices of array-api-strict that have every data type, and those that lack the wide ones.
FULL_DEVICES = ("CPU_DEVICE", "device1", "device2")
NARROW_DEVICES = ("no_float64", "no_x64")


@dataclass(frozen=True)
class Place:
    """A namespace and one of its devices; `put` and `host` move small arrays there and back."""

    name: str
    xp: Any
    device: Any

    def put(self, array: Any) -> Any:
        if array is None:
            return None
        if self.name == "cupy":  # its asarray takes no device
            return self.xp.asarray(np.asarray(array))
        return self.xp.asarray(np.asarray(array), device=self.device)

    def host(self, array: Any) -> np.ndarray:
        if hasattr(array, "get"):
            return array.get()
        if self.xp is array_api_strict:
            array = array.to_device(array_api_strict.Device("CPU_DEVICE"))
        return np.asarray(array)

    def check(self, array: Any, dtype: str) -> None:
        """Assert that an array is of this namespace, on this device, of this data type."""
        assert type(array) is type(self.put(np.zeros(1)))
        assert array.device == self.device
        assert array.dtype == getattr(self.xp, dtype)

    def __str__(self) -> str:
        return self.name


def _strict(name: str) -> Place:
    return Place(f"strict-{name}", array_api_strict, array_api_strict.Device(name))


NUMPY = Place("numpy", np, "cpu")
STRICT = [_strict(name) for name in FULL_DEVICES]
NARROW = [_strict(name) for name in NARROW_DEVICES]
DEVICE = STRICT[1]
PLACES = [NUMPY, DEVICE]
EVERY_PLACE = [NUMPY, *STRICT]

if WITH_CUPY:
    import cupy

    GPU = Place("cupy", cupy, cupy.cuda.Device(0))
    PLACES.append(GPU)
    EVERY_PLACE.append(GPU)
