"""Weighted means."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import locate
from tests.places import Place

VALUES = np.array([1.0, -2.0, 4.0])


def test_the_mean_is_that_of_numpy(place: Place):
    values, weights = place.put(VALUES), np.array([1.0, 2.0, 0.5])
    where = locate(values)
    assert weighted_mean(values, None, where) == 1.0
    found = weighted_mean(values, place.put(weights), where)
    assert found == pytest.approx(np.average(VALUES, weights=weights), rel=1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e307])
def test_weights_of_any_scale_neither_overflow_nor_vanish(scale):
    weights = np.full(3, scale)
    assert weighted_mean(VALUES, weights, locate(VALUES)) == 1.0
