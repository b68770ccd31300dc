"""The parameter `estimator` of gradient boosting: what it may be, and what is refused beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeRegressor

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.data.rows import Rows, bin_rows
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.learners.stump import SplitConstraints, Stumps
from tests.datasets import fitted_state

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X[:, 0] + (X[:, 1] > 0.3) + 0.1 * RNG.normal(size=200)


class Halves(BaseEstimator):
    """A learner of this package: stumps on codes of its own."""

    def __init__(self, width: int = 255) -> None:
        self.width = width

    def gradient_learner(self, rows: LearnerRows) -> Stumps:
        seen.append(rows)
        p = rows.X.shape[1]
        data = Rows(rows.X, rows.target, rows.weights)
        binned = bin_rows(rows.engine, data, None, min(self.width, rows.max_bins), n_ranges=1)
        constraints = SplitConstraints(
            False, False, np.zeros(p, np.int64), p, rows.seed, np.zeros(p, bool)
        )
        return Stumps(rows.engine, binned.matrix, constraints)


seen: list[LearnerRows] = []


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_a_learner_of_the_package_makes_the_rounds(loss):
    ours = BoostingRegressor(loss, estimator=Halves(), n_estimators=20).fit(X, Y)
    native = BoostingRegressor(loss, max_depth=1, n_estimators=20).fit(X, Y)
    assert ours.model_ == native.model_
    coarse = BoostingRegressor(loss, estimator=Halves(width=4), n_estimators=20).fit(X, Y)
    assert coarse.model_ != native.model_


def test_a_learner_of_the_package_sees_the_rows_that_take_part():
    weights = np.ones(200)
    weights[:50] = 0.0
    seen.clear()
    BoostingClassifier(estimator=Halves(), n_estimators=3, random_state=5).fit(X, Y > 0.5, weights)
    (rows,) = seen
    np.testing.assert_array_equal(rows.X, X[50:])
    np.testing.assert_array_equal(rows.target, (Y > 0.5)[50:])
    assert rows.weights.shape == (150,)
    assert (rows.n_outputs, rows.n_rounds, rows.max_bins) == (1, 3, 255)


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"max_depth": 3}, "max_depth=3"),
        ({"max_leaf_nodes": 4}, "max_leaf_nodes=4"),
        ({"min_samples_leaf": 2, "l2_regularization": 1.0}, "min_samples_leaf=2, l2_regular"),
        ({"max_features": 0.5}, "max_features=0.5"),
        ({"monotonic_cst": [1, 0, 0]}, "monotonic_cst"),
        ({"n_bags": 2}, "n_bags=2"),
        ({"interaction_cst": "pairwise"}, "interaction_cst"),
    ],
)
@pytest.mark.parametrize("estimator", [Halves(), DecisionTreeRegressor()], ids=str)
def test_parameters_of_stumps_and_trees_are_refused_by_name(estimator, parameters, named):
    for kind in (BoostingRegressor, BoostingClassifier):
        model = kind(estimator=estimator, **parameters)
        with pytest.raises(ValueError, match=named):
            model.fit(X, Y > 0.5)
        assert not fitted_state(model)


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (DecisionTreeRegressor, "the class DecisionTreeRegressor"),
        (Halves, "the class Halves"),
        (KMeans(), "estimator must be a regressor or a classifier"),
        ("tree", "estimator must have a method fit"),
        (3, "estimator must have a method fit"),
    ],
)
def test_what_is_no_learner_is_refused(estimator: Any, named: str):
    with pytest.raises(TypeError, match=named):
        BoostingRegressor(estimator=estimator).fit(X, Y)


@pytest.mark.parametrize("step", ["newton", "leaf"])
def test_steps_of_leaves_are_refused_for_other_estimators(step):
    with pytest.raises(ValueError, match="step must be 'line_search' or 'constant'"):
        BoostingRegressor("huber", estimator=DecisionTreeRegressor(), step=step).fit(X, Y)


def test_missing_values_are_not_learnt_by_a_learner_of_the_package():
    for kind in (BoostingRegressor, BoostingClassifier):
        model = kind(estimator=Halves(), missing="learn")
        with pytest.raises(ValueError, match="missing must be 'abstain' or 'error' for estimator"):
            model.fit(X, Y > 0.5)
        assert not fitted_state(model)
