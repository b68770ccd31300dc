"""The smallest entries of every row, on every namespace."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.smallest import smallest


@pytest.mark.parametrize("k", [1, 3, 20])
def test_the_first_of_equal_entries_are_taken(place, k):
    values = np.random.default_rng(0).integers(0, 5, size=(30, 20)).astype(float)
    there = place.put(values)
    at = place.host(smallest(there, k, locate(there)))
    expected = np.sort(np.argsort(values, axis=1, kind="stable")[:, :k], axis=1)
    np.testing.assert_array_equal(at, expected)


@pytest.mark.interop
def test_other_libraries_find_the_same(library):
    values = np.random.default_rng(0).integers(0, 5, size=(30, 20)).astype(float)
    there = library.put(values)
    at = library.host(smallest(there, 4, locate(there)))
    expected = np.sort(np.argsort(values, axis=1, kind="stable")[:, :4], axis=1)
    np.testing.assert_array_equal(at, expected)
