"""Everything that is CuPy's alone. Importing this file imports neither CuPy nor CUDA."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
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


def where_on(device: int) -> Where:
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


@cache
def processors(device: int) -> int:
    """Multiprocessors of a GPU: one question to the driver, asked once.

    `Device.attributes` asks for about a hundred.
    """
    import cupy

    runtime = cupy.cuda.runtime
    return int(runtime.deviceGetAttribute(runtime.cudaDevAttrMultiProcessorCount, device))


def stream_pointer() -> int:
    """CuPy's current stream on the current GPU."""
    import cupy

    return int(cupy.cuda.get_current_stream().ptr)


def on_device(device: int) -> Any:
    """A context in which CuPy allocates and computes on that GPU."""
    import cupy

    return cupy.cuda.Device(device)


# Streams, by GPU, of the thread that a worker thread works for.
_CALLER_STREAMS: ContextVar[Mapping[int, Any]] = ContextVar(
    "ensemble_gpu_streams", default=MappingProxyType({})
)


def remember_streams() -> None:
    """Let `current` find the streams of this thread, wherever this context is run.

    CuPy's current streams are a thread's own: a worker thread would queue its work on the default
    stream, which need not wait for the arrays that the caller's stream is still computing.
    """
    if "cupy" not in sys.modules or not available():
        return
    import cupy

    found = range(cupy.cuda.runtime.getDeviceCount())
    _CALLER_STREAMS.set({gpu: cupy.cuda.get_current_stream(gpu) for gpu in found})


@contextmanager
def current(where: Where, task: str) -> Iterator[None]:
    """A context in which CuPy works on the GPU of `where`; elsewhere nothing changes.

    CuPy allocates on its current GPU whatever `device=` says, and that need not be the GPU of a
    user's torch or JAX arrays. A worker thread works on its caller's stream (`remember_streams`):
    the outermost `current` enters it, those inside leave the stream alone. `task` is for the error
    where memory runs out.
    """
    if where.kind != CUDA or not available():
        yield
        return
    gpu, streams = index_of(where.device), _CALLER_STREAMS.get()
    others = {number: stream for number, stream in streams.items() if number != gpu}
    with on_device(gpu), streams.get(gpu, nullcontext()), naming_the_size(task, None):
        _CALLER_STREAMS.set(others)
        try:
            yield
        finally:
            _CALLER_STREAMS.set(streams)


def overwrite(array: Any, values: np.ndarray) -> None:
    """Copy host values into an existing CuPy array, in the order of the current stream.

    `asarray` copies them into pinned memory at once, and CuPy keeps that memory until the transfer
    is done; nothing waits. `array.set` would leave a transfer under way from `values` itself, which
    the caller may drop or change; to wait for it would stop the host once a round.
    """
    import cupy

    array[...] = cupy.asarray(values, dtype=array.dtype)


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
