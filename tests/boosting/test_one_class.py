"""multiclass="single": each stump speaks about the one class where it lowers the loss most."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
from sklearn.datasets import load_digits

from ensemble_gpu import AdaBoostClassifier, use_engine
from tests.datasets import random_data
from tests.estimators.checks import all_when_long, assert_checks_pass
from tests.products import every_pair

ROUNDS = 40


def single(**settings) -> AdaBoostClassifier:
    return AdaBoostClassifier(multiclass="single", n_estimators=ROUNDS, **settings)


def class_of(values: np.ndarray) -> np.ndarray:
    """The class that each round speaks about; values [round, class, leaf]."""
    speaks = np.abs(values).max(axis=2) > 0.0
    assert (speaks.sum(axis=1) == 1).all()
    return speaks.argmax(axis=1)


@all_when_long
def test_the_checks_of_scikit_learn_for_models_pass(others):
    assert_checks_pass(AdaBoostClassifier(n_estimators=30, multiclass="single"), others=others)


@every_pair("variant, missing, weighted", ["real", "gentle"], ["abstain", "learn"], [False, True])
def test_the_stumps_of_a_class_are_those_of_the_class_against_the_rest(variant, missing, weighted):
    data = random_data(4)
    weights = np.linspace(0.5, 2.0, len(data.y)) if weighted else None
    settings = {"variant": variant, "missing": missing, "learning_rate": 0.5}
    rounds = single(**settings).fit(data.X, data.y, weights).model_.rounds
    turn = class_of(rounds.values)
    assert set(turn) == set(range(4))
    for k in range(4):
        own = turn == k
        binary = AdaBoostClassifier(n_estimators=int(own.sum()), **settings)
        expected = binary.fit(data.X, data.y == k, weights).model_.rounds
        np.testing.assert_array_equal(rounds.feature[own], expected.feature)
        np.testing.assert_array_equal(rounds.threshold[own], expected.threshold)
        np.testing.assert_array_equal(rounds.values[own, k], expected.values[:, 0])


def test_the_class_with_the_largest_fall_of_the_loss_has_its_turn():
    data = random_data(4)
    turn = class_of(single().fit(data.X, data.y).model_.rounds.values)
    binary = [AdaBoostClassifier(n_estimators=ROUNDS).fit(data.X, data.y == k) for k in range(4)]
    loss, done = np.ones(4), np.zeros(4, dtype=int)
    for k in turn:
        falls = [loss[c] * (1.0 - binary[c].errors_[done[c]]) for c in range(4)]
        assert falls[k] >= max(falls) * (1.0 - 1e-12)
        loss[k] *= binary[k].errors_[done[k]]
        done[k] += 1


def test_the_training_loss_is_the_mean_of_exp_of_minus_the_margins():
    data = random_data(3)
    clf = single().fit(data.X, data.y)
    F = clf.decision_function(data.X)
    own = np.where(data.y[:, None] == clf.classes_, 1.0, -1.0)
    assert np.mean(np.exp(-own * F)) == pytest.approx(clf.history_.training[-1], rel=1e-6)
    assert (np.diff(clf.history_.training) < 0.0).all()


@pytest.mark.slow
def test_the_model_is_the_same_on_every_engine_and_number_of_threads():
    data = random_data(4)
    expected = single(n_jobs=1).fit(data.X, data.y).model_
    assert single(n_jobs=3).fit(data.X, data.y).model_ == expected
    with use_engine("reference"):
        assert single().fit(data.X, data.y).model_ == expected
    X, y = array_api_strict.asarray(data.X), array_api_strict.asarray(data.y)
    assert single().fit(X, y).model_ == expected


def test_two_classes_have_nothing_to_take_turns_about():
    data = random_data(2)
    shared = AdaBoostClassifier(n_estimators=ROUNDS).fit(data.X, data.y)
    assert single().fit(data.X, data.y).model_ == shared.model_


@pytest.mark.slow
def test_digits_are_read():
    X, y = load_digits(return_X_y=True)
    clf = AdaBoostClassifier(multiclass="single", n_estimators=1500).fit(X[::2], y[::2])
    assert clf.score(X[1::2], y[1::2]) > 0.93


@pytest.mark.parametrize("variant", ["discrete", "logit"])
def test_a_variant_without_single_stumps_says_which_have_them(variant):
    with pytest.raises(ValueError, match="multiclass='single' is for variant one of 'real', 'gen"):
        single(variant=variant).fit([[0.0], [1.0], [2.0]], [0, 1, 2])


def test_an_unknown_choice_is_refused():
    with pytest.raises(
        ValueError,
        match=r"multiclass must be one of 'auto', .*; got 'x'",
    ):
        AdaBoostClassifier(multiclass="x").fit([[0.0], [1.0]], [0, 1])
