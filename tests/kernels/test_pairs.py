"""Sums of gradients, counts of pairs, rows moved and packed: engines against np.add.at."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels.cpu import engine as cpu_engine
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, PACK_BITS, RIGHT, Cut, Layout
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from tests.places import DEVICE, NUMPY, Place

TOP = 2**PACK_BITS
ENGINES = ["cpu", "cpu, 2 threads", "reference"]


@dataclass(frozen=True)
class Running:
    """An engine with encoded rows; `codes` [rows, features] are the truth."""

    engine: Any
    encoded: Any
    codes: np.ndarray
    width: int
    place: Place

    @property
    def shape(self) -> tuple[int, int]:
        return self.codes.shape[1], self.width


def running(name: str, n: int, p: int, bins: int, place: Place = NUMPY, seed: int = 0) -> Running:
    """Random codes, missing ones among them, encoded by an engine."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, bins, size=(n, p))
    codes[:bins, 0] = np.arange(bins)[:n]
    X = codes.astype(np.float64)
    holes = rng.random(X.shape) < 0.1
    X[holes] = np.nan
    edges = [np.arange(0.5, bins - 1)] * p
    there = place.put(X)
    engine = (
        ReferenceEngine(locate(there))
        if name == "reference"
        else CpuEngine(2 if "threads" in name else 1)
    )
    layout = Layout(np.array([0, n]), np.zeros((1, 1), dtype=np.int64))
    encoded = engine.encode(there, edges, place.put(np.arange(n)), layout)
    return Running(engine, encoded, np.where(holes, bins, codes), bins + 1, place)


def naive_sums(at: Running, q: np.ndarray) -> np.ndarray:
    """sums[plane, feature, code], modulo 2^64 like int64."""
    out = np.zeros((len(q), *at.shape), dtype=np.int64)
    for k in range(len(q)):
        for f in range(at.codes.shape[1]):
            np.add.at(out[k, f], at.codes[:, f], q[k])
    return out


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(cpu_engine, "CELLS_PER_THREAD", 0)  # threads even for small data
    return request.param


SHAPES = [(1, 1, 2), (50, 3, 4), (400, 8, 30), (300, 9, 255), (500, 17, 7), (900, 2, 300)]


@pytest.mark.parametrize("planes", [1, 3])
@pytest.mark.parametrize(("n", "p", "bins"), SHAPES)
def test_sums_are_those_of_add_at(name, n, p, bins, planes):
    at = running(name, n, p, bins)
    q = np.random.default_rng(1).integers(-(2**50), 2**50, size=(planes, n))
    np.testing.assert_array_equal(at.engine.sums(at.encoded, q), naive_sums(at, q))


def test_sums_up_to_two_to_the_sixty_one_are_exact(name):
    at = running(name, 4, 2, 2)
    q = np.array([[2**59, 2**59, 2**59, 2**59 - 1], [-(2**61), 2**61, -(2**61), 2**60]])
    np.testing.assert_array_equal(at.engine.sums(at.encoded, q), naive_sums(at, q))


def test_sums_wrap_modulo_two_to_the_sixty_four(name):
    at = running(name, 300, 3, 5)
    q = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, size=(2, 300))
    np.testing.assert_array_equal(at.engine.sums(at.encoded, q), naive_sums(at, q))


@pytest.mark.parametrize("planes", [1, 2, 3, 4, 7, 10, 17])
@pytest.mark.parametrize(("n", "p", "bins"), SHAPES)
def test_pair_sums_are_the_sums_of_both_halves(name, n, p, bins, planes):
    at = running(name, n, p, bins)
    rng = np.random.default_rng(3)
    g, h = rng.integers(-TOP, TOP + 1, (planes, n)), rng.integers(0, TOP + 1, (planes, n))
    G, H = at.engine.pair_sums(at.encoded, g * 2**32 + h)
    np.testing.assert_array_equal(G, naive_sums(at, g))
    np.testing.assert_array_equal(H, naive_sums(at, h))


@pytest.mark.parametrize("planes", [1, 15])
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("bins", [1, 3])
@pytest.mark.parametrize("n", [8191, 8192, 17_000])
def test_the_largest_pairs_everywhere_do_not_overflow_into_each_other(name, n, bins, sign, planes):
    at = running(name, n, 2, bins)
    g, h = np.full((planes, n), sign * TOP), np.full((planes, n), TOP)
    G, H = at.engine.pair_sums(at.encoded, g * 2**32 + h)
    np.testing.assert_array_equal(G, naive_sums(at, g))
    np.testing.assert_array_equal(H, naive_sums(at, h))


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("n", "p", "bins"), [*SHAPES[:5], (200, 2, 300)])
def test_pair_counts_are_those_of_add_at(name, n, p, bins, weighted):
    at = running(name, n, p, bins)
    weights = np.random.default_rng(4).integers(0, 2**40, size=n) if weighted else None
    for feature in {0, p - 1}:
        truth = np.zeros((at.width, p, at.width), dtype=np.int64)
        for f in range(p):
            add = 1 if weights is None else weights
            np.add.at(truth, (at.codes[:, feature], f, at.codes[:, f]), add)
        found = at.engine.pair_counts(at.encoded, feature, weights)
        assert found.dtype == (np.int64 if weighted else np.int32)
        np.testing.assert_array_equal(found, truth)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize(("n", "p", "bins"), [*SHAPES[:5], (200, 2, 300)])
