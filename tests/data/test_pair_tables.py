"""Tables of pairs of codes: made once, within memory, by all threads that want them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import get_ident

import numpy as np
import pytest

from ensemble_gpu.data.bins import one_range
from ensemble_gpu.data.pair_tables import PairTables, counted, unwritten
from ensemble_gpu.kernels.cpu.engine import CpuEngine

SHAPE = 4, 3, 5  # parts, features, codes
TABLE = 4 * 5 * 3 * 5  # cells of a feature


def numbered(feature: int, part: int, out: np.ndarray) -> bool:
    out[...] = 10 * feature + part
    return True


def test_a_table_counts_rows_up_to_a_code_and_missing_values_alone():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 3)) < 0.2, np.nan, rng.integers(0, 4, (50, 3)).astype(float))
    engine, edges = CpuEngine(2), [np.array([0.5, 1.5, 2.5])] * 3
    codes = engine.encode(X, edges, np.arange(50), one_range(50))
    code = np.where(np.isnan(X), codes.width - 1, X)
    for weights in (None, rng.integers(1, 9, 50)):
        tables, w = counted(engine, [codes], weights), np.ones(50) if weights is None else weights
        assert tables.space.dtype == (np.uint16 if weights is None else np.int64)
        assert tables.has(1)
        for c, f, b in np.ndindex(tables.of(1)[0].shape):
            own = code[:, 1] == c if c == codes.width - 1 else code[:, 1] <= c
            assert tables.of(1)[0, c, f, b] == (w * own * (code[:, f] == b)).sum()


def test_memory_limits_the_features_that_have_tables():
    tables = PairTables(numbered, SHAPE, np.uint16, memory=2 * 2 * TABLE + 1)
    assert [tables.has(j) for j in (2, 0, 1, 2)] == [True, True, False, True]
    assert tables.slots.tolist() == [1, -1, 0]
    assert tables.of(2)[:, 0, 0, 0].tolist() == [20, 21, 22, 23]
    assert not PairTables(numbered, SHAPE, np.uint16, memory=0).has(0)


def test_threads_that_want_a_table_share_its_parts():
    made: list[tuple[int, int]] = []

    def slow(feature: int, part: int, out: np.ndarray) -> bool:
        time.sleep(0.01)
        made.append((part, get_ident()))
        return numbered(feature, part, out)

    tables = PairTables(slow, SHAPE, np.int32)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(tables.has, [1, 1])) == [True, True]
    assert sorted(part for part, _ in made) == [0, 1, 2, 3]
    assert len({thread for _, thread in made}) == 2
    assert tables.of(1)[:, 0, 0, 0].tolist() == [10, 11, 12, 13]


def test_a_table_that_cannot_be_made_is_not_there():
    assert not PairTables(lambda feature, part, out: part < 2, SHAPE, np.int32).has(0)

    def broken(feature: int, part: int, out: np.ndarray) -> bool:
        raise RuntimeError("no counts")

    tables = PairTables(broken, SHAPE, np.int32)
    with pytest.raises(RuntimeError, match="no counts"):
        tables.has(0)
    assert not tables.has(0)
    assert tables.slots[0] == -1


def test_unwritten_memory_holds_zeros_and_can_be_written():
    found = unwritten((2, 3), np.dtype(np.int32))
    assert found.tolist() == [[0, 0, 0], [0, 0, 0]]
    found[1] = 7
    assert found.sum() == 21
    assert unwritten((0, 3), np.dtype(np.int32)).shape == (0, 3)
