"""Roots of increasing functions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.losses.roots import Bracket, Precision, increasing_root, narrowed

FUNCTIONS = {
    "line": lambda x: x,
    "cubic": lambda x: x**3,
    "exponential": lambda x: math.expm1(min(x, 500.0)),
    "steps": lambda x: math.floor(x) + 0.5,
    "wall": lambda x: -1e-9 if x < 0.0 else 1e9,
    "sign": lambda x: math.copysign(1.0, x) if x else 0.0,
}
roots = st.floats(-50.0, 50.0)
widths = st.floats(1e-3, 1e3)


@pytest.mark.parametrize("name", FUNCTIONS)
@given(root=roots, below=widths, above=widths)
def test_the_root_is_found_to_the_last_digits(name, root, below, above):
    f = FUNCTIONS[name]
    found = increasing_root(lambda x: f(x - root), root - below, root + above)
    near = 1e-13 * max(abs(root - below), abs(root + above))
    assert abs(found - root) <= near or f(found - root) == 0.0


@given(low=roots, width=widths)
def test_an_end_is_the_answer_where_nothing_crosses_zero(low, width):
    assert increasing_root(lambda x: 1.0, low, low + width) == low
    assert increasing_root(lambda x: -1.0, low, low + width) == low + width


@pytest.mark.parametrize("name", FUNCTIONS)
@given(root=roots, below=widths, above=widths, steps=st.integers(0, 20))
def test_a_narrowed_bracket_holds_the_root_and_asks_only_inside(name, root, below, above, steps):
    asked = []

    def slope(x: float) -> float:
        asked.append(x)
        return FUNCTIONS[name](x - root)

    low, high = root - below, root + above
    first = Bracket(low, slope(low), high, slope(high))
    if not first.slope_low < 0.0 < first.slope_high:
        return
    found = narrowed(slope, first, Precision(0.0, 1e-14, steps))
    assert first.low <= found.low <= found.high <= first.high
    assert found.slope_low <= 0.0 < found.slope_high
    assert (found.slope_low, found.slope_high) == (
        FUNCTIONS[name](found.low - root),
        FUNCTIONS[name](found.high - root),
    )
    assert len(asked) <= 2 + steps
    assert all(low <= x <= high for x in asked)
    halved = (high - low) * 2.0 ** -(steps // 3) * (1.0 + 1e-9)
    narrow = 1e-14 * max(abs(low), abs(high))
    assert found.slope_low == 0.0 or found.high - found.low <= max(halved, narrow)


def test_a_bracket_that_is_flat_or_narrow_enough_is_not_narrowed():
    def never(x: float) -> float:
        raise AssertionError(x)

    bracket = Bracket(1.0, -0.5, 2.0, 3.0)
    for precision in (Precision(0.5, 0.0, 9), Precision(0.0, 0.5, 9), Precision(0.0, 0.0, 0)):
        assert narrowed(never, bracket, precision) == bracket
