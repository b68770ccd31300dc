"""exp of whole arrays: the right value, and one value on every engine."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.exponential import LARGEST, powers
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from tests.places import DEVICE

CPU = CpuEngine(1)
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, LARGEST, -LARGEST, 5e-324, -5e-324, np.log(2.0)])


def grid(largest: float, n: int = 20_001) -> np.ndarray:
    return np.concatenate([np.linspace(-largest, largest, n), SPECIAL[np.abs(SPECIAL) <= largest]])


@pytest.mark.parametrize(
    ("largest", "error"), [(700.0, 2e-13), (36.0, 1e-14), (1.0, 1.5e-15), (1e-3, 1e-15)]
)
def test_exp_is_that_of_numpy(largest, error):
    x = grid(largest)
    np.testing.assert_allclose(CPU.exp(x), np.exp(x), rtol=error, atol=0.0)


def test_exp_of_zero_is_one():
    np.testing.assert_array_equal(CPU.exp(np.array([0.0, -0.0])), 1.0)


def test_exp_never_falls_by_more_than_its_rounding():
    y = CPU.exp(np.sort(np.random.default_rng(0).uniform(-3.0, 3.0, size=100_000)))
    assert (np.diff(y) >= -1e-15 * y[1:]).all()


def test_exp_is_clipped_at_seven_hundred():
    x = np.array([700.5, 1e4, 1e300, np.inf])
    np.testing.assert_array_equal(CPU.exp(x), CPU.exp(np.array([LARGEST]))[0])
    np.testing.assert_array_equal(CPU.exp(-x), CPU.exp(np.array([-LARGEST]))[0])
    assert CPU.exp(-x).min() > 0.0


@pytest.mark.parametrize("largest", [1e-9, 1.0, 30.0, 900.0])
def test_cpu_and_reference_give_the_same_bits(largest):
    x = np.concatenate([grid(largest), np.random.default_rng(1).normal(size=5000) * largest])
    np.testing.assert_array_equal(CPU.exp(x), ReferenceEngine(locate(x)).exp(x))


def test_a_device_gives_the_same_bits():
    place = DEVICE
    x = grid(50.0, 2001)
    there = place.put(x)
    found = ReferenceEngine(locate(there)).exp(there)
    place.check(found, "float64")
    np.testing.assert_array_equal(place.host(found), CPU.exp(x))


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 5), (2, 3, 4)])
def test_exp_keeps_the_shape(shape):
    x = np.random.default_rng(2).normal(size=shape)
    for engine in (CPU, ReferenceEngine(locate(np.zeros(1)))):
        found = engine.exp(np.asarray(x))
        assert found.shape == shape
        np.testing.assert_allclose(found, np.exp(x), rtol=1e-14)


def test_strided_and_narrow_arrays_are_read_as_they_are():
    x = np.random.default_rng(3).normal(size=(40, 6))
    np.testing.assert_array_equal(CPU.exp(x.T[::2]), CPU.exp(np.ascontiguousarray(x.T[::2])))
    narrow = x.astype(np.float32)
    np.testing.assert_array_equal(CPU.exp(narrow), CPU.exp(narrow.astype(np.float64)))


def test_powers_of_two_are_exact():
    table = powers()
    assert table[0] == 5e-324
    assert table[1074] == 1.0
    assert table[-1] == 2.0**1023
    assert not table.flags.writeable
