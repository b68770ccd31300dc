"""Memory, stream and launch shapes of one GPU, or of the simulator, for the engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import array_api_compat
import numpy as np

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.kernels.cuda import _numba, available
from ensemble_gpu.kernels.cuda.launch import SIMULATOR_PLAN, LaunchPlan, Shape, device_plan


class Device(Protocol):
    """What the engine needs of the place where its arrays live."""

    where: Where
    plan: LaunchPlan

    def handle(self, array: Any) -> Any:
        """A device array as a kernel argument, sharing its memory."""
        ...

    def adopt(self, array: Any) -> Any:
        """A user's array of this device as an array of `where`, without a copy."""
        ...

    def hand_back(self, array: Any) -> Any:
        """A result in the user's own namespace, without a copy."""
        ...

    def overwrite(self, array: Any, values: np.ndarray) -> None:
        """Copy host values into a device array, in the order of the stream."""
        ...

    def stream(self) -> Any:
        """The stream to launch on."""
        ...

    def active(self, task: str, needed: int) -> AbstractContextManager[None]:
        """A context for work on this device; `task` and `needed` bytes are for the error."""
        ...


class SimulatedDevice:
    """NumPy arrays; numba's simulator runs the kernels."""

    where = NUMPY

    def __init__(self, plan: LaunchPlan) -> None:
        self.plan = plan

    def handle(self, array: np.ndarray) -> Any:
        return _numba.simulator_handle(array)

    def adopt(self, array: np.ndarray) -> np.ndarray:
        return array

    def hand_back(self, array: np.ndarray) -> np.ndarray:
        return array

    def overwrite(self, array: np.ndarray, values: np.ndarray) -> None:
        array[...] = values

    def stream(self) -> int:
        return 0

    def active(self, task: str, needed: int) -> AbstractContextManager[None]:
        return nullcontext()


class CupyDevice:
    """CuPy arrays on one GPU, on CuPy's current stream; DLPack for other CUDA arrays."""

    def __init__(self, user: Where, index: int, plan: LaunchPlan | None) -> None:
        self.user, self.index = user, index
        self.where = gpu.where_on(index)
        self.plan = plan or device_plan(gpu.processors(index))
        self.streams: dict[int, Any] = {}

    def handle(self, array: Any) -> Any:
        return _numba.device_handle(array)

    def adopt(self, array: Any) -> Any:
        return gpu.adopt(array)

    def hand_back(self, array: Any) -> Any:
        return gpu.hand_back(array, self.user)

    def overwrite(self, array: Any, values: np.ndarray) -> None:
        gpu.overwrite(array, values)

    def stream(self) -> Any:
        pointer = gpu.stream_pointer()
        if pointer not in self.streams:
            self.streams[pointer] = _numba.external_stream(pointer)
        return self.streams[pointer]

    @contextmanager
    def active(self, task: str, needed: int) -> Iterator[None]:
        with (
            gpu.on_device(self.index),
            _numba.use_device(self.index),
            gpu.naming_the_size(task, needed),
        ):
            yield


def device_for(where: Where, plan: LaunchPlan | None) -> Device:
    """The simulator for NumPy arrays, else the GPU that the arrays are on."""
    if available.simulated():
        if not array_api_compat.is_numpy_namespace(where.xp):
            raise ValueError(f"The CUDA simulator runs on NumPy arrays only; got {where}.")
        return SimulatedDevice(plan or SIMULATOR_PLAN)
    if array_api_compat.is_numpy_namespace(where.xp):
        raise ValueError(
            "The CUDA engine runs on CUDA arrays; got NumPy arrays. device='cuda' moves them."
        )
    return CupyDevice(where, gpu.index_of(where.device), plan)


def few_blocks(device: Device) -> Shape:
    """For kernels that walk over the rows."""
    return Shape(device.plan.blocks, device.plan.threads, device.stream())


def thread_a_row(device: Device, n_rows: int) -> Shape:
    """For kernels of one row (or node) a thread."""
    return Shape(device.plan.row_blocks(n_rows), device.plan.threads, device.stream())


def integers(array: np.ndarray, device: Device) -> Any:
    """Small integers of the host as a kernel argument."""
    return device.handle(device.where.put(np.ascontiguousarray(array, dtype=np.int32)))
