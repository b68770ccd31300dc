"""Numba's CUDA simulator, made a little more like a GPU; for tests and the self-test only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
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
    often: more interleavings are seen. Nothing is put into the globals of a file for the time of a
    call, where threads would meet: `cuda` finds the launch by itself (_numba.py). The simulator
    asks the threads of a block without a pause whether they wait, which takes a third of its time:
    here they tell (`_run_block`).
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

    run, syncthreads = kernel.BlockThread.run, kernel.BlockThread.syncthreads

    def run_and_tell(self: Any) -> None:
        try:
            with np.errstate(over="ignore"):
                run(self)
        finally:
            self._manager.news.put((self, True))

    def tell_and_wait(self: Any) -> None:
        self._manager.news.put((self, False))
        syncthreads(self)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with (
            patch.object(FakeCUDAShared, "array", array),
            patch.object(kernel, "swapped_cuda_module", lambda *_: nullcontext()),
            patch.object(kernel.BlockThread, "run", run_and_tell),
            patch.object(kernel.BlockThread, "syncthreads", tell_and_wait),
            patch.object(kernel.BlockManager, "run", _run_block),
        ):
            yield
    finally:
        sys.setswitchinterval(interval)


def _run_block(self: Any, grid_point: Any, *args: Any) -> None:
    """The threads of one block, as numba's `BlockManager.run`: until all have ended, or one failed.

    Whoever comes to a barrier or to its end says so in `news`; when all that live are at the
    barrier they go on.
    """
    from numba.cuda.simulator.kernel import BlockThread

    news: SimpleQueue[tuple[Any, bool]] = SimpleQueue()
    self.news = news
    threads = [
        BlockThread(lambda: self._f(*args), self, grid_point, point, self._debug)
        for point in np.ndindex(*self._block_dim)
    ]
    for thread in threads:
        thread.start()
    alive = len(threads)
    waiting: list[Any] = []
    while alive:
        thread, ended = news.get()
        if thread.exception:
            for other in threads:
                other.abort = True
                other.syncthreads_event.set()
            raise thread.exception[0].with_traceback(thread.exception[1])
        if ended:
            alive -= 1
        else:
            waiting.append(thread)
        if len(waiting) == alive:
            for other in waiting:
                other.syncthreads_event.set()
            waiting = []
