"""What can be known of the CuPy side without a GPU."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from ensemble_gpu import use_engine
from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import CUDA, NUMPY, Where
from ensemble_gpu.bagging.learners import in_threads
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


def test_the_advice_to_launch_more_blocks_is_switched_off() -> None:
    """numba-cuda gives it, as a warning of its own class, when a launch is configured."""
    from numba.cuda.core import errors
    from numba.cuda.dispatcher import _LaunchConfiguration, config

    shape = (1, 1, 1), (4, 1, 1)
    assert config.CUDA_LOW_OCCUPANCY_WARNINGS == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _LaunchConfiguration(None, *shape, 0, 0)
    with (
        patch.object(config, "CUDA_LOW_OCCUPANCY_WARNINGS", 1),
        pytest.warns(errors.NumbaPerformanceWarning, match="Grid size 1"),
    ):
        _LaunchConfiguration(None, *shape, 0, 0)


def test_launches_leave_the_filters_of_warnings_alone() -> None:
    """Also where threads overlap: catch_warnings would restore what another thread has set."""
    inside = threading.Barrier(4)

    class Kernel:
        def __getitem__(self, shape: Any) -> Any:
            return lambda *args: (inside.wait(timeout=30), seen.append(list(warnings.filters)))

    seen: list[Any] = []
    before = list(warnings.filters)
    threads = [threading.Thread(target=launch, args=(Kernel(), 1, 4, 0)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == 4 * [before]
    assert warnings.filters == before


class FakeStream:
    """A stream that notes the threads in which it is current."""

    def __init__(self, name: str) -> None:
        self.name, self.threads = name, list[int]()

    def __enter__(self) -> FakeStream:
        self.threads.append(threading.get_ident())
        current_stream.name = self.name
        return self

    def __exit__(self, *_: Any) -> None:
        current_stream.name = "default"


current_stream = threading.local()


def gpu_of_torch(index: int) -> Where:
    return Where(np, SimpleNamespace(type="cuda", index=index), CUDA)


def on_caller_stream(monkeypatch: pytest.MonkeyPatch) -> list[FakeStream]:
    """CuPy with two GPUs; the streams that are current in the calling thread."""
    cupy = pytest.importorskip("cupy")
    streams = [FakeStream("first"), FakeStream("second")]
    monkeypatch.setattr(gpu, "available", lambda: True)
    monkeypatch.setattr(gpu, "on_device", lambda index: nullcontext())
    monkeypatch.setattr(cupy.cuda.runtime, "getDeviceCount", lambda: 2)
    monkeypatch.setattr(cupy.cuda, "get_current_stream", lambda index: streams[index])
    return streams


def test_worker_threads_run_on_the_stream_of_their_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = on_caller_stream(monkeypatch)

    def work(index: int) -> tuple[int, str]:
        with gpu.current(gpu_of_torch(index), "bagging"), gpu.current(gpu_of_torch(index), "trees"):
            return threading.get_ident(), current_stream.name

    found = list(in_threads(work, [(0,), (1,), (0,), (1,)], n_jobs=2))
    assert [name for _, name in found] == ["first", "second", "first", "second"]
    assert threading.get_ident() not in [thread for thread, _ in found]
    # once a call: the inner `current` leaves the stream alone
    assert [len(stream.threads) for stream in streams] == [2, 2]


def test_a_stream_that_a_learner_chooses_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    on_caller_stream(monkeypatch)

    def work(index: int) -> str:
        with (
            gpu.current(gpu_of_torch(index), "bagging"),
            FakeStream("the learner's"),
            gpu.current(gpu_of_torch(index), "trees"),
        ):
            return current_stream.name

    assert list(in_threads(work, [(0,), (0,)], n_jobs=2)) == 2 * ["the learner's"]


def test_no_stream_is_entered_in_the_thread_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = on_caller_stream(monkeypatch)
    list(in_threads(lambda: None, [()], n_jobs=2))
    with gpu.current(gpu_of_torch(0), "bagging"):
        assert streams[0].threads == []


def test_processors_of_a_gpu_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("cupy").cuda.runtime
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(runtime, "deviceGetAttribute", lambda *a: asked.append(a) or 108)
    gpu.processors.cache_clear()
    try:
        assert [gpu.processors(d) for d in (0, 1, 0, 1)] == 4 * [108]
    finally:
        gpu.processors.cache_clear()
    assert asked == [(16, 0), (16, 1)]  # cudaDevAttrMultiProcessorCount


def test_values_may_change_once_they_have_overwritten_an_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NumPy stands in: `asarray` has copied when it returns, as CuPy's does from the host."""
    cupy = pytest.importorskip("cupy")
    monkeypatch.setattr(cupy, "asarray", lambda a, dtype: np.array(a, dtype=dtype))
    array, values = np.zeros(3, dtype=np.int32), np.arange(3.0)
    gpu.overwrite(array, values)
    values += 1.0
    assert array.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="broadcast"):
        gpu.overwrite(array, np.zeros(2))


def test_kernels_are_not_available_without_a_device() -> None:
    if gpu.available():
        pytest.skip("this machine has a GPU")
    assert available.installed()
    assert not available.kernels()
