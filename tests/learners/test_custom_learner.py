"""A learner in one file outside of the package: examples/custom_learner.py."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from ensemble_gpu import BoostingRegressor, use_engine
from ensemble_gpu.data.bags import make_bags
from ensemble_gpu.data.sampling import draw_seed
from examples.custom_learner import IntervalRegressor, bumps
from tests.boosters import plain
from tests.boosting.replaying import plans, whole_and_resumed


def small() -> tuple[np.ndarray, np.ndarray]:
    X, y = bumps(120)
    X = np.round(X, 1)
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return X, y


def best_interval(x: np.ndarray, y: np.ndarray) -> float:
    """The lowest sum of squares that an interval on x leaves; missing rows keep the mean of all."""
    known = ~np.isnan(x)
    rest = np.sum((y[~known] - y.mean()) ** 2)
    x, y = x[known], y[known]
    ends = [-np.inf, *np.unique(x)]
    return rest + min(
        sum(np.sum((part - part.mean()) ** 2) for part in (y[inside], y[~inside]) if len(part))
        for a, b in combinations(ends, 2)
        for inside in [(x > a) & (x <= b)]
    )


def test_the_first_interval_is_the_best_of_all():
    X, y = small()
    model = IntervalRegressor(max_depth=1, n_estimators=1, learning_rate=1.0).fit(X, y)
    left = np.sum((y - model.predict(X)) ** 2)
    assert left == pytest.approx(min(best_interval(X[:, f], y) for f in range(5)), rel=1e-6)


def test_intervals_find_bumps_in_fewer_rounds_than_stumps():
    X, y = bumps()
    params = {"n_estimators": 3, "learning_rate": 1.0, "max_depth": 1}
    scores = [
        kind(**params).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:])
        for kind in (IntervalRegressor, BoostingRegressor)
    ]
    assert scores[0] > 0.9
    assert scores[1] < 0.5


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_a_learner_of_ones_own_has_one_model_on_all_engines_and_its_rounds_are_replayed(loss):
    X, y = small()
    model = IntervalRegressor(loss, max_depth=1, n_estimators=12).fit(X, y)
    with use_engine("reference"):
        other = IntervalRegressor(loss, max_depth=1, n_estimators=12).fit(X, y)
    assert model.model_ == other.model_
    whole, resumed = whole_and_resumed(plans(model, X, y), 12)
    assert whole[1].fingerprint() == resumed[1].fingerprint() == model.model_.fingerprint()


def test_a_learner_of_ones_own_runs_in_bags():
    X, y = bumps(120)
    X = np.round(X, 1)
    model = IntervalRegressor(**plain(n_estimators=6, n_bags=2, random_state=0)).fit(X, y)
    bags = make_bags(
        X, y, None, None, seed=draw_seed(0), replace=True, max_samples=1.0, takes_weights=True
    )
    single = IntervalRegressor(**plain(n_estimators=6))
    own = [single.fit(X, y, bags.counts(bag)).predict(X) for bag in range(2)]
    np.testing.assert_allclose(model.predict(X), np.mean(own, axis=0), atol=1e-6)
    staged = list(model.staged_predict(X))
    assert len(staged) == model.n_estimators_ == 6
    np.testing.assert_array_equal(staged[-1], model.predict(X))
    np.testing.assert_array_equal(staged[2], model.model_.first(3)(X)[:, 0])
