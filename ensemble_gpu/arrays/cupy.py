"""Everything that is CuPy's alone. Importing this file imports neither CuPy nor CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import array_api_compat
import numpy as np

from ensemble_gpu.arrays.namespace import CUDA, Where, locate

INSTALL = (
    "install the package with CUDA support, pip install 'ensemble_gpu[cuda12]' or "
    "'ensemble_gpu[cuda13]' (the major version that nvidia-smi shows), or use device='cpu'."
)


def why_unavailable() -> str | None:
    """None where a GPU can be used through CuPy, else a sentence with the fix."""
    if find_spec("cupy") is None:
        return f"CuPy is not installed: {INSTALL}"
    try:
        import cupy
    except ImportError as error:
        return f"CuPy cannot be imported ({error}): {INSTALL}"
    if not cupy.cuda.is_available():
        return (
            "CuPy finds no usable GPU (no NVIDIA driver or no device): install the driver and "
            "check nvidia-smi, or use device='cpu'."
        )
    return None


def available() -> bool:
    """Whether there is a GPU that CuPy can use."""
    return why_unavailable() is None


def to_gpu(array: np.ndarray) -> Any:
    """A host array, copied once to the current GPU."""
    import cupy

    with naming_the_size(f"moving X {array.shape} to the GPU", array.nbytes):
        return cupy.asarray(array)


def adopt(array: Any) -> Any:
    """A CUDA array of any library as CuPy's: the same memory, through DLPack."""
    import cupy

    return array if isinstance(array, cupy.ndarray) else cupy.from_dlpack(array)


def hand_back(array: Any, where: Where) -> Any:
    """A CuPy array in the namespace of `where`: the same memory, through DLPack."""
    return array if array_api_compat.is_cupy_namespace(where.xp) else where.xp.from_dlpack(array)


def place(device: int) -> Where:
    """CuPy on that GPU."""
    import cupy

    with on_device(device):
        return locate(cupy.empty(0))


def index_of(device: Any) -> int:
    """The GPU's number from CuPy's, torch's or JAX's device object."""
    for name in ("index", "id"):
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    return 0


def processors(device: int) -> int:
    """Multiprocessors of a GPU."""
    import cupy

    return int(cupy.cuda.Device(device).attributes["MultiProcessorCount"])


def stream_pointer() -> int:
    """CuPy's current stream on the current GPU."""
    import cupy

    return int(cupy.cuda.get_current_stream().ptr)


def on_device(device: int) -> Any:
    """A context in which CuPy allocates and computes on that GPU."""
    import cupy

    return cupy.cuda.Device(device)


@contextmanager
def current(where: Where, task: str) -> Iterator[None]:
    """A context in which CuPy works on the GPU of `where`; elsewhere nothing changes.

    CuPy allocates on its current GPU whatever `device=` says, and that need not be the GPU of a
    user's torch or JAX arrays. `task` is for the error where memory runs out.
    """
    if where.kind != CUDA or not available():
        yield
        return
    with on_device(index_of(where.device)), naming_the_size(task, None):
        yield


def overwrite(array: Any, values: np.ndarray) -> None:
    """Copy host values into an existing CuPy array, in the order of the current stream."""
    array.set(np.ascontiguousarray(values, dtype=array.dtype))


def release() -> None:
    """Give unused blocks of CuPy's pool back to the driver."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


@contextmanager
def naming_the_size(task: str, needed: int | None) -> Iterator[None]:
    """Turn CuPy's out-of-memory error into one that says what for, how much, and what to do.

    Without `needed`, how much is what CuPy says of the array that did not fit.
    """
    import cupy

    try:
        yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        release()
        free, total = cupy.cuda.Device().mem_info
        wanted = f"{_size(needed)} of GPU memory" if needed else f"more GPU memory ({error})"
        raise MemoryError(
            f"{task} needs {wanted}; {_size(free)} of {_size(total)} are free. Free other arrays, "
            "pass float32, or use device='cpu'."
        ) from error


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.2f} GiB" if n_bytes >= 2**29 else f"{n_bytes / 2**20:.1f} MiB"
