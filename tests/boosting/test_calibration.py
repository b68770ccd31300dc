"""Calibrated probabilities of AdaBoost: one scale, learnt from rows that a model has not seen."""

from __future__ import annotations

import pickle

import array_api_strict
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from ensemble_gpu import AdaBoostClassifier
from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.boosting import calibration
from ensemble_gpu.model.calibration import (
    LEAST,
    CalibratedLoss,
    best_scale,
    calibrated_log_loss,
)
from ensemble_gpu.model.link import probabilities
from tests.datasets import random_data
from tests.places import PLACES

VARIANTS = ["real", "discrete", "gentle", "logit"]
SETS = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "digits": lambda: tuple(a[::3] for a in load_digits(return_X_y=True)),
    "noise": lambda: make_classification(600, 10, flip_y=0.3, random_state=0),
}


# --- the scale of given outputs ----------------------------------------------------------------


def smoothed_loss(F: np.ndarray, index: np.ndarray, weights: np.ndarray, link: str, s: float):
    """The docstring of model/calibration.py, in plain NumPy."""
    ln = np.log(probabilities(F, link, NUMPY, s))
    n, K = ln.shape
    own, e = ln[np.arange(n), index], 0.5 / n
    loss = -(1 - e) * own - e / (K - 1) * (ln.sum(axis=1) - own)
    return np.average(loss, weights=weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("link", "outputs"), [("margins", 1), ("margins", 4), ("votes", 3)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_no_scale_is_better(link, outputs, weighted, size):
    rng = np.random.default_rng(0)
    index = rng.integers(max(2, outputs), size=200)
    F = rng.normal(size=(200, outputs))
    F[np.arange(200), index if outputs > 1 else 0] += 1.0 if outputs > 1 else 2.0 * index - 1.0
    F *= size
    weights = rng.random(200) + 0.1 if weighted else None
    found = best_scale(F, index, weights, link, NUMPY)
    losses = [smoothed_loss(F, index, weights, link, found * k) for k in (1, 0.999, 1.001, 0.5, 2)]
    assert np.argmin(losses) == 0


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_scale_is_the_same_in_every_library(place):
    rng = np.random.default_rng(1)
    for outputs, link in ((1, "margins"), (3, "margins"), (3, "votes")):
        index, F = rng.integers(2, size=99), rng.normal(size=(99, outputs))
        there = place.put(F)
        found = best_scale(there, place.put(index), None, link, locate(there))
        assert found == best_scale(F, index, None, link, NUMPY)


@pytest.mark.parametrize("m", [1e-4, 1.0, 1e3])
def test_outputs_that_are_always_right_have_a_finite_scale(m):
    """p = 1 - 1 / (2 n) for all rows: s = ln(2 n - 1) / (2 m)."""
    index = np.arange(100) % 2
    F = m * (2.0 * index - 1.0)[:, None]
    assert best_scale(F, index, None, "margins", NUMPY) == pytest.approx(np.log(199) / (2 * m))


def test_outputs_that_are_always_wrong_have_the_least_scale_and_zeros_one():
    index = np.arange(10) % 2
    F = (1.0 - 2.0 * index)[:, None]
    assert best_scale(F, index, None, "margins", NUMPY) == LEAST
    assert best_scale(0.0 * F, index, None, "margins", NUMPY) == 1.0


# --- the estimator -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SETS))
@pytest.mark.parametrize("variant", ["real", "discrete", "gentle"])
def test_calibrated_probabilities_have_a_lower_log_loss(name, variant):
    X, y = SETS[name]()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=0, stratify=y)
    model = AdaBoostClassifier(variant=variant, n_estimators=150).fit(X, y)
    plain = AdaBoostClassifier(variant=variant, n_estimators=150, calibrate=False).fit(X, y)
    assert plain.scale_ == 1.0
    found, before = (log_loss(y_test, m.predict_proba(X_test)) for m in (model, plain))
    assert found < 0.9 * before
    best = best_scale(
        np.reshape(model.decision_function(X_test), (len(y_test), -1)), y_test, None, model.link_,
        NUMPY,
    )  # fmt: skip
    p = probabilities(
        np.reshape(model.decision_function(X_test), (len(y_test), -1)), model.link_, NUMPY, best
    )
    assert found < 1.3 * log_loss(y_test, p)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_only_probabilities_depend_on_it(variant, n_classes):
    data = random_data(n_classes, n=200)
    model = AdaBoostClassifier(variant=variant, n_estimators=12).fit(data.X, data.y)
    plain = clone(model).set_params(calibrate=False).fit(data.X, data.y)
    assert model.scale_ != 1.0
    assert model.model_ == plain.model_
    np.testing.assert_array_equal(model.decision_function(data.X), plain.decision_function(data.X))
    np.testing.assert_array_equal(model.predict(data.X), plain.predict(data.X))
    F = np.reshape(model.decision_function(data.X), (200, -1))
    p = model.predict_proba(data.X)
    np.testing.assert_array_equal(p, probabilities(F, model.link_, NUMPY, model.scale_))
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(data.X))
    np.testing.assert_allclose(model.predict_log_proba(data.X), np.log(p))
    for stage, labels in zip(
        model.staged_predict_proba(data.X), model.staged_predict(data.X), strict=True
    ):
        np.testing.assert_array_equal(model.classes_[stage.argmax(axis=1)], labels)
    np.testing.assert_allclose(stage, p, rtol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(data.X), p)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_the_scale_depends_neither_on_the_order_of_the_rows_nor_on_the_library(place):
    data = random_data(3, n=150).with_missing()
    mixed = np.random.default_rng(0).permutation(150)
    expected = AdaBoostClassifier(n_estimators=10).fit(data.X, data.y).scale_
    there = AdaBoostClassifier(n_estimators=10)
    there.fit(place.put(data.X[mixed]), place.put(data.y[mixed]))
    assert there.scale_ == expected
    place.check(there.predict_proba(place.put(data.X)), "float64")


