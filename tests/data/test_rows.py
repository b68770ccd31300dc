"""Binned rows are made once, and serve fits with other weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingRegressor,
    DecisionTreeRegressor,
)
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.boosting.loop import boost
from ensemble_gpu.boosting.plans import (
    DescentParameters,
    gradient_learner,
    regression_plan,
    rescale_plan,
)
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.rows import Binned, Rows, bin_rows
from ensemble_gpu.kernels.select import engine_for
from ensemble_gpu.losses import Absolute, Squared
from ensemble_gpu.trees.build import grow_tree, to_forest
from ensemble_gpu.trees.statistics import real_statistics
from tests.boosters import plain
from tests.datasets import random_data
from tests.places import ENGINES, STRICT
from tests.products import every_pair

ROUNDS = 20


def binned_rows(X: Any, target: Any, n_ranges: int | None, keep: Any = None) -> Binned:
    return bin_rows(engine_for(locate(X)), Rows(X, target, None), keep, 255, n_ranges=n_ranges)


def two_weights(n: int) -> list[np.ndarray]:
    """Fractions, and repetitions."""
    rng = np.random.default_rng(7)
    return [0.1 + rng.gamma(1.0, size=n), rng.integers(1, 5, size=n).astype(np.float64)]


def boosted(plan: Plan) -> Any:
    trace = boost(plan.strategy, ROUNDS, [])
    return plan.learner.outcome(trace.rounds, plan.start, plan.constant).model


def descended(alone: BoostingRegressor, binned: Binned, X: Any, loss: Any) -> Any:
    size = alone._size(alone._restraint())
    descent = DescentParameters.of(alone, step=alone._resolved_step(loss), size=size)
    learner = gradient_learner(binned, descent)
    return boosted(regression_plan(binned, locate(X), loss, descent, learner))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_two_adaboosts_of_one_binned_matrix_are_those_of_two_fits(engine, n_classes):
    data = random_data(n_classes).with_missing()
    binned = binned_rows(data.X, data.y, n_classes)
    for weights in two_weights(len(data.y)):
        alone = AdaBoostClassifier(n_estimators=ROUNDS).fit(data.X, data.y, weights)
        rule = rule_for("real", n_classes)
        plan = rescale_plan(alone, binned.with_weights(weights), locate(data.X), rule)
        assert boosted(plan) == alone.model_


@every_pair("engine, loss, depth", ENGINES, [Squared(), Absolute()], [1, 3], indirect=["engine"])
def test_two_descents_of_one_binned_matrix_are_those_of_two_fits(engine, loss, depth):
    data = random_data().with_missing()
    y = data.X[:, 0] + data.y
    binned = binned_rows(data.X, y, 1 if depth == 1 else None)
    for weights in two_weights(len(y)):
        alone = BoostingRegressor(
            loss, **plain(n_estimators=ROUNDS, max_depth=depth, random_state=0)
        )
        alone.fit(data.X, y, weights)
        model = descended(alone, binned.with_weights(weights), data.X, loss)
        assert model.fingerprint() == alone.model_.fingerprint()


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("loss", [Squared(), Absolute()], ids=["squared", "absolute"])
def test_weight_zero_leaves_rows_out_of_a_descent_as_a_fold_does(engine, loss, depth):
    """On equal edges; nodes of trees count the rows, so their predictions are compared."""
    data = random_data(n=400)
    X, y = np.round(data.X), data.X[:, 0] + data.y
    weights = (np.arange(400) % 5 > 0).astype(np.float64)
    alone = BoostingRegressor(loss, **plain(n_estimators=ROUNDS, max_depth=depth, random_state=0))
    alone.fit(X, y, weights)
    binned = binned_rows(X, y, 1 if depth == 1 else None).with_weights(weights)
    model = descended(alone, binned, X, loss)
    np.testing.assert_array_equal(model(X)[:, 0], alone.predict(X))


def test_two_trees_of_one_binned_matrix_are_those_of_two_fits(engine):
    data = random_data().with_missing()
    y = data.X[:, 0] + data.y
    binned = binned_rows(data.X, y, None)
    for weights in two_weights(len(y)):
        alone = DecisionTreeRegressor(max_depth=4, random_state=0)
        parameters = alone._prepare(data.X, y, weights).parameters
        own = binned.with_weights(weights)
        statistics = real_statistics("squared_error", own.target, own.weights, own.engine)
        grown, described = grow_tree(own.engine, own.matrix, statistics, parameters, 0)
        tree = to_forest(grown, described, own.matrix, statistics, {})
        assert tree.fingerprint() == alone.fit(data.X, y, weights).model_.fingerprint()


@pytest.mark.parametrize("place", STRICT[:2], ids=str)
@pytest.mark.parametrize("n_ranges", [None, 1, 3])
def test_target_and_weights_follow_the_order_of_the_binned_rows(place, n_ranges):
    data = random_data(3, n=40)
    keep = np.arange(40) % 4 > 0
    binned = binned_rows(place.put(data.X), place.put(data.y), n_ranges, place.put(keep))
    order = place.host(binned.order)
    assert sorted(order.tolist()) == np.flatnonzero(keep).tolist()
    np.testing.assert_array_equal(place.host(binned.target), data.y[order])
    weights = np.arange(1.0, 41.0)
    own = binned.with_weights(place.put(weights))
    np.testing.assert_array_equal(place.host(own.weights), weights[order])
    assert own.matrix is binned.matrix
    assert binned.weights is None
    assert own.with_weights(None).weights is None


def test_a_range_for_each_class_holds_the_rows_of_the_class():
    data = random_data(3)
    binned = binned_rows(data.X, data.y, 3)
    assert np.diff(binned.starts).tolist() == np.bincount(data.y).tolist()
    np.testing.assert_array_equal(binned.target, np.sort(data.y))
    assert binned.matrix.codes.counts.shape[0] == 3
