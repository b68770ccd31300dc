"""Rows that a round touches are listed by their codes, 64 at a time and added up, near or far."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.kernels.cpu.histogram import AHEAD, FAR, _select, add_listed, add_rows
from ensemble_gpu.kernels.jit import kernel


@kernel
def listed(column, start, stop, first, span, index):
    return _select(column, start, stop, np.uint32(first), np.uint32(span), index)


@kernel
def added(words, lanes, index, start, stop, difference, sums):
    add_listed(words, lanes, index, start, stop, difference, sums)


@kernel
def added_rows(words, lanes, start, stop, q, sums):
    add_rows(words, lanes, start, stop, q, sums)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize(("start", "stop"), [(0, 300), (37, 230), (5, 60), (7, 71), (9, 9)])
def test_rows_are_listed_whose_code_lies_in_a_cyclic_range(kind, start, stop):
    column = np.random.default_rng(1).integers(0, 250, 300).astype(kind)
    period = np.iinfo(kind).max + 1
    for first, span in [(0, 249), (3, 0), (200, 100), (period - 5, 40), (250, 3)]:
        index = np.full(300, -1, dtype=np.int32)
        end = listed(column, start, stop, first, span, index)
        own = column[start:stop].astype(int)
        wanted = start + np.flatnonzero((own - first) % period <= span)
        assert index[start:end].tolist() == wanted.tolist()


def sums_by_hand(codes: np.ndarray, rows: np.ndarray, d: np.ndarray, width: int) -> np.ndarray:
    sums = np.zeros((8, width), dtype=np.int64)
    for lane in range(8):
        np.add.at(sums[lane], codes[rows, lane], d)
    return sums


@pytest.mark.parametrize("apart", [1, FAR - 1, FAR + 1, 40])
@pytest.mark.parametrize(("kind", "width"), [(np.uint8, 256), (np.uint8, 90), (np.uint16, 400)])
@pytest.mark.parametrize("lanes", [8, 3])
def test_listed_rows_are_added_up_near_and_far(apart, kind, width, lanes):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, width, (9000, 8)).astype(kind)
    codes[:, lanes:] = 0
    rows = np.arange(3, 9000, apart, dtype=np.int32)[: 5 * AHEAD]
    d = rng.integers(-1000, 1000, len(rows)).astype(np.int32)
    sums = np.zeros((8, width), dtype=np.int64)
    a, b = 2, len(rows) - 3
    added(codes.view(np.uint64), lanes, rows, a, b, d, sums)
    wanted = sums_by_hand(codes, rows[a:b], d[a:b], width)
    np.testing.assert_array_equal(sums[:lanes], wanted[:lanes])


@pytest.mark.parametrize(("kind", "width"), [(np.uint8, 256), (np.uint8, 90), (np.uint16, 400)])
@pytest.mark.parametrize("lanes", [8, 3])
def test_a_range_of_rows_is_added_up(kind, width, lanes):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, width, (500, 8)).astype(kind)
    codes[:, lanes:] = 0
    q = rng.integers(0, 1 << 30, 500).astype(np.int32)
    sums = np.zeros((8, width), dtype=np.int64)
    added_rows(codes.view(np.uint64), lanes, 17, 483, q, sums)
    rows = np.arange(17, 483)
    wanted = sums_by_hand(codes, rows, q[17:483].astype(np.int64), width)
    np.testing.assert_array_equal(sums[:lanes], wanted[:lanes])
