"""The one import of numba's CUDA target, its settings, and how an array becomes an argument.

With the package numba-cuda installed `numba.cuda` is that package; without it, only the simulator
inside numba is of use. Every kernel file takes `cuda` from here and keeps it as a module global.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from numba import cuda as numba_cuda

from ensemble_gpu.kernels.cuda import available
from ensemble_gpu.kernels.jit import digest

__all__ = [
    "cuda", "device_handle", "external_stream", "kernel", "product",
    "simulator_handle", "use_device",
]  # fmt: skip


class _Simulated:
    """`cuda` under the simulator: numba's module, or what stands for it while a kernel runs.

    The simulator puts that into the globals of a kernel's file for a launch, but into those of a
    device function's file call by call, where the threads of a block undo each other's.
    """

    def __init__(self, running: Callable[[], Any]) -> None:
        self.running = running

    def __getattr__(self, name: str) -> Any:
        return getattr(self.running() or numba_cuda, name)


cuda: Any = numba_cuda
# a * b, rounded for itself: a compiler fuses no addition with it.
product: Any = operator.mul
if available.simulated():
    from numba.cuda.simulator.kernel import _get_kernel_context

    cuda = _Simulated(_get_kernel_context)
else:
    from numba.cuda import dispatcher, libdevice

    product = libdevice.dmul_rn
    # Grids of a few blocks are meant (the choice of a split is one block). numba.cuda advises
    # against them at every launch, with a warning of its own class; this switch is the process's.
    launch_config: Any = dispatcher.config
    launch_config.CUDA_LOW_OCCUPANCY_WARNINGS = 0


def kernel(most_registers: int | None = None) -> Callable[[Any], Any]:
    """`cuda.jit` for a kernel, cached on disk; of at most so many registers a thread.

    numba looks for changes in the kernel's own file only. The stamp that it compares is a digest
    over the sources of all kernels instead, so that no edit elsewhere and no upgrade runs old code.
    """
    bound = most_registers is not None and not available.simulated()
    options = {"max_registers": most_registers} if bound else {}

    def declared(function: Any) -> Any:
        try:
            compiled = cuda.jit(cache=True, **options)(function)
        except RuntimeError:  # no folder can be written: this process compiles for itself alone
            return cuda.jit(**options)(function)
        file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
        if file is not None:
            file._source_stamp = digest(frozenset())
        return compiled

    return declared


def simulator_handle(array: Any) -> Any:
    """A NumPy array as a simulated device array: the same memory, where numba would copy."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    return FakeCUDAArray(array)


def device_handle(array: Any) -> Any:
    """A device array of another library as numba's: the same memory, and no waiting.

    Converted once and kept: a kernel launch takes it ten times faster than the array itself.
    """
    return cuda.as_cuda_array(array, sync=False)


def external_stream(pointer: int) -> Any:
    """A stream of another library; 0 is the default stream of both."""
    return cuda.external_stream(pointer) if pointer else 0


def use_device(index: int) -> AbstractContextManager[Any]:
    """Make a GPU numba's current one (numba remembers its own choice per thread)."""
    return cuda.gpus[index]
