"""Neighbours and Ridge as weak learners: the estimators of the same names are the oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from ensemble_gpu import (
    BoostingClassifier,
    BoostingRegressor,
    NeighboursRegressor,
    RidgeRegressor,
)
from ensemble_gpu.learners import Neighbours, Ridge
from ensemble_gpu.model.linear import LinearModel
from ensemble_gpu.model.neighbours import NeighbourModel
from tests.boosting.replaying import plans, whole_and_resumed

RNG = np.random.default_rng(1)
X = RNG.normal(size=(120, 3))
Q = RNG.normal(size=(40, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2] + 0.2 * RNG.normal(size=120)
LABELS = {2: (Y > 0).astype(int), 3: np.digitize(Y, [-0.6, 0.6])}
W = RNG.gamma(2.0, size=120)
PAIRS = [(Neighbours(7), NeighboursRegressor(7)), (Ridge(2.0), RidgeRegressor(2.0))]
MODELS: dict[type, type] = {Neighbours: NeighbourModel, Ridge: LinearModel}


@pytest.mark.parametrize(("learner", "estimator"), PAIRS, ids=["neighbours", "ridge"])
@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
def test_rounds_are_those_of_the_estimator_and_the_model_is_one(loss, learner, estimator):
    ours = BoostingRegressor(loss, estimator=learner, n_estimators=10).fit(X, Y)
    theirs = BoostingRegressor(loss, estimator=estimator, n_estimators=10).fit(X, Y)
    assert type(ours.model_) is MODELS[type(learner)]
    np.testing.assert_allclose(ours.predict(Q), theirs.predict(Q), rtol=1e-2, atol=1e-3)
    if loss == "squared":
        np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-9)
        np.testing.assert_allclose(ours.predict(Q), theirs.predict(Q), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", [Neighbours(7), Ridge()], ids=str)
def test_classes_are_learnt(learner, n_classes):
    ours = BoostingClassifier(estimator=learner, n_estimators=20, learning_rate=0.5)
    assert ours.fit(X, LABELS[n_classes]).score(X, LABELS[n_classes]) > 0.6
    stages = list(ours.model_.staged(Q))
    np.testing.assert_allclose(ours.model_.first(4)(Q), stages[3], atol=1e-12)
    np.testing.assert_allclose(ours.model_(Q), stages[-1], atol=1e-12)


def test_ridge_takes_the_weights_of_the_rows():
    ours = BoostingRegressor(estimator=Ridge(2.0), n_estimators=1, learning_rate=1.0)
    ours.fit(X, Y, W)
    alone = RidgeRegressor(2.0).fit(X, Y, W)
    mean = np.average(Y, weights=W)
    h = 2.0 * (alone.predict(Q) - mean)
    np.testing.assert_allclose(ours.predict(Q), mean + ours.alphas_[0] * h, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("make", [Neighbours(7), Neighbours(7, standardise=True), Ridge()], ids=str)
def test_steps_of_one_are_powers_of_the_residual_matrix(make):
    """L2Boost: F_k = (I - (I - S)^k) y; S from fits to unit vectors."""
    y = Y - Y.mean()

    def fit(target: np.ndarray, n: int) -> Any:
        return BoostingRegressor(
            estimator=make, step="constant", learning_rate=1.0, n_estimators=n
        ).fit(X, target)

    units = np.eye(120) - 1.0 / 120
    S = np.array([fit(unit, 1).predict(X) for unit in units]).T + 1.0 / 120  # S 1 = 1
    left = y
    for stage in fit(y, 4).staged_predict(X):
        left = left - S @ left
        np.testing.assert_allclose(stage, y - left, atol=1e-6)


@pytest.mark.parametrize("learner", [Neighbours(7), Ridge()], ids=str)
def test_the_fit_is_made_where_the_arrays_live(place, learner):
    host = BoostingClassifier(estimator=learner, n_estimators=5).fit(X, LABELS[3])
    ours = BoostingClassifier(estimator=learner, n_estimators=5)
    ours.fit(place.put(X), place.put(LABELS[3]))
    F = ours.decision_function(place.put(Q))
    place.check(F, "float64")
    np.testing.assert_allclose(place.host(F), host.decision_function(Q), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("learner", [Neighbours(7), Ridge()], ids=str)
def test_a_run_that_is_taken_up_goes_on_as_if_it_had_not_ended(learner):
    make = plans(BoostingRegressor("huber", estimator=learner), X, Y)
    (rounds, one, _), (again, other, _) = whole_and_resumed(make, 6)
    np.testing.assert_allclose([r.alpha for r in rounds], [r.alpha for r in again], rtol=1e-12)
    np.testing.assert_allclose(one(Q), other(Q), rtol=1e-12)


@pytest.mark.parametrize(
    ("learner", "params", "error", "says"),
    [
        (Neighbours(0), {}, ValueError, "n_neighbors must be an integer from 1 to 120"),
        (Neighbours(121), {}, ValueError, "n_neighbors must be an integer from 1 to 120"),
        (Neighbours(standardise=1), {}, ValueError, "standardise must be"),
        (Ridge(-1.0), {}, ValueError, "l2 must be"),
        (Ridge(), {"subsample": 0.5}, ValueError, "subsample must be 1 for estimator Ridge"),
        (Ridge(), {"step": "leaf"}, ValueError, "step must be 'line_search' or 'constant'"),
        (Neighbours(), {"max_depth": 2}, ValueError, "max_depth=2"),
    ],
)
def test_bad_parameters_are_named(learner, params, error, says):
    with pytest.raises(error, match=says):
        BoostingRegressor("huber", estimator=learner, **params).fit(X, Y)


@pytest.mark.parametrize("learner", [Neighbours(7), Ridge()], ids=str)
def test_missing_values_and_sparse_rows_are_refused(learner):
    holes = X.copy()
    holes[3, 1] = np.nan
    name = type(learner).__name__
    with pytest.raises(ValueError, match=f"X contains NaN, which estimator {name} cannot take"):
        BoostingRegressor(estimator=learner).fit(holes, Y)
    ours = BoostingRegressor(estimator=learner, n_estimators=2).fit(X, Y)
    with pytest.raises(ValueError, match="X contains NaN"):
        ours.predict(holes)
    with pytest.raises(TypeError, match=f"estimator {name} takes dense X"):
        BoostingRegressor(estimator=learner).fit(scipy.sparse.csr_array(X), Y)
