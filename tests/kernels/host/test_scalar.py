"""exp and log against 60-digit decimals."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.kernels.host.scalar import exp, log


def assert_within_two_ulp(found: float, truth: Decimal) -> None:
    distance = abs(Decimal(found) - truth)
    assert distance <= 2 * Decimal(math.ulp(float(truth)))


@given(st.floats(-708.0, 709.0))
def test_exp_is_within_two_units_in_the_last_place(x):
    with localcontext() as context:
        context.prec = 60
        assert_within_two_ulp(exp(x), Decimal(x).exp())


@given(st.floats(5e-324, 1.7e308))
def test_log_is_within_two_units_in_the_last_place(x):
    with localcontext() as context:
        context.prec = 60
        assert_within_two_ulp(log(x), Decimal(x).ln())


@given(st.floats(0.5, 2.0))
def test_log_near_one_is_within_two_units_in_the_last_place(x):
    with localcontext() as context:
        context.prec = 60
        assert_within_two_ulp(log(x), Decimal(x).ln())


@pytest.mark.parametrize(
    ("x", "value"), [(0.0, 1.0), (1000.0, math.inf), (-1000.0, 0.0), (-math.inf, 0.0)]
)
def test_exp_at_its_limits(x, value):
    assert exp(x) == value


@pytest.mark.parametrize(("x", "value"), [(1.0, 0.0), (0.0, -math.inf), (2.0, math.log(2.0))])
def test_log_at_its_limits(x, value):
    assert log(x) == value


@given(st.floats(-700.0, 700.0))
def test_plain_python_gives_the_bits_of_the_compiled_function(x):
    assert exp.py_func(x) == exp(x)
    assert log.py_func(exp(x)) == log(exp(x))