def test_whole_weights_are_repetitions_in_the_scale():
    data = random_data(n=150)
    X = np.round(data.X, 1)
    weights = np.random.default_rng(1).integers(0, 4, size=150)
    model = AdaBoostClassifier(n_estimators=10)
    found = model.fit(X, data.y, weights).scale_
    repeated = model.fit(X.repeat(weights, 0), data.y.repeat(weights)).scale_
    assert found == pytest.approx(repeated, rel=1e-6)


def test_the_rows_of_a_fold_are_not_seen_by_its_model(monkeypatch):
    data = random_data(n=100)
    seen = []

    class Watching(AdaBoostClassifier):
        def _plan(self, given):
            keep = np.ones(100, bool) if given.keep is None else given.keep
            seen.append(given.rows.X[keep])
            return super()._plan(given)

    evaluated = []
    own = calibration._outputs
    monkeypatch.setattr(
        calibration, "_outputs", lambda model, X, *a: evaluated.append(X) or own(model, X, *a)
    )
    Watching(n_estimators=5).fit(data.X, data.y)
    assert len(seen) == 6
    assert len(evaluated) == 5
    assert len(np.concatenate(evaluated)) == 100
    for training, fold in zip(seen[1:], evaluated, strict=True):
        assert len(training) + len(fold) == 100
        rows = {tuple(row) for row in training.tolist()}
        assert not any(tuple(row) in rows for row in fold.tolist())


def test_one_fold_is_enough_for_many_rows(monkeypatch):
    fits = []
    own = AdaBoostClassifier._plan
    monkeypatch.setattr(AdaBoostClassifier, "_plan", lambda self, d: fits.append(1) or own(self, d))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 2))
    AdaBoostClassifier(n_estimators=3).fit(X, (X[:, 0] + rng.normal(size=10_000) > 0).astype(int))
    assert len(fits) == 2


