"""Weights as integers, and what one row weighs."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.data.integers import weight_of_one


@pytest.mark.parametrize(
    ("weights", "one"),
    [
        ([1.0, 3.0], 1.0),
        ([2.0, 3.0], 1.0),  # two rows and three rows
        ([4.0, 6.0], 2.0),  # the same on another scale
        ([2.0, 2.0], 2.0),  # equal weights are none
        ([0.5, 3.0], 0.5),
        ([2.0**300, 3.0 * 2.0**290], 3.0 * 2.0**290),
    ],
)
def test_whole_weights_are_repetitions_of_a_row_that_divides_them(weights, one):
    assert weight_of_one(np.array(weights)) == one
