"""Shapley values of trees: their definition, on every engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ensemble_gpu import use_engine
from ensemble_gpu.explaining.trees import explain_forest
from ensemble_gpu.kernels.path_shares import quadrature
from ensemble_gpu.model.forest import Forest
from tests.explaining.oracle import shapley
from tests.model.trees import random_forest, rows_for
from tests.places import DEVICE


def assert_defined(forest: Forest, X: np.ndarray) -> None:
    values, base = explain_forest(forest, X, 1)
    assert values.shape == (*X.shape, forest.n_outputs)
    assert values.dtype == np.float64
    for x, found in zip(X, values, strict=True):
        expected, start = shapley(forest, x)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(base, start, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(values.sum(axis=1) + base, forest(X), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_values_are_the_mean_worth_over_all_orders(seed, engine):
    forest = random_forest(seed, n_trees=3, depth=5, average=bool(seed % 2))
    with use_engine(engine):
        assert_defined(forest, rows_for(forest, 6, seed))


def test_features_that_are_tested_again_and_again(engine):
    forest = random_forest(4, n_trees=1, depth=9, n_outputs=1)
    feature = np.where(forest.nodes.feature >= 0, forest.nodes.feature % 2 * 5, -1)
    nodes = replace(forest.nodes, feature=feature, subset=np.full(len(feature), -1))
    threshold = np.where(np.isnan(nodes.threshold) & (feature >= 0), 0.1, nodes.threshold)
    forest = Forest(replace(nodes, threshold=threshold), forest.starts, forest.n_features)
    with use_engine(engine):
        assert_defined(forest, rows_for(forest, 6))


def test_nodes_without_weight_are_reached_by_rows_alone(engine):
    forest = random_forest(5, n_trees=2, depth=4)
    weight = np.where(np.arange(len(forest.nodes)) % 3 == 0, 0.0, forest.nodes.weight)
    nodes = replace(forest.nodes, weight=weight)
    forest = Forest(nodes, forest.starts, forest.n_features, **forest._options())
    with use_engine(engine):
        assert_defined(forest, rows_for(forest, 6))


def test_a_forest_without_tests_explains_nothing(engine):
    forest = random_forest(0, n_trees=1, depth=1)
    leaf = Forest(forest.nodes.between(1, 2), np.array([0]), forest.n_features)
    for alone in (leaf, leaf.first(0)):
        with use_engine(engine):
            values, base = explain_forest(alone, np.zeros((2, forest.n_features)), None)
        assert not values.any()
        np.testing.assert_array_equal(
            np.broadcast_to(base, (2, len(base))), alone(np.zeros((2, 7)))
        )


def test_shares_of_classes_take_one_output_less_of_work():
    forest = random_forest(1, n_outputs=3)
    value = forest.nodes.value**2
    nodes = replace(forest.nodes, value=value / value.sum(axis=1, keepdims=True))
    shares = Forest(nodes, forest.starts, forest.n_features, **forest._options())
    X = rows_for(forest, 20)
    values, _ = explain_forest(shares, X, 1)
    np.testing.assert_allclose(values.sum(axis=2), 0.0, atol=1e-14)
    alone = replace(nodes, value=nodes.value[:, 2:])
    options = forest._options() | {"intercept": np.zeros(1)}
    last = Forest(alone, forest.starts, forest.n_features, **options)
    np.testing.assert_allclose(values[:, :, 2:], explain_forest(last, X, 1)[0], atol=1e-14)


def test_engines_agree_on_any_library():
    forest = random_forest(2, n_trees=4)
    X = rows_for(forest, 40)
    expected, base = explain_forest(forest, X, 1)
    found, there = explain_forest(forest, DEVICE.put(X), None)
    DEVICE.check(found, "float64")
    np.testing.assert_allclose(DEVICE.host(found), expected, rtol=0.0, atol=1e-13)
    np.testing.assert_array_equal(there, base)


def test_values_are_the_same_for_any_thread_count_and_block_of_rows():
    forest = random_forest(3)
    X = rows_for(forest, 3000)
    expected, _ = explain_forest(forest, X, 1)
    np.testing.assert_array_equal(explain_forest(forest, X, 2)[0], expected)
    np.testing.assert_array_equal(explain_forest(forest, X[1000:1005], 2)[0], expected[1000:1005])


@pytest.mark.parametrize("points", [1, 2, 7, 20, 50])
def test_the_quadrature_is_exact_below_twice_its_points(points):
    at, weight = quadrature(points)
    for power in (0, points, 2 * points - 1):
        assert abs(weight @ at**power - 1.0 / (power + 1)) < 1e-14
