"""What holds the leaves of boosted trees back: l2, second derivatives, rows; and the defaults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ensemble_gpu import BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.boosting.gradient_boosting import AUTO_ROWS, MOST_ROUNDS, ROUNDS
from ensemble_gpu.model.additive import AdditiveModel
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
    model = BoostingClassifier(**plain(max_depth=5, n_estimators=4, min_hessian=least))
    model.fit(X, labels, w)
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


# --- defaults ----------------------------------------------------------------------------------

SPELLED = {
    "n_estimators": 500, "learning_rate": 0.03, "early_stopping": False, "random_state": 0,
    "min_samples_leaf": 20, "min_hessian": 1e-3, "l2_regularization": 1.0, "subsample": 0.8,
    "max_features": 0.4,
}  # fmt: skip
OF_CLASSES = {**SPELLED, "max_depth": 4}
OF_NUMBERS = {**SPELLED, "max_depth": 6}
EACH = pytest.mark.parametrize(
    ("kind", "spelled"), [(BoostingClassifier, OF_CLASSES), (BoostingRegressor, OF_NUMBERS)]
)


def given(kind: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y, labels = table()
    return X, labels if kind is BoostingClassifier else y


@pytest.mark.slow
@EACH
def test_by_default_trees_are_grown_that_rows_leaves_and_features_hold_back(kind, spelled):
    X, y = given(kind)
    model = kind().fit(X, y)
    assert isinstance(model.model_, Forest)
    assert model.n_estimators_ == ROUNDS
    nodes = model.model_.nodes
    assert nodes.n_samples[nodes.feature == LEAF].min() >= spelled["min_samples_leaf"]
    assert model.model_ == kind(**spelled).fit(X, y).model_


@EACH
@pytest.mark.parametrize("name", ["min_samples_leaf", "l2_regularization", "subsample",
                                  "max_features"])  # fmt: skip
def test_a_parameter_that_is_given_takes_the_place_of_its_default_alone(kind, spelled, name):
    X, y = given(kind)
    own = {name: {"min_samples_leaf": 30, "max_features": None}.get(name, 0.9)}
    model = kind(n_estimators=5, **own).fit(X, y).model_
    changed = {**spelled, "n_estimators": 5, "learning_rate": 0.1, **own}
    assert model == kind(**changed).fit(X, y).model_
    assert model != kind(n_estimators=5).fit(X, y).model_


@EACH
@pytest.mark.parametrize("size", [{"max_depth": 1}, {"max_leaf_nodes": 2}], ids=str)
def test_stumps_take_all_rows_and_features_by_default(kind, spelled, size):
    X, y = given(kind)
    whole = {"min_samples_leaf": 1, "min_hessian": 0.0, "l2_regularization": 0.0, "subsample": 1.0,
             "max_features": None}  # fmt: skip
    model = kind(n_estimators=8, **size).fit(X, y).model_
    assert isinstance(model, AdditiveModel)
    assert model == kind(n_estimators=8, **size, **whole).fit(X, y).model_


@EACH
def test_fits_are_the_same_each_time_and_on_every_engine_by_default(kind, spelled):
    X, y = given(kind)
    fit = kind(n_estimators=6).fit(X, y).model_.fingerprint()
    assert fit == kind(n_estimators=6).fit(X, y).model_.fingerprint()
    with use_engine("reference"):
        assert fit == kind(n_estimators=6).fit(X, y).model_.fingerprint()
    fresh = {kind(n_estimators=6, random_state=None).fit(X, y).model_.fingerprint()
             for _ in range(3)}  # fmt: skip
    assert len(fresh) == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("params", "rate"),
    [
        ({}, 0.03),
        ({"n_estimators": 1_000}, 0.03),
        ({"n_estimators": 300}, 0.05),
        ({"n_estimators": 200}, 0.075),
        ({"n_estimators": 100}, 0.1),
        ({"n_estimators": 1}, 0.1),
        ({"n_estimators": 300, "max_depth": 1}, 0.05),
        ({"n_estimators": 300, "warm_start": True}, 0.1),
        ({"n_estimators": 300, "learning_rate": 0.7}, 0.7),
        ({"early_stopping": True}, 0.03),
    ],
    ids=str,
)
def test_few_rounds_learn_faster_by_default(params, rate):
    X, _, labels = table()
    model = BoostingClassifier(**params).fit(X, labels)
    np.testing.assert_array_equal(model.alphas_, rate)


@EACH
def test_weights_that_add_up_to_one_do_not_make_the_defaults_heavier(kind, spelled):
    X, y = given(kind)
    whole = np.random.default_rng(0).integers(1, 4, len(X)).astype(np.float64)
    for weights in (np.full(len(X), 1.0 / 64), whole / 2.0**10):  # products without rounding
        usual = weights.mean()
        sums = {"min_hessian": usual * 1e-3, "l2_regularization": usual}
        light = kind(n_estimators=5).fit(X, y, weights)
        assert light.model_ == kind(n_estimators=5, **sums).fit(X, y, weights).model_
    every = kind(n_estimators=5, subsample=1.0)
    even = every.fit(X, y, np.full(len(X), 1.0 / 64)).predict(X)
    np.testing.assert_allclose(even, every.fit(X, y).predict(X), rtol=1e-6)
    mixed = np.random.default_rng(1).permutation(len(X))
    again = kind(n_estimators=5).fit(X[mixed], y[mixed], weights[mixed])
    assert light.model_ == again.model_


def test_whole_weights_are_repetitions_with_the_l2_of_trees():
    X, y, _ = table()
    w = np.random.default_rng(0).integers(0, 4, len(X))
    model = BoostingRegressor(n_estimators=5, min_samples_leaf=1)
    found = model.fit(X, y, w).predict(X)
    repeated = model.fit(X.repeat(w, axis=0), y.repeat(w)).predict(X)
    np.testing.assert_allclose(found, repeated, rtol=1e-6)


def test_a_run_goes_on_where_a_default_is_spelled():
    X, y, _ = table()
    model = BoostingRegressor(n_estimators=5, warm_start=True).fit(X, y)
    model.set_params(**{**OF_NUMBERS, "n_estimators": 9, "learning_rate": 0.1}).fit(X, y)
    assert model.model_ == BoostingRegressor(n_estimators=9).fit(X, y).model_
    with pytest.raises(ValueError, match=r"subsample was 0\.8 and is 0\.5"):
        model.set_params(subsample=0.5, n_estimators=12).fit(X, y)


@EACH
def test_the_docstring_says_what_is_done_where_nothing_is_given(kind, spelled):
    text = " ".join(kind.__doc__.split())
    for said in (
        "None: 500, or with early stopping 10,000",
        "None: 15 / n_estimators, at least 0.03",
        f"None: {spelled['min_samples_leaf']}, of stumps 1",
        "None: 0.001, of stumps 0",
        "None: 1, of stumps 0",
        "None: 0.8, of stumps 1",
        '"auto": 0.4, of stumps all',
        f"max_depth : int or None, default={spelled['max_depth']}",
    ):
        assert said in text


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("subsample", 1.5, r"subsample must be a finite number in \(0, 1\] or None; got 1\.5"),
        ("max_features", "all", "max_features must be .*'sqrt', 'log2', 'auto' or None; got 'all'"),
        ("learning_rate", 0.0, r"learning_rate must be .* in \(0, 1\] or None; got 0\.0"),
    ],
)
def test_messages_say_that_nothing_need_be_given(name, value, message):
    X, y, _ = table()
    with pytest.raises(ValueError, match=message):
        BoostingRegressor(**{name: value}).fit(X, y)


@pytest.mark.slow
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
    model = BoostingRegressor(**plain(max_depth=None, n_estimators=1, learning_rate=1.0)).fit(X, y)
    groups = np.unique(X, axis=0)
    assert model.model_.n_leaves() > 0.9 * len(groups)
