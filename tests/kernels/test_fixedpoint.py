"""Fixed-point logarithms against 60-digit decimals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels import fixedpoint
from tests.places import Place


def test_log2_fixed_is_exact_for_powers_of_two(place: Place):
    powers = np.ldexp(1.0, np.arange(-1074, 1024))
    weights = place.put(powers)
    found = place.host(fixedpoint.log2_fixed(weights, locate(weights)))
    np.testing.assert_array_equal(found, np.arange(-1074, 1024) << fixedpoint.FRACTION_BITS)


@given(st.lists(st.floats(5e-324, 1.7e308), min_size=1, max_size=5))
def test_log2_fixed_rounds_down_to_one_unit(weights):
    array = np.array(weights)
    found = fixedpoint.log2_fixed(array, locate(array))
    with localcontext() as context:
        context.prec = 60
        for w, fixed in zip(weights, found, strict=True):
            truth = Decimal(w).ln() / Decimal(2).ln() * (1 << fixedpoint.FRACTION_BITS)
            # one unit down, and the rounding of two divisions
            assert -Decimal("0.01") <= truth - int(fixed) < Decimal("1.01")


def test_log2_fixed_is_the_same_on_every_device(place: Place):
    weights = 10.0 ** np.random.default_rng(0).uniform(-300, 300, size=1000)
    there = place.put(weights)
    found = fixedpoint.log2_fixed(there, locate(there))
    np.testing.assert_array_equal(
        place.host(found), fixedpoint.log2_fixed(weights, locate(weights))
    )


@pytest.mark.parametrize("digit", [0, 1, 2])
def test_digit_tables_are_correctly_rounded_powers_of_two(digit):
    table = fixedpoint.tables()[digit]
    assert table[0] == 1.0
    assert (np.diff(table) > 0).all()
    with localcontext() as context:
        context.prec = 60
        ln2 = Decimal(2).ln()
        for j in range(0, 1024, 37):
            truth = (Decimal(j) / Decimal(1024 ** (digit + 1)) * ln2).exp()
            assert abs(Decimal(float(table[j])) - truth) <= Decimal(math.ulp(float(truth))) / 2


def test_tables_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        fixedpoint.tables()[0, 0] = 2.0


@given(st.floats(-1e5, 1e5))
def test_from_log_rounds_to_the_nearest_unit(value):
    found = int(fixedpoint.from_log(np.array([value]))[0])
    assert found == pytest.approx(value / math.log(2.0) * 2**30, rel=1e-14, abs=0.6)