def test_code_sums_are_those_of_the_rows_within_some_codes(name, n, p, bins, weighted):
    at = running(name, n, p, bins)
    weights = np.random.default_rng(4).integers(0, 2**40, size=n) if weighted else None
    for feature, first, last in ((0, 0, bins // 2), (p - 1, bins // 2, bins), (0, 0, at.width - 1)):
        inside = (at.codes[:, feature] >= first) & (at.codes[:, feature] <= last)
        q = inside * (1 if weights is None else weights)
        found = at.engine.code_sums(at.encoded, feature, first, last, weights)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, naive_sums(at, q[None, :])[0])


@pytest.mark.parametrize(("n", "p", "bins"), SHAPES)
def test_columns_are_the_codes(name, n, p, bins):
    at = running(name, n, p, bins)
    for f in range(p):
        np.testing.assert_array_equal(at.engine.column(at.encoded, f), at.codes[:, f])


@pytest.mark.parametrize("missing_leaf", [LEFT, RIGHT, ABSTAIN])
@pytest.mark.parametrize("bins", [5, 300])
def test_move_adds_the_value_of_the_leaf(name, bins, missing_leaf):
    at = running(name, 400, 2, bins)
    rng = np.random.default_rng(5)
    F, values = rng.normal(size=(3, 400)), rng.normal(size=(3, 3))
    before = F.copy()
    column = at.engine.column(at.encoded, 1)
    found = at.engine.move(F, column, Cut(2, at.width - 1, missing_leaf), values)
    leaf = np.where(at.codes[:, 1] <= 2, LEFT, RIGHT)
    leaf[at.codes[:, 1] == at.width - 1] = missing_leaf
    np.testing.assert_array_equal(found, before + values[:, leaf])
    np.testing.assert_array_equal(F, before)  # not in place


@pytest.mark.parametrize("bins", [5, 300])
def test_tables_are_added_at_the_codes_of_the_used_features(name, bins):
    at = running(name, 5000, 11, bins)
    rng = np.random.default_rng(6)
    F, tables = rng.integers(-99, 99, (2, 5000)) / 8.0, np.zeros((2, 11, at.width))
    used = np.array([0, 3, 9])
    tables[:, used] = rng.integers(-99, 99, (2, 3, at.width)) / 8.0
    before = F.copy()
    found = at.engine.add_tables(F, at.encoded, used, tables)
    truth = before + sum(tables[:, f, at.codes[:, f]] for f in used)
    np.testing.assert_array_equal(found, truth)
    np.testing.assert_array_equal(F, before)  # not in place


def test_pack_rounds_half_to_even_and_keeps_both_halves(name):
    at = running(name, 3, 1, 2)
    s = np.array([[0.5, 1.5, -0.5, -1.5, 2.5, -2.5, TOP, -TOP, 0.0, -1.0]]) * 0.25
    h = np.array([[0.0, 0.5, 1.5, 2.5, TOP, 1.0, TOP, TOP, 3.49, 3.51]]) * 2.0**-7
    found = at.engine.pack(s, h, 0.25, 2.0**-7)
    assert found.dtype == np.int64
    upper, lower = np.rint(s / 0.25).astype(np.int64), np.rint(h / 2.0**-7).astype(np.int64)
    np.testing.assert_array_equal(found, upper * 2**32 + lower)


def test_blocks_cover_all_rows_once_and_in_order(name):
    at = running(name, 3, 1, 2)
    for n in (1, 100, cpu_engine.BLOCK_ROWS, cpu_engine.BLOCK_ROWS + 1, 100_000):
        blocks = at.engine.by_block(lambda rows: (rows.start, rows.stop), n)
        assert blocks[0][0] == 0
        assert blocks[-1][1] == n
        assert all(a[1] == b[0] for a, b in pairwise(blocks))


def test_the_reference_engine_on_a_device_gives_the_sums_of_the_cpu_engine():
    place = DEVICE
    there, here = running("reference", 300, 5, 9, place), running("cpu", 300, 5, 9)
    rng = np.random.default_rng(6)
    q, weights = rng.integers(-(2**58), 2**58, size=(2, 300)), rng.integers(0, 9, size=300)
    packed = rng.integers(-TOP, TOP + 1, (2, 300)) * 2**32 + rng.integers(0, TOP + 1, (2, 300))

    def results(at: Running):
        put, engine, codes = at.place.put, at.engine, at.encoded
        yield engine.sums(codes, put(q))
        yield from engine.pair_sums(codes, put(packed))
        yield engine.pair_counts(codes, 3, None)
        yield engine.pair_counts(codes, 3, put(weights))
        column = engine.column(codes, 3)
        F = engine.move(put(q * 2.0**-50), column, Cut(4, 9, RIGHT), np.arange(6.0).reshape(2, 3))
        yield at.place.host(F)
        yield at.place.host(engine.pack(F, put(np.abs(q) * 2.0**-50), 2.0**-8, 2.0**-9))

    for a, b in zip(results(there), results(here), strict=True):
        assert isinstance(a, np.ndarray)
        np.testing.assert_array_equal(a, b)
