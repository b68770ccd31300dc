"""Which namespace, which device, how to move: the only room that knows array libraries by name.

`Where` is a namespace together with a device. Everything that crosses between host and device goes
through its `put` and `host`, so a transfer is always visible in the code that causes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import array_api_compat
import numpy as np

# Memory of the host; of a GPU; of another device; of one that has no 64-bit numbers.
HOST, CUDA, OTHER, NARROW = "cpu", "cuda", "other", "narrow"


@dataclass(frozen=True)
class Where:
    """A namespace and a device of it; `kind` says which engine can reach the memory."""

    xp: Any
    device: Any
    kind: str

    def put(self, array: np.ndarray) -> Any:
        """A host array, copied to this device."""
        if array_api_compat.is_numpy_namespace(self.xp):
            return array
        return self.xp.asarray(np.array(array, order="C"), device=self.device)

    def hand_over(self, array: Any) -> Any:
        """A result that nobody else holds, as an array of this place; no copy on the host."""
        if not isinstance(array, np.ndarray) or array_api_compat.is_numpy_namespace(self.xp):
            return array
        if array.dtype.kind in "OUST":
            return array  # labels that only the host can hold
        if self.kind == NARROW and array.dtype.kind in "fi":
            array = array.astype({"f": np.float32, "i": np.int32}[array.dtype.kind])
        return self.xp.asarray(array, device=self.device)

    def host(self, array: Any) -> np.ndarray:
        """A NumPy copy or view of an array of this place (meant for small ones)."""
        return to_numpy(array)

    def full(self, value: Any, dtype: Any = None) -> Any:
        """A 0-d array; float64 unless told."""
        xp = self.xp
        return xp.asarray(value, dtype=xp.float64 if dtype is None else dtype, device=self.device)

    def zeros(self, shape: Any, dtype: Any) -> Any:
        return self.xp.zeros(shape, dtype=dtype, device=self.device)

    def as_float64(self, array: Any) -> Any:
        return self.xp.astype(array, self.xp.float64)

    def __str__(self) -> str:
        name = self.xp.__name__.removeprefix("array_api_compat.")
        return f"{name} on {self.device}"

    def __reduce__(self) -> Any:
        """A pickle names the namespace: modules have none of their own."""
        return _again, (self.xp.__name__, self.device, self.kind)


def _again(namespace: str, device: Any, kind: str) -> Where:
    found = Where(import_module(namespace), device, kind)
    return NUMPY if found == NUMPY else found


NUMPY = Where(array_api_compat.array_namespace(np.zeros(1)), "cpu", HOST)


def is_array(x: Any) -> bool:
    """An object of an array-API library (frames, lists and scalars are not)."""
    return isinstance(x, np.ndarray) or (
        not np.isscalar(x) and array_api_compat.is_array_api_obj(x)
    )


def locate(x: Any) -> Where:
    """Where an array lives; what is not an array will be read into NumPy."""
    if not is_array(x) or isinstance(x, np.ndarray):
        return NUMPY
    xp = array_api_compat.array_namespace(x)
    device = array_api_compat.device(x)
    return Where(xp, device, _kind(x, xp, device))


def _kind(x: Any, xp: Any, device: Any) -> str:
    if array_api_compat.is_cupy_array(x):
        return CUDA
    if array_api_compat.is_torch_array(x):
        return {"cpu": HOST, "cuda": CUDA, "mps": NARROW}.get(x.device.type, OTHER)
    if array_api_compat.is_jax_array(x):
        _check_not_traced(x)
        platform = next(iter(x.devices())).platform
        return {"cpu": HOST, "gpu": CUDA, "cuda": CUDA}.get(platform, OTHER)
    dtypes = xp.__array_namespace_info__().dtypes(device=device)
    return OTHER if {"float64", "int64"} <= set(dtypes) else NARROW


def _check_not_traced(x: Any) -> None:
    """Raise where JAX is compiling or differentiating a function: its arrays have no values."""
    import jax

    if isinstance(x, jax.core.Tracer):
        raise TypeError(
            "Estimators and models cannot be traced: inside a function that JAX compiles, maps or "
            "differentiates arrays have no values to fit or to predict from. Call them outside."
        )


def to_numpy(x: Any) -> np.ndarray:
    """Host copy of an array, without a copy where the memory is the host's already."""
    if isinstance(x, np.ndarray):
        return x
    if array_api_compat.is_torch_array(x):
        x = x.detach().cpu()
        return x.float().numpy() if str(x.dtype) == "torch.bfloat16" else x.numpy()
    if array_api_compat.is_cupy_array(x):
        return x.get()
    module = type(x).__module__
    if module.startswith("array_api_strict"):
        import array_api_strict

        return np.asarray(x.to_device(array_api_strict.Device("CPU_DEVICE")))
    return np.asarray(x)


def check_same_place(where: Where, of: str = "X", /, **others: Any) -> None:
    """Raise where an array of another namespace or device is mixed with X, or what `of` names.

    Lists, frames and None have no device and pass.
    """
    for name, array in others.items():
        if not is_array(array):
            continue
        if isinstance(array, np.ndarray) and array.dtype.kind in "OUST":
            continue  # labels that only the host can hold
        there = locate(array)
        if isinstance(array, np.ndarray) and where.xp is NUMPY.xp:
            continue
        if there.xp is not where.xp or str(there.device) != str(where.device):
            raise ValueError(
                f"{of} and {name} must be of one array library on one device; {of} is {where}, "
                f"{name} is {there}. Move {name} to where {of} is (or {of} to where {name} is) "
                "before the call: nothing is moved silently."
            )
