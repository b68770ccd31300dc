"""Rectangles: the best of all of them, one model everywhere."""

from __future__ import annotations

from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.learners import Rectangles
from tests.boosting.replaying import plans, whole_and_resumed
from tests.estimators.checks import LIGHT_ROWS, all_when_long, assert_checks_pass
from tests.learners.everywhere import the_same_everywhere
from tests.libraries import Torch


def rows_of(n: int = 80, p: int = 3, missing: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (n, p)).astype(float)
    inside = (X[:, 0] > 1) & (X[:, 0] < 5) & (X[:, 2] > 2)
    y = np.where(rng.random(n) < 0.15, ~inside, inside).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def boosted(learner: Any = None, **params: Any) -> AdaBoostClassifier:
    params = {"variant": "discrete", "n_estimators": 6, **params}
    return AdaBoostClassifier(Rectangles() if learner is None else learner, **params)


def every_answer(X: np.ndarray, outside: str) -> list[np.ndarray]:
    """The answers of all rectangles of all pairs of features, +1 inside."""
    found = []
    for f, g in combinations(range(X.shape[1]), 2):
        x, z = X[:, f], X[:, g]
        known = ~np.isnan(x) & ~np.isnan(z)
        for a0, a1 in combinations_with_replacement(np.unique(x[~np.isnan(x)]), 2):
            for b0, b1 in combinations_with_replacement(np.unique(z[~np.isnan(z)]), 2):
                inside = (x >= a0) & (x <= a1) & (z >= b0) & (z <= b1)
                found.append(known * np.where(inside, 1, 0 if outside == "abstain" else -1))
    return found


@pytest.mark.parametrize("outside", ["against", "abstain"])
def test_a_round_is_the_best_of_all_rectangles(outside):
    X, y = rows_of(p=3)
    s, answers = 2 * y - 1, np.stack(every_answer(X, outside))
    fit = boosted(Rectangles(outside=outside)).fit(X, y)
    for t in range(fit.n_estimators_):
        D = np.exp(-s * (fit.model_.first(t)(X)[:, 0] if t else np.zeros(len(y))))
        D /= D.sum()
        best = np.abs(answers @ (D * s)).max()
        W0, right, wrong, Z = fit.history_.weights[t]
        assert right - wrong == pytest.approx(best, abs=1e-6)
        alpha = 0.5 * np.log(right / wrong)
        assert fit.alphas_[t] == pytest.approx(alpha, rel=1e-6)
        assert pytest.approx(W0 + 2.0 * np.sqrt(right * wrong), rel=1e-6) == Z
    loss = np.mean(np.exp(-s * fit.decision_function(X)))
    assert fit.history_.training[-1] == pytest.approx(loss, rel=1e-6)


@pytest.mark.parametrize("outside", ["against", "abstain"])
def test_the_model_is_the_same_everywhere(outside):
    X, y = rows_of()
    learner = Rectangles(outside=outside)
    the_same_everywhere(partial(boosted, learner), X, y)
    twice = boosted(learner).fit(np.concatenate([X, X]), np.concatenate([y, y])).model_
    assert boosted(learner).fit(X, y, sample_weight=np.full(len(y), 2.0)).model_ == twice


@pytest.mark.interop
def test_the_model_is_the_same_on_torch():
    X, y = rows_of()
    place = Torch()
    assert boosted().fit(place.put(X), place.put(y)).model_ == boosted().fit(X, y).model_


def test_a_rectangle_of_the_training_rows_is_that_of_the_model():
    X, y = rows_of()
    fit = boosted(n_estimators=1).fit(X, y)
    (voter,) = fit.model_.voters
    assert (voter.f, voter.g) == (0, 2)
    assert voter.limits == (1.5, 4.5, 2.5, np.inf)
    missing = np.isnan(X[:, [0, 2]]).any(axis=1)
    np.testing.assert_array_equal(fit.decision_function(X)[missing], 0.0)
    assert (fit.predict(X)[~missing] == y[~missing]).mean() > 0.75


@pytest.mark.parametrize("loss", ["logistic", "squared", "hinge"])
def test_any_loss_takes_rectangles(loss):
    X, y = rows_of()
    params = {"estimator": Rectangles(), "n_estimators": 6, "learning_rate": 0.5}
    fit = BoostingClassifier(loss, **params).fit(X, y)
    assert fit.score(X, y) > 0.75
    with use_engine("reference"):
        assert BoostingClassifier(loss, **params).fit(X, y).model_ == fit.model_


def test_a_regression_finds_the_rectangle():
    X, _ = rows_of(missing=0.0)
    inside = (X[:, 0] > 1) & (X[:, 2] > 2)
    fit = BoostingRegressor(estimator=Rectangles(), n_estimators=20, learning_rate=0.5)
    assert fit.fit(X, 3.0 * inside).score(X, 3.0 * inside) > 0.99
    first = fit.model_.voters[fit.model_.chosen[0]]
    assert (first.f, first.g) == (0, 2)


@pytest.mark.parametrize(
    "estimator", [boosted(), BoostingClassifier(estimator=Rectangles())], ids=["votes", "rebuild"]
)
def test_rounds_are_replayed(estimator):
    whole, resumed = whole_and_resumed(plans(estimator, *rows_of()), 8)
    assert whole[1].fingerprint() == resumed[1].fingerprint()


@all_when_long
def test_scikit_learns_checks_for_models_pass(others):
    assert_checks_pass(boosted(n_estimators=4), LIGHT_ROWS, others=others)


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        (Rectangles(1), "max_bins must be"),
        (Rectangles(outside="inside"), "outside must be one of"),
        (Rectangles(), "Only binary classification is supported by estimator Rectangles"),
    ],
)
def test_bad_input_is_named_and_nothing_is_left_half_fitted(learner, text):
    X, _ = rows_of()
    y = np.arange(len(X)) % 3
    for estimator in (boosted(learner), BoostingClassifier(estimator=learner)):
        with pytest.raises(ValueError, match=text):
            estimator.fit(X, y)
        assert not hasattr(estimator, "model_")
    with pytest.raises(ValueError, match="needs 2 features at least"):
        boosted().fit(X[:, :1], y > 0)
    with pytest.raises(ValueError, match="variant must be 'discrete' for estimator Rectangles"):
        boosted(variant="real").fit(X, y > 0)
