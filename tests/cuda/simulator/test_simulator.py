"""The simulator's threads, as this package runs them."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from numba import types

from ensemble_gpu.kernels.cuda._numba import cuda, simulator_handle

THREADS = 4


@cuda.jit
def neighbours_sum(values: Any, sums: Any) -> None:
    """Of four threads the last has ended when the others are at the second barrier."""
    shared = cuda.shared.array(4, types.int64)
    tid = cuda.threadIdx.x
    shared[tid] = values[tid]
    cuda.syncthreads()
    if tid == THREADS - 1:
        return
    first = shared[tid] + shared[tid + 1]
    cuda.syncthreads()
    shared[tid] = first
    cuda.syncthreads()
    sums[tid] = shared[0] + first


@cuda.jit
def failing(values: Any) -> None:
    cuda.syncthreads()
    if cuda.threadIdx.x == 2:
        raise ValueError(f"value {values[2]} is bad")
    cuda.syncthreads()


def test_threads_that_live_wait_for_each_other_and_not_for_those_that_have_ended() -> None:
    values, sums = np.array([1, 10, 100, 1000]), np.zeros(3, dtype=np.int64)
    neighbours_sum[1, THREADS](simulator_handle(values), simulator_handle(sums))
    assert sums.tolist() == [22, 121, 1111]


def test_an_error_of_one_thread_reaches_the_caller_and_ends_those_at_a_barrier() -> None:
    with pytest.raises(ValueError, match="value 7 is bad"):
        failing[2, THREADS](simulator_handle(np.array([5, 6, 7])))
    left = [one for one in threading.enumerate() if type(one).__name__ == "BlockThread"]
    for thread in left:
        thread.join(timeout=30.0)
        assert not thread.is_alive()
