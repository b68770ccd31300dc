"""Parameters and targets that every estimator treats alike, however odd they are."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ensemble_gpu
from ensemble_gpu import (
    BaggingRegressor,
    BoostingRegressor,
    DecisionTreeRegressor,
    RandomForestRegressor,
)
from tests.boosters import plain
from tests.datasets import fitted_state

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + X[:, 1] ** 2
DRAWING = [
    name
    for name in ensemble_gpu.__all__
    if name.endswith(("Classifier", "Regressor"))
    and "random_state" in getattr(ensemble_gpu, name)().get_params()
]
HUGE = 2.0**1000


@pytest.mark.parametrize("value", ["a", -1, 1.5, [1], np.random.default_rng(0)], ids=str)
@pytest.mark.parametrize("name", DRAWING)
def test_every_estimator_refuses_a_random_state_that_is_none(name, value):
    estimator = getattr(ensemble_gpu, name)(random_state=value)
    with pytest.raises(ValueError, match="random_state must be None, an integer from 0") as caught:
        estimator.fit(X, (Y > 0).astype(int))
    assert repr(value) in str(caught.value)
    assert not fitted_state(estimator)


def test_checking_a_random_state_draws_nothing_from_it():
    found = [
        ensemble_gpu.RandomForestClassifier(3, random_state=source).fit(X, Y > 0).model_
        for source in (np.random.RandomState(5), 5)
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeRegressor(max_depth=4), DecisionTreeRegressor(max_leaf_nodes=9),
     RandomForestRegressor(20, random_state=0, bootstrap=False, max_features=0.5)],
    ids=str,
)  # fmt: skip
def test_importances_of_a_target_whose_variance_overflows_are_those_of_the_target(estimator):
    expected = estimator.fit(X, Y).feature_importances_
    found = estimator.fit(X, HUGE * Y).feature_importances_
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [HUGE, 2.0**-900])
@pytest.mark.parametrize(
    "estimator",
    [DecisionTreeRegressor(max_depth=3), BaggingRegressor(n_estimators=3, bootstrap=False)],
    ids=str,
)
def test_scores_do_not_depend_on_the_scale_of_the_target(estimator, scale):
    expected = estimator.fit(X, Y).score(X, Y)
    assert estimator.fit(X, scale * Y).score(X, scale * Y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [RandomForestRegressor(30, oob_score=True, random_state=0),
     BaggingRegressor(n_estimators=30, oob_score=True, random_state=0)],
    ids=str,
)  # fmt: skip
def test_scores_out_of_bag_are_numbers_however_large_the_target_is(estimator):
    assert 0.5 < estimator.fit(X, 1e300 * Y).oob_score_ < 1.0


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile"])
@pytest.mark.parametrize("max_depth", [None, 3])
def test_boosting_refuses_a_target_whose_squares_overflow(loss, max_depth):
    estimator = BoostingRegressor(loss, **plain(max_depth=max_depth, n_estimators=3))
    allowed = re.escape("y must have a range of at most 1e+150")
    with pytest.raises(ValueError, match=f"{allowed}.*e\\+300.*Divide y"):
        estimator.fit(X, 1e300 * Y)
    assert not fitted_state(estimator)
    assert np.isfinite(estimator.fit(X, 1e148 * Y).feature_importances_).all()
