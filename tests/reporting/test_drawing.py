"""Scales, texts and marks of pictures."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.reporting import svg
from ensemble_gpu.reporting.scales import Scale, bounds
from ensemble_gpu.reporting.settings import described
from ensemble_gpu.reporting.text import escaped, number, percent, plain, short


def test_ticks_are_round_and_inside():
    assert Scale(0.0, 1.0, 0, 100).ticks(5) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert Scale(-3.0, 17.0, 0, 100).ticks(4) == [0.0, 5.0, 10.0, 15.0]
    assert Scale(1.0, 1000.0, 0, 300, log=True).ticks() == [
        1,
        2,
        5,
        10,
        20,
        50,
        100,
        200,
        500,
        1000,
    ]
    assert Scale(1e-6, 1.0, 0, 300, log=True).ticks() == pytest.approx([1e-6, 1e-4, 1e-2, 1.0])


def test_a_logarithmic_scale_takes_zero_for_its_low_end():
    scale = Scale(0.01, 1.0, 200.0, 0.0, log=True)
    np.testing.assert_allclose(scale([0.0, 0.01, 0.1, 1.0]), [200.0, 200.0, 100.0, 0.0])


def test_bounds_are_never_empty():
    assert bounds([3.0, 3.0]) == (1.5, 4.5)
    assert bounds([np.nan]) == (-1.0, 1.0)
    low, high = bounds([0.0, 10.0], 0.1)
    assert (low, high) == (-1.0, 11.0)


def test_numbers_are_short():
    assert [number(v) for v in (3.0, 12345.678, 0.000123456, float("nan"))] == [
        "3", "12,345.7", "0.0001235", "missing",
    ]  # fmt: skip
    assert [short(v) for v in (0.0, 0.25, 1500.0, 12000.0, 3e6)] == [
        "0",
        "0.25",
        "1500",
        "12k",
        "3M",
    ]
    assert percent(0.12345, 2) == "12.35 %"


def test_texts_cannot_be_markup_and_have_no_hidden_characters():
    assert escaped('<a b="c">&\'') == "&lt;a b=&quot;c&quot;&gt;&amp;&#x27;"
    assert plain("a\x07b\u202ec\ud800\nd") == "a\ufffdb\ufffdc\ufffd\ufffdd"
    assert plain("abcdef", 4) == "abc…"


def test_a_curve_of_many_points_keeps_its_ends_and_gaps():
    x = np.linspace(0.0, 400.0, 10_000)
    drawn = svg.path(x, np.sin(x) * 50, "line")
    assert drawn.count("L") < svg.MOST_POINTS + 3
    assert 'd="M0 0' in drawn
    assert "400 " in drawn
    gap = svg.path(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, np.nan, 1.0, 2.0]), "line")
    assert gap.count("M") == 2


def test_parameters_have_no_addresses():
    assert described([1, "a", {"b": None}]) == "[1, 'a', {'b': None}]"
    assert described(np.zeros((2, 3))) == "array of shape (2, 3)"
    assert described(object()) == "object"
    assert described(test_numbers_are_short) == "test_numbers_are_short"
