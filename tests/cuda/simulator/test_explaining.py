"""Explanations on the CUDA engine: the array library's calls on its device."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, use_engine
from ensemble_gpu.explaining.trees import explain_forest
from tests.datasets import random_data
from tests.model.trees import random_forest, rows_for


def test_values_of_stumps_are_those_of_the_cpu():
    data = random_data(2, n=40, p=3).with_missing().with_weights()
    model = AdaBoostClassifier(n_estimators=4, calibrate=False)
    model.fit(data.X, data.y, sample_weight=data.weights)
    with use_engine("cuda"):
        there = AdaBoostClassifier(n_estimators=4, calibrate=False)
        there.fit(data.X, data.y, sample_weight=data.weights)
        found = there.explain(data.X)
    for one, other in zip(
        vars(there.background_).values(), vars(model.background_).values(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.values, model.explain(data.X).values)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_values_of_trees_are_those_of_the_cpu(n_outputs):
    forest = random_forest(1, n_trees=2, depth=4, n_outputs=n_outputs)
    X = rows_for(forest, 12)
    expected, base = explain_forest(forest, X, 1)
    with use_engine("cuda"):
        found, there = explain_forest(forest, X, None)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(there, base)
