"""Room for large arrays: as good as any array, and gone with it."""

from __future__ import annotations

import numpy as np
import psutil
import pytest

from ensemble_gpu.kernels.cpu.memory import LARGE, scratch_array


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


def test_room_takes_memory_when_it_is_written_to_and_gives_it_back():
    process, size = psutil.Process(), 1 << 28
    before = process.memory_info().rss
    array = scratch_array((size,), np.uint8)
    assert process.memory_info().rss - before < size // 4
    array[:] = 1
    assert process.memory_info().rss - before > size // 2
    del array
    assert process.memory_info().rss - before < size // 4
