"""class_weight: weights of labels, by which those of the rows are multiplied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.ensemble import AdaBoostClassifier as Peer
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.class_weight import compute_class_weight

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    BoostingClassifier,
    DecisionTreeClassifier,
    RandomForestClassifier,
)
from tests.boosters import plain
from tests.datasets import random_data
from tests.places import Place
from tests.products import every_pair

DATA = random_data(3, n=150, seed=5)
Y = np.where(DATA.y == 2, 2, np.where(np.arange(150) % 5 == 0, DATA.y, 0))  # few of class 1
WEIGHTS = np.random.default_rng(6).gamma(2.0, size=150)
NAMES = np.array(["wren", "lark", "kite"])

ESTIMATORS: dict[str, Any] = {
    "AdaBoost": AdaBoostClassifier(n_estimators=6),
    "AdaBoost, one class": AdaBoostClassifier(n_estimators=6, multiclass="single"),
    "SAMME": AdaBoostClassifier(n_estimators=6, variant="discrete"),
    "logit": AdaBoostClassifier(n_estimators=6, variant="logit"),
    "AdaBoost of trees": AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=2), n_estimators=4, random_state=0
    ),
    "stumps": BoostingClassifier(n_estimators=6, max_depth=1),
    "boosted trees": BoostingClassifier(**plain(n_estimators=6, max_depth=3)),
    "early stopping": BoostingClassifier(
        n_estimators=9, early_stopping=True, random_state=0, max_depth=1
    ),
    "tree": DecisionTreeClassifier(max_depth=4),
    "bagging": BaggingClassifier(n_estimators=4, random_state=0),
    "bagging without weights": BaggingClassifier(GaussianNB(), 4, random_state=0),
}


def fitted(name: str, *data: Any, **params: Any) -> Any:
    estimator = ESTIMATORS[name]
    return type(estimator)(**estimator.get_params(deep=False) | params).fit(*data)


def assert_same(found: Any, expected: Any, X: Any, host: Any = np.asarray) -> None:
    if hasattr(found, "model_") and hasattr(found.model_, "fingerprint"):
        assert found.model_.fingerprint() == expected.model_.fingerprint()
    np.testing.assert_array_equal(host(found.predict_proba(X)), host(expected.predict_proba(X)))


@every_pair(
    "name, class_weight, weighted",
    ESTIMATORS,
    ["balanced", {0: 0.5, 2: 3.25}],
    [False, True],
    ids=str,
)
def test_a_fit_with_class_weights_is_that_with_products(name, class_weight, weighted):
    weights = WEIGHTS if weighted else None
    if class_weight == "balanced":
        factors = compute_class_weight("balanced", classes=np.arange(3), y=Y)
    else:
        factors = np.array([0.5, 1.0, 3.25])
    own = factors[Y] if weights is None else factors[Y] * weights
    found = fitted(name, DATA.X, Y, weights, class_weight=class_weight)
    assert_same(found, fitted(name, DATA.X, Y, own), DATA.X)
    without = fitted(name, DATA.X, Y, weights)
    assert not np.array_equal(found.predict_proba(DATA.X), without.predict_proba(DATA.X))


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n != "bagging without weights"])
def test_class_weights_are_the_same_where_x_lives(place: Place, name):
    X, y, w = place.put(DATA.X), place.put(Y), place.put(WEIGHTS)
    here = fitted(name, DATA.X, Y, WEIGHTS, class_weight="balanced")
    there = fitted(name, X, y, w, class_weight="balanced")
    np.testing.assert_allclose(
        place.host(there.predict_proba(X)), here.predict_proba(DATA.X), rtol=1e-12
    )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_labels_of_any_kind_have_weights(name):
    numbers = fitted(name, DATA.X, Y, class_weight={0: 2.0, 1: 0.25})
    # the labels in order: kite, lark, wren
    text = fitted(name, DATA.X, np.sort(NAMES)[Y], class_weight={"kite": 2.0, "lark": 0.25})
    np.testing.assert_array_equal(text.predict_proba(DATA.X), numbers.predict_proba(DATA.X))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights_of_one_change_nothing(name):
    found = fitted(name, DATA.X, Y, class_weight={0: 1, 1: 1.0})
    assert_same(found, fitted(name, DATA.X, Y), DATA.X)


@pytest.mark.parametrize("name", ["AdaBoost", "stumps", "boosted trees"])
def test_a_class_of_weight_zero_is_as_if_absent(name):
    found = fitted(name, DATA.X, Y, class_weight={1: 0.0})
    assert found.classes_.tolist() == [0, 2]
    assert_same(found, fitted(name, DATA.X[Y != 1], Y[Y != 1]), DATA.X)


@pytest.mark.parametrize("name", ["AdaBoost", "stumps", "tree"])
def test_rows_of_weight_zero_are_not_counted_for_balance(name):
    weights = (np.arange(150) % 4 > 0).astype(float)
    some = weights > 0
    found = fitted(name, DATA.X, Y, weights, class_weight="balanced")
    assert_same(found, fitted(name, DATA.X[some], Y[some], class_weight="balanced"), DATA.X)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("class_weight", "error", "message"),
    [
        ({0: 1.0, "x": 2.0}, ValueError, r"labels that y does not hold: \['x'\]; .*\[0, 1, 2\]"),
        ("even", ValueError, "class_weight must be None, 'balanced' or a dict .*got 'even'"),
        ([1, 2], ValueError, "class_weight must be None, 'balanced' or a dict"),
        ({0: -1.0}, ValueError, r"class_weight\[0\] must be a finite number >= 0; got -1.0"),
        ({0: "a"}, TypeError, r"class_weight\[0\] must be a number >= 0; got 'a'"),
        ({0: 0, 1: 0, 2: 0}, ValueError, "zero for every row: sample_weight times class_weight"),
    ],
    ids=str,
)
def test_wrong_class_weights_are_named(name, class_weight, error, message):
    with pytest.raises(error, match=message):
        fitted(name, DATA.X, Y, class_weight=class_weight)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_extreme_weights_give_what_scikit_learns_adaboost_gives(n_classes):
    """Data and weights of scikit-learn's check of class weights, which the peer does not take."""
    X, y = make_blobs(centers=n_classes, random_state=0, cluster_std=20)
    class_weight = {k: 1000.0 if k == 0 else 0.0001 for k in range(n_classes)}
    ours = AdaBoostClassifier(variant="discrete", n_estimators=20, class_weight=class_weight)
    peer = Peer(n_estimators=20).fit(X[::2], y[::2], np.where(y[::2] == 0, 1000.0, 0.0001))
    found = ours.fit(X[::2], y[::2]).predict(X[1::2])
    assert np.mean(found == peer.predict(X[1::2])) > 0.95


@pytest.mark.parametrize("name", ["AdaBoost", "stumps"])
def test_two_classes_must_have_weight(name):
    with pytest.raises(ValueError, match=r"at least 2 classes .*class_weight"):
        fitted(name, DATA.X, Y, class_weight={0: 0, 1: 0})


@pytest.mark.slow
def test_out_of_bag_scores_count_rows_by_sample_weight_alone():
    params = {"n_estimators": 40, "oob_score": True, "random_state": 0}
    bagging = BaggingClassifier(**params, class_weight={0: 9.5}).fit(DATA.X, Y)
    forest = RandomForestClassifier(**params, class_weight={0: 9.5}).fit(DATA.X, Y)
    for estimator in (bagging, forest):
        right = np.argmax(estimator.oob_decision_function_, axis=1) == Y
        assert estimator.oob_score_ == pytest.approx(right.mean())
