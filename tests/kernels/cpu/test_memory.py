"""Room for large arrays: as good as any array, and gone with it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest

from ensemble_gpu.kernels.cpu.memory import LARGE, kept_array, scratch_array


@pytest.mark.parametrize("shape", [(0,), (3,), (LARGE // 8 - 1,), (LARGE // 8,), (300_001, 0)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64, bool])
def test_room_is_an_array_to_write_to(shape, dtype):
    array = scratch_array(shape, dtype)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.flags.c_contiguous
    array[...] = 1
    assert array.all()


def test_views_keep_their_room():
    view = scratch_array((LARGE, 3), np.int64)[5:, 1]
    view[:] = 7
    other = scratch_array((LARGE, 3), np.int64)
    other[:] = 1
    assert (view == 7).all()


@pytest.mark.slow
def test_room_takes_memory_when_it_is_written_to_and_gives_it_back():
    process, size = psutil.Process(), 1 << 28
    before = process.memory_info().rss
    array = scratch_array((size,), np.uint8)
    assert process.memory_info().rss - before < size // 4
    array[:] = 1
    assert process.memory_info().rss - before > size // 2
    del array
    assert process.memory_info().rss - before < size // 4


def test_kept_memory_is_taken_over_for_the_same_matrix_and_use():
    matrix = np.zeros((4, 2), dtype=np.uint8)
    first = kept_array(matrix, "test", (50, 3), np.int64)
    address = first.ctypes.data
    assert kept_array(matrix, "test", (40, 3), np.int64).ctypes.data == address
    assert kept_array(matrix, "test", (40, 3), np.int64).shape == (40, 3)
    assert kept_array(matrix, "another", (40, 3), np.int64).ctypes.data != address
    assert kept_array(matrix.copy(), "test", (40, 3), np.int64).ctypes.data != address
    assert kept_array(matrix, "test", (60, 3), np.float32).dtype == np.float32


def test_kept_memory_is_given_back_with_the_matrix():
    process, size = psutil.Process(), 1 << 28
    matrix, before = np.zeros((4, 2), dtype=np.uint8), process.memory_info().rss
    kept_array(matrix, "test", (size,), np.uint8)[:] = 1
    assert process.memory_info().rss - before > size // 2
    del matrix
    assert process.memory_info().rss - before < size // 4


def test_threads_do_not_share_kept_memory():
    matrix = np.zeros((4, 2), dtype=np.uint8)
    own = kept_array(matrix, "test", (50,), np.int64)
    with ThreadPoolExecutor(1) as pool:
        others = pool.submit(kept_array, matrix, "test", (50,), np.int64).result()
    assert not np.shares_memory(own, others)
