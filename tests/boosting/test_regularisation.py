"""What holds the leaves of boosted trees back: l2, second derivatives, rows; and the defaults."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ensemble_gpu import BoostingClassifier, BoostingRegressor
from ensemble_gpu.boosting.estimators import AUTO_ROWS, MOST_ROUNDS, ROUNDS
from ensemble_gpu.model.forest import Forest
from tests.boosters import plain

LEAF = -1


def table(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of few values, a real target, labels."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 40, size=(n, 4)).astype(np.float64)
    y = X[:, 0] / 10 + (X[:, 1] > 20) * (X[:, 2] > 9) + rng.normal(size=n)
    return X, y, (y > np.median(y)).astype(int)


@pytest.mark.parametrize("l2", [0.0, 0.5, 20.0])
@pytest.mark.parametrize("size", [{"max_depth": 3}, {"max_leaf_nodes": 6}], ids=str)
def test_trees_with_l2_are_those_of_hist_gradient_boosting(l2, size):
    X, y, labels = table()
    peer = {"max_iter": 5, "min_samples_leaf": 20, "l2_regularization": l2, "early_stopping": False}
    ours = plain(size, n_estimators=5, min_samples_leaf=20, l2_regularization=l2)
    for kind, theirs, target in (
        (BoostingRegressor, HistGradientBoostingRegressor, y),
        (BoostingClassifier, HistGradientBoostingClassifier, labels),
    ):
        theirs = theirs(**{"max_leaf_nodes": None, **size}, **peer).fit(X, target)
        own = kind(**ours).fit(X, target)
        if kind is BoostingRegressor:
            np.testing.assert_allclose(own.predict(X), theirs.predict(X), atol=2e-5)
        else:
            found, wanted = own.decision_function(X), theirs.decision_function(X)
            np.testing.assert_allclose(found, wanted, atol=2e-5)


@pytest.mark.parametrize("weight", [1.0, 0.25, 3.0])
def test_a_leaf_is_its_gradients_over_their_second_derivatives_and_l2(weight):
    """One split of a regression: H is the weight of the rows, G that of their residuals."""
    X, y, _ = table()
    w = np.full(len(y), weight)
    model = BoostingRegressor(
        max_depth=1, n_estimators=1, learning_rate=1.0, l2_regularization=7.0
    ).fit(X, y, w)
    residual, F = y - y.mean(), model.predict(X) - y.mean()
    for value in np.unique(F):
        rows = value == F
        assert value == pytest.approx(
            weight * residual[rows].sum() / (weight * rows.sum() + 7.0), rel=1e-6
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("least", [2.0, 9.5])
def test_every_leaf_keeps_its_second_derivatives(least, weighted):
    X, _, labels = table()
    w = np.random.default_rng(0).uniform(0.2, 2.0, len(X)) if weighted else np.ones(len(X))
    model = BoostingClassifier(
        max_depth=5, n_estimators=4, min_samples_leaf=1, min_hessian=least, random_state=0
    ).fit(X, labels, w)
    leaves = model.model_.apply(X)
    before = np.full(len(X), model.model_.intercept[0])
    smallest = math.inf
    for t, F in enumerate(model.staged_decision_function(X)):
        p = 1.0 / (1.0 + np.exp(-before))
        h = w * p * (1.0 - p)
        sums = np.bincount(leaves[:, t], weights=h)
        smallest = min(smallest, sums[sums > 0].min())
        before = F
    assert least * (1.0 - 1e-6) <= smallest < 3.0 * least


def test_by_default_trees_are_grown_whose_leaves_keep_twenty_rows():
    X, y, labels = table()
    for kind, target in ((BoostingClassifier, labels), (BoostingRegressor, y)):
        model = kind().fit(X, target)
        assert isinstance(model.model_, Forest)
        assert model.n_estimators_ == ROUNDS
        nodes = model.model_.nodes
        assert nodes.n_samples[nodes.feature == LEAF].min() >= 20


def test_rounds_and_early_stopping_by_default_depend_on_the_rows():
    X, y, _ = table(AUTO_ROWS)
    few = BoostingRegressor(max_depth=2, learning_rate=1.0).fit(X[1:], y[1:])
    assert not hasattr(few, "validation_loss_")
    assert few.n_estimators_ == ROUNDS
    many = BoostingRegressor(max_depth=2, learning_rate=1.0).fit(X, y)
    assert many.n_estimators_ < len(many.validation_loss_) < MOST_ROUNDS
    assert "has not improved" in many.stop_reason_
    told = BoostingRegressor(max_depth=2, early_stopping=False, n_estimators=3).fit(X, y)
    assert told.n_estimators_ == 3


def test_no_limit_of_depth_means_none():
    X, y, _ = table()
    model = BoostingRegressor(
        max_depth=None, min_samples_leaf=1, min_hessian=0.0, n_estimators=1, learning_rate=1.0
    ).fit(X, y)
    groups = np.unique(X, axis=0)
    assert model.model_.n_leaves() > 0.9 * len(groups)
