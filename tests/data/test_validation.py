"""Checks of parameters: the message lists all that is allowed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.data.parameters import (
    check_amount,
    check_flag_or_metric,
    check_integer,
    check_max_features,
    count_features,
)
from ensemble_gpu.data.validation import check_weights
from tests.places import Place

WORDS = ("sqrt", None)


@pytest.mark.parametrize("value", [1, 7, np.int8(3), 0.5, 1.0, np.float32(0.1), Fraction(1, 3)])
def test_an_amount_is_an_integer_or_a_share(value):
    check_amount("m", value, 1)
    check_amount("m", value, 1, WORDS)


@pytest.mark.parametrize("value", WORDS)
def test_an_amount_may_be_one_of_other_values(value):
    check_amount("m", value, 1, WORDS)
    with pytest.raises(TypeError, match=r"^m must be an integer >= 1 or a float in \(0, 1\]; got"):
        check_amount("m", value, 1)


@pytest.mark.parametrize("value", [0, -3, 0.0, -0.5, 1.5, float("nan"), float("inf"), "auto"])
def test_an_amount_out_of_range_is_told_all_that_is_allowed(value):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        check_amount("m", value, 1, WORDS)
    assert str(caught.value) == (
        f"m must be an integer >= 1, a float in (0, 1], 'sqrt' or None; got {value!r}."
    )


@pytest.mark.parametrize("value", [True, np.True_, [1], 1j, np.ones(2), {}])
def test_what_is_no_number_is_no_amount(value):
    with pytest.raises(TypeError, match=r"^m must be an integer >= 2, a float in \(0, 1\], 'sqrt'"):
        check_amount("m", value, 2, WORDS)


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (9, ValueError), ("a", TypeError)])
def test_an_integer_that_may_be_none_says_so(value, error):
    check_integer("depth", None, 1, 8, others=(None,))
    with pytest.raises(error, match=r"^depth must be an integer from 1 to 8 or None; got"):
        check_integer("depth", value, 1, 8, others=(None,))
    with pytest.raises(TypeError, match=r"^depth must be an integer >= 1; got None"):
        check_integer("depth", None, 1)


@pytest.mark.parametrize("value", [True, False, np.True_, max])
def test_a_flag_or_a_metric(value):
    check_flag_or_metric("oob_score", value)


@pytest.mark.parametrize("value", ["a", 1, None])
def test_what_is_neither_flag_nor_metric_is_told_both(value):
    with pytest.raises(ValueError, match=r"^oob_score must be True, False or a callable.*; got"):
        check_flag_or_metric("oob_score", value)


@pytest.mark.parametrize(
    ("max_features", "p", "drawn"),
    [
        (None, 5, 5), (3, 5, 3), ("sqrt", 10, 3), ("log2", 10, 3), ("sqrt", 1, 1), ("log2", 1, 1),
        (1.0, 5, 5), (0.3, 5, 1), (0.5, 5, 2), (0.7, 5, 3), (0.99, 5, 4), (0.01, 5, 1),
    ],
)  # fmt: skip
def test_a_share_of_the_features_is_cut_to_a_whole_number(max_features, p, drawn):
    check_max_features(max_features)
    assert count_features(max_features, p) == drawn


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (["a"] * 3, "must hold real numbers >= 0: could not convert string to float: 'a'."),
        ([{}] * 3, "must hold real numbers >= 0: "),
        ([1j] * 3, "must hold real numbers >= 0: Complex data not supported."),
        (np.array(["2024-01-01"] * 3, dtype="M8[D]"), "must hold real numbers >= 0; got dtype dat"),
        ([], "X has 3 rows, sample_weight has 0"),
        (np.ones((3, 1)), "must be 1D array or scalar; got shape (3, 1)"),
        (pd.array([1, None, 2], dtype="Int64"), "contains NaN or infinity"),
    ],
    ids=["strings", "objects", "complex", "dates", "none", "2-D", "NA"],
)
def test_weights_that_are_none_are_called_by_their_name(weights, says):
    with pytest.raises((ValueError, TypeError)) as caught:
        check_weights(weights, 3, locate(None), "sample_weight")
    assert "sample_weight" in str(caught.value)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "weights", [[1, 2, 0], (1.0, 2.0, 0.0), ["1", "2", "0"], pd.Series([1, 2, 0], dtype="Int64")]
)
def test_weights_become_float64_where_X_lives(weights, place: Place):
    found = check_weights(weights, 3, locate(place.put(np.zeros((3, 1)))), "sample_weight")
    place.check(found, "float64")
    np.testing.assert_array_equal(place.host(found), [1.0, 2.0, 0.0])
