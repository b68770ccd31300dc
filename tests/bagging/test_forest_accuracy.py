"""A forest errs as often as scikit-learn's, and knows from its bags how often that is."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn import ensemble as peers
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from tests.trees.problems import BUNDLED, GENERATED

pytestmark = pytest.mark.slow

SEEDS = range(10)
NAMES = ["twonorm", "ringnorm", "waveform", "digits", "breast cancer"]


def halves(name: str, seed: int) -> list[np.ndarray]:
    """X to train on, X to test on, and their labels."""
    if name in GENERATED:
        X, y = GENERATED[name](1300, seed)
        return [X[:300], X[300:], y[:300], y[300:]]
    X, y = BUNDLED[name](return_X_y=True)
    return train_test_split(X, y, train_size=300, random_state=seed, stratify=y)


@cache
def peer_errors(name: str) -> np.ndarray:
    found = []
    for seed in SEEDS:
        X, X_test, y, y_test = halves(name, seed)
        forest = peers.RandomForestClassifier(30, random_state=seed).fit(X, y)
        found.append(1 - forest.score(X_test, y_test))
    return np.array(found)


def errors(name: str, **params: Any) -> np.ndarray:
    found = []
    for seed in SEEDS:
        X, X_test, y, y_test = halves(name, seed)
        forest = RandomForestClassifier(30, random_state=seed, **params).fit(X, y)
        found.append(1 - forest.score(X_test, y_test))
    return np.array(found)


def excess(own: Any, peer: Any) -> float:
    """Mean difference of errors on the same rows, in units of its standard error.

    Two forests of thirty trees differ by chance alone as much as seeds do, so that one standard
    error would often be exceeded by twins, two seldom.
    """
    difference = np.asarray(own) - np.asarray(peer)
    return float(difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference))))


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_those_of_scikit_learn_up_to_chance(name):
    assert excess(errors(name), peer_errors(name)) < 2.0


@pytest.mark.parametrize("params", [{"max_depth": 2}, {"max_samples": 10}], ids=str)
def test_a_crippled_forest_would_be_found_out(params):
    assert excess(errors("waveform", **params), peer_errors("waveform")) > 2.0


def test_regression_errors_are_those_of_scikit_learn_up_to_chance():
    own, peer = [], []
    for seed in SEEDS:
        X, y = make_friedman1(700, random_state=seed)
        kinds = ((RandomForestRegressor, own), (peers.RandomForestRegressor, peer))
        for kind, found in kinds:
            forest = kind(20, max_features=0.5, random_state=seed).fit(X[:200], y[:200])
            found.append(np.mean((forest.predict(X[200:]) - y[200:]) ** 2))
    assert excess(own, peer) < 2.0


@pytest.mark.parametrize("name", ["twonorm", "waveform"])
def test_the_score_out_of_bag_is_close_to_that_of_new_rows(name):
    X, y = GENERATED[name](3000, 1)
    forest = RandomForestClassifier(60, oob_score=True, random_state=0).fit(X[:600], y[:600])
    some = forest.model_.first(22)  # a row is out of the bags of about 60 / e trees
    score = np.mean(np.argmax(some(X[600:]), axis=1) == y[600:])
    standard_error = np.sqrt(score * (1 - score) * (1 / 600 + 1 / 2400))
    assert abs(forest.oob_score_ - score) < 3 * standard_error
    assert forest.score(X[:600], y[:600]) > score + 0.02


def test_r2_out_of_bag_is_close_to_that_of_new_rows():
    X, y = make_friedman1(2000, random_state=0)
    forest = RandomForestRegressor(60, oob_score=True, random_state=0).fit(X[:500], y[:500])
    assert forest.oob_score_ == pytest.approx(forest.score(X[500:], y[500:]), abs=0.04)


def test_more_trees_vary_less():
    X, y = GENERATED["twonorm"](1300, 2)
    spread = []
    for n_estimators in (2, 40):
        p = [
            RandomForestClassifier(n_estimators, random_state=s)
            .fit(X[:300], y[:300])
            .predict_proba(X[300:])[:, 1]
            for s in range(4)
        ]
        spread.append(np.mean(np.std(p, axis=0)))
    assert spread[1] < spread[0] / 3


def test_informative_features_have_the_importances_that_scikit_learn_gives_them():
    X, y = make_friedman1(400, n_features=8, random_state=0)
    own = RandomForestRegressor(40, random_state=0).fit(X, y).feature_importances_
    peer = peers.RandomForestRegressor(40, random_state=0).fit(X, y).feature_importances_
    np.testing.assert_array_equal(np.argsort(own)[3:], np.argsort(peer)[3:])
    np.testing.assert_allclose(own, peer, atol=0.03)
    assert own.sum() == pytest.approx(1.0)
