"""What can be known of the CuPy side without a GPU."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import use_engine
from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import CUDA, NUMPY, Where
from ensemble_gpu.kernels.cuda import _numba, available
from ensemble_gpu.kernels.cuda.device import CupyDevice, device_for
from ensemble_gpu.kernels.cuda.launch import SIMULATOR_PLAN, launch
from ensemble_gpu.kernels.select import engine_for


def test_asking_what_is_available_imports_neither_cupy_nor_cuda() -> None:
    code = (
        "import sys, ensemble_gpu.arrays.cupy\n"
        "from ensemble_gpu.kernels.cuda import available\n"
        "available.installed(), available.simulated()\n"
        "loaded = [m for m in ('cupy', 'numba.cuda', 'numba_cuda.numba') if m in sys.modules]\n"
        "sys.exit(f'imported: {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_a_gpu_the_reference_engine_steps_in_with_a_warning() -> None:
    if gpu.available():
        pytest.skip("this machine has a GPU")
    with use_engine("cuda"), pytest.warns(RuntimeWarning, match=r"pip install 'ensemble_gpu\["):
        engine = engine_for(NUMPY)
    assert engine.name == "reference"


def test_out_of_memory_names_the_size_and_frees_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")
    freed: list[bool] = []
    device = SimpleNamespace(mem_info=(2**30, 8 * 2**30))
    monkeypatch.setattr(cupy.cuda, "Device", lambda: device)
    monkeypatch.setattr(gpu, "release", lambda: freed.append(True))
    message = "encoding 5 rows needs 3.00 GiB of GPU memory; 1.00 GiB of 8.00 GiB are free"
    with (
        pytest.raises(MemoryError, match=message),
        gpu.naming_the_size("encoding 5 rows", 3 * 2**30),
    ):
        raise cupy.cuda.memory.OutOfMemoryError(3 * 2**30, 0)
    assert freed == [True]


def test_out_of_memory_without_a_size_says_what_cupy_says(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = pytest.importorskip("cupy")
    device = SimpleNamespace(mem_info=(2**30, 8 * 2**30))
    monkeypatch.setattr(cupy.cuda, "Device", lambda: device)
    monkeypatch.setattr(gpu, "release", lambda: None)
    message = r"boosting needs more GPU memory \(.*12,345 bytes.*\); 1.00 GiB of 8.00 GiB are free"
    with pytest.raises(MemoryError, match=message), gpu.naming_the_size("boosting", None):
        raise cupy.cuda.memory.OutOfMemoryError(12345, 0)


def test_the_gpu_of_the_arrays_is_made_current(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[int] = []

    def on_device(index: int) -> Any:
        entered.append(index)
        return nullcontext()

    monkeypatch.setattr(gpu, "on_device", on_device)
    monkeypatch.setattr(gpu, "available", lambda: True)
    with gpu.current(NUMPY, "boosting"):
        assert entered == []
    with gpu.current(Where(np, SimpleNamespace(type="cuda", index=1), CUDA), "boosting"):
        assert entered == [1]


@pytest.mark.parametrize(
    ("device", "index"),
    [
        (SimpleNamespace(id=2), 2),  # CuPy, JAX
        (SimpleNamespace(type="cuda", index=1), 1),  # torch
        (SimpleNamespace(type="cuda", index=None), 0),
    ],
)
def test_the_gpu_of_an_array_is_found(device: Any, index: int) -> None:
    assert gpu.index_of(device) == index


def test_numpy_arrays_are_refused_outside_the_simulator() -> None:
    with pytest.raises(ValueError, match="CUDA engine runs on CUDA arrays"):
        device_for(NUMPY, None)


def test_launches_go_to_the_current_stream_which_is_converted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    converted: list[int] = []
    current = iter([7, 7, 0, 7])
    monkeypatch.setattr(gpu, "stream_pointer", lambda: next(current))
    monkeypatch.setattr(_numba, "external_stream", lambda p: converted.append(p) or f"stream {p}")
    device = object.__new__(CupyDevice)
    device.streams = {}
    assert [device.stream() for _ in range(4)] == ["stream 7", "stream 7", "stream 0", "stream 7"]
    assert converted == [7, 0]


def test_results_go_back_through_dlpack() -> None:
    """NumPy stands in for the user's library: it takes any array that speaks DLPack."""
    where = Where(np, "cpu", NUMPY.kind)
    array = np.arange(3.0)
    back = gpu.hand_back(array, where)
    assert back is not array
    assert np.shares_memory(back, array)


def test_a_launch_passes_grid_block_stream_and_arguments() -> None:
    seen: list[Any] = []

    class Kernel:
        def __getitem__(self, shape: Any) -> Any:
            return lambda *args: seen.append((shape, args))

    launch(Kernel(), 3, SIMULATOR_PLAN.threads, "stream", 1, 2)
    assert seen == [((3, 4, "stream"), (1, 2))]


def test_the_advice_to_launch_more_blocks_is_silenced() -> None:
    from numba.core.errors import NumbaPerformanceWarning

    class Kernel:
        def __getitem__(self, shape: Any) -> Any:
            import warnings

            warnings.warn(NumbaPerformanceWarning("Grid size 1"), stacklevel=2)
            return lambda *args: None

    launch(Kernel(), 1, 4, 0)


def test_kernels_are_not_available_without_a_device() -> None:
    if gpu.available():
        pytest.skip("this machine has a GPU")
    assert available.installed()
    assert not available.kernels()
