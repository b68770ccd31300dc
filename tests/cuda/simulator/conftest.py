"""The CUDA engine under numba's simulator: needs NUMBA_ENABLE_CUDASIM=1 and its own process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.np.numpy_support import as_dtype

from ensemble_gpu.kernels.cuda import available

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if available.simulated():
        return
    reason = "needs the simulator: NUMBA_ENABLE_CUDASIM=1 python -m pytest tests/cuda/simulator"
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _eager_switching() -> Iterator[None]:
    """Switch threads often: barriers are polled, and more interleavings are seen."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(2e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(autouse=True)
def _garbage_in_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shared memory starts with garbage, as on a GPU, and not with what a launch left there.

    Allocation takes a lock: in the simulator's own, two threads can get an array each.
    """
    from numba.cuda.simulator.kernelapi import FakeCUDAShared

    lock = threading.Lock()

    def array(self: Any, shape: int, dtype: Any) -> np.ndarray:
        frame = sys._getframe(1)
        line = (frame.f_code.co_filename, frame.f_lineno)
        with lock:
            if line not in self._allocations:
                memory = np.empty(shape, as_dtype(dtype))
                memory.view(np.uint8)[...] = 0xA5
                self._allocations[line] = memory
            return self._allocations[line]

    monkeypatch.setattr(FakeCUDAShared, "array", array)
