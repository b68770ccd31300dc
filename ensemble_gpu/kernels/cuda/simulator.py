"""Numba's CUDA simulator, made a little more like a GPU; for tests and the self-test only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from numba.np.numpy_support import as_dtype

GARBAGE = 0xA5
SWITCH_SECONDS = 2e-5


@contextmanager
def faithful_simulator() -> Iterator[None]:
    """Shared memory that starts with garbage, one array per source line, threads that alternate.

    Integers wrap around without a word from NumPy: on a GPU cells of a histogram may, and kernels
    count on it. (NumPy's error state is a thread's own, so each simulated thread sets it.)

    As on a GPU, shared memory does not hold what the last launch left there. Allocation takes a
    lock: in the simulator's own, two threads of a block can get an array each. Threads are switched
    often: barriers are polled, and more interleavings are seen. Nothing is put into the globals of
    a file for the time of a call, where threads would meet: `cuda` finds the launch by itself
    (_numba.py).
    """
    from numba.cuda.simulator import kernel
    from numba.cuda.simulator.kernelapi import FakeCUDAShared

    lock = threading.Lock()

    def array(self: Any, shape: int, dtype: Any) -> np.ndarray:
        frame = sys._getframe(1)
        line = (frame.f_code.co_filename, frame.f_lineno)
        with lock:
            if line not in self._allocations:
                memory = np.empty(shape, as_dtype(dtype))
                memory.view(np.uint8)[...] = GARBAGE
                self._allocations[line] = memory
            return self._allocations[line]

    run = kernel.BlockThread.run

    def run_wrapping(self: Any) -> None:
        with np.errstate(over="ignore"):
            run(self)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with (
            patch.object(FakeCUDAShared, "array", array),
            patch.object(kernel, "swapped_cuda_module", lambda *_: nullcontext()),
            patch.object(kernel.BlockThread, "run", run_wrapping),
        ):
            yield
    finally:
        sys.setswitchinterval(interval)
