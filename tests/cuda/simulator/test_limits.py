"""Counters and indices at the limits of their types."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.kernels.cuda import limits
from ensemble_gpu.kernels.cuda.trees import sums
from ensemble_gpu.kernels.tables import PackedTables
from tests.cuda.simulator.problems import cuda_engine
from tests.cuda.simulator.test_signatures import LEAF_ONLY


def one_number(value: int, shape: tuple[int, int]) -> np.ndarray:
    """An array of any size in the memory of one number."""
    return np.lib.stride_tricks.as_strided(np.array([value]), shape, (0, 0))


def test_sums_behind_the_first_2_31_are_subtracted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last thread of a grid whose first turn ends at cell 2^31 + 512, and its second turn."""
    written: list[tuple[int, int]] = []

    class Sums:
        shape = (2, 2**32 + 5000)

        def __getitem__(self, at: tuple[Any, Any]) -> np.int64:
            return np.int64(3)

        def __setitem__(self, at: tuple[Any, Any], value: Any) -> None:
            written.append((int(at[1]), int(value)))

    blocks, threads = 2**22 + 1, 512
    thread = SimpleNamespace(
        blockIdx=SimpleNamespace(x=np.int32(0), y=np.int32(blocks - 1)),
        gridDim=SimpleNamespace(x=np.int32(1), y=np.int32(blocks)),
        blockDim=SimpleNamespace(x=np.int32(threads)),
        threadIdx=SimpleNamespace(x=np.int32(threads - 1)),
    )
    monkeypatch.setattr(sums, "cuda", thread)
    pairs = np.array([[0, 0, 1]], dtype=np.int32)
    sums.subtract.py_func(pairs, one_number(10, (1, 2**32 + 5000)), Sums())
    assert written == [(blocks * threads - 1, 7), (2 * blocks * threads - 1, 7)]
    assert written[0][0] > 2**31


TABLES = PackedTables(
    np.array([0]), np.array([0]), np.array([1]), np.zeros(2), np.zeros((2, 1)), np.zeros((1, 1)),
    np.zeros(1),
)  # fmt: skip


@pytest.mark.parametrize(
    "predict",
    [
        lambda engine, X: engine.evaluate(X, TABLES),
        lambda engine, X: engine.evaluate_forest(X, LEAF_ONLY),
        lambda engine, X: engine.apply_forest(X, LEAF_ONLY),
    ],
)
def test_more_rows_than_a_counter_holds_are_refused(predict: Any) -> None:
    X = np.lib.stride_tricks.as_strided(np.zeros(1), (limits.MOST_ROWS + 1, 1), (0, 0))
    with pytest.raises(ValueError, match=f"at most {limits.MOST_ROWS} rows .* got {len(X)}"):
        predict(cuda_engine(), X)


def test_the_last_turn_of_a_row_counter_fits_int32() -> None:
    """A counter stops at the first value behind the last row: at most one grid further."""
    largest_grid = 8 * 200 * 512  # busy_blocks of a GPU with 200 multiprocessors
    assert limits.MOST_ROWS + largest_grid < 2**31


def test_too_many_features_or_codes_are_refused() -> None:
    limits.check_codes(limits.MOST_FEATURES, 256)
    limits.check_codes(limits.MOST_FEATURES + 1, 257)  # wide sums have 64-bit indices
    with pytest.raises(ValueError, match="at most 16777216 features; got 16777217"):
        limits.check_codes(limits.MOST_FEATURES + 1, 256)
    with pytest.raises(ValueError, match="at most 65535 bins a feature; got 65536"):
        limits.check_codes(1, 2**16 + 1)
