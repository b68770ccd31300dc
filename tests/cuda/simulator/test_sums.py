"""What gradient boosting asks of the engine: sums, pairs, columns, and the work on each row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.kernels import exponential
from ensemble_gpu.kernels.cuda import pairs
from ensemble_gpu.kernels.cuda.engine import CudaEngine
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, PACK_BITS, RIGHT, Codes, Cut, Layout
from ensemble_gpu.kernels.reference import rowwise
from tests.cuda.simulator.problems import cuda_engine, engines

# What an int64 can do to two int32 words.
CORNERS = [
    0, 1, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, -(2**32), 2**61, -(2**61),
    2**61 - 1, 2**62 + 2**31, 2**63 - 1, -(2**63),
]  # fmt: skip


def matrix(n: int, p: int, bins: int, missing: float) -> tuple[np.ndarray, list[np.ndarray]]:
    """Codes [feature, row] and edges; the highest code of feature 0 is always empty."""
    rng = np.random.default_rng(n + p)
    widths = [bins] * p
    codes = np.stack([rng.integers(0, w - (f == 0), size=n) for f, w in enumerate(widths)])
    codes[rng.random(codes.shape) < missing] = bins
    return codes, [np.arange(1.0, bins) - 0.5] * p


SHAPES = {
    "small": matrix(40, 3, 5, 0.2),
    "two tiles": matrix(21, 9, 3, 0.1),
    "two passes": matrix(9, 35, 3, 0.1),
    "16 bits": matrix(50, 5, 300, 0.1),
    "one row": matrix(1, 2, 3, 0.0),
    "all missing": matrix(12, 2, 4, 1.1),
}


def encoded(engine: Any, shape: str) -> tuple[np.ndarray, Codes]:
    """Codes as an array, and as the engine has them."""
    codes, edges = SHAPES[shape]
    width = len(edges[0]) + 2
    X = np.where(codes == width - 1, np.nan, codes.astype(np.float64)).T
    layout = Layout(np.array([0, codes.shape[1]]), np.zeros((1, 1), dtype=np.int64))
    return codes, engine.encode(X, edges, np.arange(codes.shape[1]), layout)


def sums_of(codes: np.ndarray, q: np.ndarray, width: int) -> np.ndarray:
    """The oracle: sums[plane, feature, code], modulo 2^64."""
    out = np.zeros((len(q), len(codes), width), dtype=np.int64)
    for k, values in enumerate(q):
        for f, column in enumerate(codes):
            np.add.at(out[k, f], column, values)
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_and_columns_are_exact(shape: str) -> None:
    rng = np.random.default_rng(1)
    for engine in engines():
        codes, ours = encoded(engine, shape)
        p, n = codes.shape
        for f in {0, p - 1}:
            np.testing.assert_array_equal(engine.column(ours, f), codes[f])
        q = rng.choice(np.array(CORNERS[:13]), size=(2, n))
        np.testing.assert_array_equal(engine.sums(ours, q), sums_of(codes, q, ours.width))
        most = 2**PACK_BITS
        g, h = rng.integers(-most, most + 1, size=(2, n)), rng.integers(most + 1, size=(2, n))
        g[:, 0], h[:, 0] = -most, most
        G, H = engine.pair_sums(ours, g * 2**32 + h)
        np.testing.assert_array_equal(G, sums_of(codes, g, ours.width))
        np.testing.assert_array_equal(H, sums_of(codes, h, ours.width))
        assert G.flags.c_contiguous
        assert H.flags.c_contiguous


def test_sums_are_modulo_two_to_the_64() -> None:
    """Every corner of int64 in every row of one cell."""
    engine = cuda_engine()
    codes, ours = encoded(engine, "all missing")
    for start in range(0, len(CORNERS), 4):
        q = np.repeat(np.array(CORNERS[start : start + 4])[:, None], codes.shape[1], axis=1)
        np.testing.assert_array_equal(engine.sums(ours, q), sums_of(codes, q, ours.width))


def test_buffers_are_kept_and_results_are_not_in_them() -> None:
    engine = cuda_engine()
    codes, ours = encoded(engine, "small")
    q = np.arange(codes.shape[1])[None, :]
    first = engine.sums(ours, q)
    kept, before = engine._summed, first.copy()
    engine.sums(ours, -q)
    assert engine._summed is kept
    np.testing.assert_array_equal(first, before)
    engine.sums(ours, np.concatenate([q, q]))  # another number of planes
    np.testing.assert_array_equal(engine.sums(ours, q), before)
    other, theirs = encoded(engine, "two tiles")  # other codes
    ones = np.ones((1, other.shape[1]), dtype=np.int64)
    np.testing.assert_array_equal(engine.sums(theirs, ones), sums_of(other, ones, theirs.width))


@pytest.mark.parametrize("codes_at_once", [None, 2])
@pytest.mark.parametrize("shape", ["small", "two tiles", "one row", "all missing"])
def test_pairs_of_codes_are_counted(
    shape: str, codes_at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if codes_at_once is not None:
        cells = 2048 * -(-len(SHAPES[shape][0]) // 8)
        monkeypatch.setattr(pairs, "PAIR_BYTES", 8 * cells * codes_at_once)
    for engine in engines()[: 3 if codes_at_once is None else 1]:
        codes, ours = encoded(engine, shape)
        n = codes.shape[1]
        weights = np.random.default_rng(2).integers(0, 2**36 // n, size=n)
        weights[-1] = 2**35 + 2**31
        feature = len(codes) - 1
        for given, dtype in ((None, np.int32), (weights, np.int64)):
            value = np.ones(n, dtype=np.int64) if given is None else given
            expected = np.stack(
                [sums_of(codes, np.where(codes[feature] == c, value, 0)[None], ours.width)[0]
                 for c in range(ours.width)]
            )  # fmt: skip
            counts = engine.pair_counts(ours, feature, given)
            assert counts.dtype == dtype
            np.testing.assert_array_equal(counts, expected)


def test_pairs_of_16_bit_codes_are_counted() -> None:
    found = []
    for engine in engines():
        codes, ours = encoded(engine, "16 bits")
        found.append(engine.pair_counts(ours, 0, None))
    assert found[0].sum() == codes.size
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("missing_leaf", [LEFT, RIGHT, ABSTAIN])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_move_adds_each_leaf_its_value(outputs: int, missing_leaf: int) -> None:
    rng = np.random.default_rng(3)
    engine = cuda_engine()
    codes, ours = encoded(engine, "small")
    F = rng.normal(size=(outputs, codes.shape[1]))
    before = F.copy()
    values = rng.normal(size=(outputs, 3))
    cut = Cut(1, ours.width - 1, missing_leaf)
    column = engine.column(ours, 1)
    expected = rowwise.move(F, codes[1], cut, values, NUMPY)
    np.testing.assert_array_equal(engine.move(F, column, cut, values), expected)
    np.testing.assert_array_equal(engine.move(np.asfortranarray(F), column, cut, values), expected)
    np.testing.assert_array_equal(F, before)


@pytest.mark.parametrize("units", [(1.0, 1.0), (2.0**-40, 2.0**-18), (2.0**-1000, 2.0**900)])
def test_gradients_are_packed_half_to_even(units: tuple[float, float]) -> None:
    most = 2.0**PACK_BITS
    g = np.array([[0.5, 1.5, 2.5, -0.5, -1.5, most], [-most, 0.0, -0.0, 3.49, -3.51, most - 0.5]])
    h = np.array([[0.5, 1.5, 2.5, 0.0, most, most], [0.0, most, 1.0, 0.25, 7.75, most - 1.5]])
    s, w = g * units[0], h * units[1]
    packed = cuda_engine().pack(s, w, *units)
    np.testing.assert_array_equal(packed, rowwise.pack(s, w, *units, NUMPY))
    np.testing.assert_array_equal(packed, np.rint(g).astype(int) * 2**32 + np.rint(h).astype(int))
    turned = cuda_engine().pack(np.asfortranarray(s), np.asfortranarray(w), *units)
    np.testing.assert_array_equal(turned, packed)


def test_exp_is_the_exp_of_the_other_engines() -> None:
    rng = np.random.default_rng(4)
    x = np.concatenate([
        [0.0, -0.0, 1e-300, -1e-300, 5e-324, 700.0, -700.0, 1e9, -1e9, np.inf, -np.inf, 1.0, -1.0],
        (rng.integers(-(2**40), 2**40, size=60) + 0.5) / exponential.PER_LN2,  # rounding ties
        rng.normal(size=200), rng.uniform(-710.0, 710.0, size=127),
    ])  # fmt: skip
    shapes = (x, x.reshape(4, -1), x.reshape(4, -1).T, x[::2], x.astype(np.float32))
    for engine in engines():
        for given in shapes:
            result = engine.exp(given)
            assert result.shape == given.shape
            assert result.dtype == np.float64
            np.testing.assert_array_equal(result, exponential.exp(given, NUMPY))
    np.testing.assert_allclose(cuda_engine().exp(x[11:]), np.exp(np.clip(x[11:], -700, 700)), 2e-13)


def test_exp_of_nan_is_nan() -> None:
    np.testing.assert_array_equal(cuda_engine().exp(np.array([np.nan, 0.0])), [np.nan, 1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_an_adopted_array_has_64_bits_and_is_otherwise_itself(dtype: Any) -> None:
    engine = CudaEngine(NUMPY)
    given = np.arange(4, dtype=dtype)
    ours = engine.adopt(given)
    np.testing.assert_array_equal(ours, given)
    assert ours.dtype.itemsize == 8
    assert (ours is given) == (dtype != np.float32)


def test_all_rows_are_one_block() -> None:
    assert cuda_engine().by_block(lambda rows: rows, 7) == [slice(0, 7)]


def test_array_work_is_done_on_the_gpu_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy computes on its current GPU: no call may come before that is the engine's."""
    inside: list[str] = []

    class Watched:
        """NumPy's namespace, which may only be called inside `active`."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(NUMPY.xp, name)
            if isinstance(value, type) or not callable(value) or name == "isdtype":
                return value

            def call(*args: Any, **keywords: Any) -> Any:
                assert inside, f"{name} was called while another GPU may be current"
                return value(*args, **keywords)

            return call

    @contextmanager
    def active(task: str, needed: int) -> Iterator[None]:
        assert needed >= 0
        inside.append(task)
        yield
        inside.pop()

    engine = cuda_engine()
    _, ours = encoded(engine, "small")
    engine.where = Where(Watched(), "cpu", NUMPY.kind)
    monkeypatch.setattr(engine.device, "where", engine.where)
    monkeypatch.setattr(engine.device, "active", active)
    n = ours.n_rows
    F, q = np.ones((2, n)), np.ones((2, n), dtype=np.int64)
    column = engine.column(ours, 1)
    engine.move(F, column, Cut(1, ours.width - 1, LEFT), np.ones((2, 3)))
    engine.exp(F)
    engine.pack(F, F, 1.0, 1.0)
    engine.sums(ours, q)
    engine.pair_sums(ours, q)
    engine.pair_counts(ours, 0, None)
    engine.pair_counts(ours, 0, q[0])
    engine.adopt(F.astype(np.float32))
    assert not inside
