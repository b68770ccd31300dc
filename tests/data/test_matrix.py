"""Sorting by class and the thresholds of a binned matrix."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.data.matrix import bin_matrix, sort_by_class
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.protocol import Layout
from tests.places import Place


def test_rows_are_sorted_by_class_in_their_old_order(place: Place):
    index = np.array([2, 0, 1, 0, 2, 1, 0])
    there = place.put(index)
    found = sort_by_class(there, 3, None, locate(there))
    np.testing.assert_array_equal(place.host(found.rows), [1, 3, 6, 2, 5, 0, 4])
    np.testing.assert_array_equal(found.starts, [0, 3, 5, 7])


def test_only_kept_rows_are_sorted(place: Place):
    index, keep = np.array([1, 0, 1, 0, 1]), np.array([True, True, False, False, True])
    there = place.put(index)
    found = sort_by_class(there, 2, place.put(keep), locate(there))
    np.testing.assert_array_equal(place.host(found.rows), [1, 0, 4])
    np.testing.assert_array_equal(found.starts, [0, 1, 3])


def matrix_of(X: np.ndarray):
    layout = Layout(np.array([0, len(X)]), np.zeros((1, 1), dtype=np.int64))
    return bin_matrix(CpuEngine(1), X, np.arange(len(X)), layout, 255)


def test_a_feature_with_missing_values_has_one_more_threshold_when_they_take_a_side():
    X = np.array([[1.0, 1.0, np.nan], [2.0, np.nan, np.nan], [3.0, 1.0, np.nan]])
    matrix = matrix_of(X)
    np.testing.assert_array_equal(matrix.n_thresholds(False), [2, 0, 0])
    np.testing.assert_array_equal(matrix.n_thresholds(True), [2, 1, 0])


def test_a_threshold_is_an_edge_or_infinity():
    matrix = matrix_of(np.array([[1.0], [2.0], [4.0]]))
    assert [matrix.threshold(0, b) for b in range(3)] == [1.5, 3.0, np.inf]