def test_a_class_with_a_single_row_leaves_the_scale_at_one():
    X = np.arange(10.0)[:, None]
    assert AdaBoostClassifier().fit(X, np.arange(10) > 8).scale_ == 1.0
    assert AdaBoostClassifier().fit(X, np.arange(10) > 7).scale_ != 1.0
    assert AdaBoostClassifier().fit(0.0 * X, np.arange(10) > 7).scale_ == 1.0  # no rounds


def test_with_an_estimator_it_is_off_unless_asked_for():
    data = random_data(n=120)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    plain = AdaBoostClassifier(tree, n_estimators=10, random_state=0).fit(data.X, data.y)
    assert plain.scale_ == 1.0
    model = AdaBoostClassifier(tree, n_estimators=10, calibrate=True, random_state=0)
    model.fit(data.X, data.y)
    assert model.scale_ != 1.0
    np.testing.assert_array_equal(model.decision_function(data.X), plain.decision_function(data.X))


def test_early_stopping_and_callbacks_give_the_scale_of_the_rounds_that_are_kept():
    X, y = SETS["noise"]()
    stopped = AdaBoostClassifier(n_estimators=5, callbacks=[lambda info: info.round == 3])
    short = AdaBoostClassifier(n_estimators=3).fit(X, y)
    assert stopped.fit(X, y).scale_ == short.scale_
    early = AdaBoostClassifier(n_estimators=200, early_stopping=True, random_state=0).fit(X, y)
    assert 0.0 < early.scale_ < 1.0


@pytest.mark.parametrize("wrong", ["yes", 1, 0.5])
def test_calibrate_is_a_flag_or_none(wrong):
    data = random_data(n=20)
    with pytest.raises(ValueError, match="calibrate"):
        AdaBoostClassifier(calibrate=wrong).fit(data.X, data.y)


def test_a_metric_sees_probabilities_at_the_best_scale_of_the_round():
    X, y = SETS["noise"]()
    model = AdaBoostClassifier(n_estimators=20, metric=log_loss)
    watched = model.fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:]).validation_loss_
    plain = AdaBoostClassifier(n_estimators=20)
    expected = plain.fit(X[:400], y[:400], X_val=X[400:], y_val=y[400:]).validation_loss_
    np.testing.assert_allclose(watched, expected, rtol=1e-9)


@pytest.mark.parametrize("n", [3, 50, 400])
def test_a_loss_that_is_watched_again_and_again_is_the_same(n):
    """The search begins at the root, and must not leave it."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        index = rng.integers(0, 2, n) if seed else np.arange(n) % 2
        sizes = rng.choice([1.0, 0.5, 2.0, -0.25], n, p=[0.6, 0.2, 0.1, 0.1]) if seed else 1.0
        F = ((2.0 * index - 1.0) * sizes)[:, None]
        watched = CalibratedLoss("margins", NUMPY).watched(index, None)
        expected = calibrated_log_loss(F, index, None, "margins", NUMPY)
        assert [watched(F) for _ in range(6)] == [pytest.approx(expected, rel=1e-9)] * 6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_the_watched_loss_is_the_loss_at_the_best_scale_whatever_was_watched_before(
    strict, weighted
):
    """Outputs that drift, jump, vanish and turn round; also of another library."""
    generator = np.random.default_rng(0)
    index = generator.integers(0, 2, 300)
    weights = generator.uniform(0.1, 3.0, 300) if weighted else None
    F = (generator.normal(size=300) + 0.6 * (2 * index - 1))[:, None]
    steps = [F, 1.01 * F, 0.99 * F + 0.1, 40.0 * F, 0.0 * F, -F, 1e200 * F, F, 1e-7 * F]
    where, put = NUMPY, lambda a: a
    if strict:
        where, put = locate(array_api_strict.asarray(F)), array_api_strict.asarray
    given = put(index), None if weights is None else put(weights)
    watched = CalibratedLoss("margins", where).watched(*given)
    for outputs in steps:
        expected = calibrated_log_loss(outputs, index, weights, "margins", NUMPY)
        assert watched(put(outputs)) == pytest.approx(expected, rel=1e-9)
