"""warm_start: k rounds and then 2k are the model and the history of 2k rounds, bit for bit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier as TheirTree

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.boosting.rebuild import Rebuild
from tests.boosters import plain
from tests.boosting.replaying import FITS, FOREIGN, problem
from tests.places import Place
from tests.products import every_pair

X, Y = problem(2)
NUMBERS = problem(0)[1]


def continued(estimator: Any, *data: Any, n: int = 14, **more: Any) -> tuple[Any, Any]:
    """Fitted at once, and in two parts."""
    whole = clone(estimator).set_params(n_estimators=n).fit(*data, **more)
    parts = clone(estimator).set_params(n_estimators=n // 2, warm_start=True).fit(*data, **more)
    assert parts.n_estimators_ <= n // 2
    return whole, parts.set_params(n_estimators=n).fit(*data, **more)


def assert_same(whole: Any, parts: Any) -> None:
    assert parts.model_.fingerprint() == whole.model_.fingerprint()
    for name in ("training", "validation", "weights"):
        found, expected = (getattr(e.history_, name) for e in (parts, whole))
        np.testing.assert_array_equal(found, expected)
    assert parts.history_.evals.keys() == whole.history_.evals.keys()
    for name in ("alphas_", "errors_", "n_estimators_", "stop_reason_"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    np.testing.assert_array_equal(parts.feature_importances_, whole.feature_importances_)


@pytest.mark.slow
@every_pair("name, engine, weighted", FITS, ["cpu", "reference"], [False, True])
def test_two_fits_are_one_run(name, engine, weighted):
    estimator, n_classes = FITS[name]
    data = problem(n_classes)
    weights = np.random.default_rng(1).integers(0, 4, len(data[1])).astype(float)
    with use_engine(engine):
        whole, parts = continued(estimator, *data, *([weights] if weighted else []))
    assert_same(whole, parts)


@pytest.mark.slow
@pytest.mark.parametrize("name", FITS)
def test_validation_rows_are_watched_from_the_first_round(name):
    estimator, n_classes = FITS[name]
    data = problem(n_classes)
    val = {"X_val": data[0][:50], "y_val": data[1][:50]}
    whole, parts = continued(estimator, *data, **val)
    assert len(parts.history_.validation) == len(parts.history_.training) == 14
    assert_same(whole, parts)


@pytest.mark.parametrize("name", FOREIGN)
def test_learners_of_others_are_continued(name):
    estimator, n_classes = FOREIGN[name]
    X, y = problem(n_classes)
    X = np.nan_to_num(X)
    whole, parts = continued(estimator, X, y, n=8)
    np.testing.assert_array_equal(parts.alphas_, whole.alphas_)
    np.testing.assert_array_equal(parts.decision_function(X), whole.decision_function(X))


def test_runs_on_a_device_are_continued(place: Place):
    whole, parts = continued(
        BoostingClassifier(**plain(max_depth=2)),
        place.put(X),
        place.put(Y),
    )
    assert_same(whole, parts)


def test_categories_are_continued():
    frame = pd.DataFrame({"x": X[:, 0], "c": pd.Categorical(np.array(list("abcd") * 40))})
    whole, parts = continued(BoostingClassifier(**plain(max_depth=2)), frame, Y)
    assert_same(whole, parts)


@pytest.mark.parametrize("random_state", [None, 3, "generator"])
def test_draws_go_on_whatever_they_are_drawn_from(random_state):
    """Rows, features and held-out rows of the second fit are those of the first."""

    def fresh() -> Any:
        return np.random.RandomState(5) if random_state == "generator" else random_state

    estimator = BoostingClassifier(
        subsample=0.5, max_features=2, early_stopping=True, n_iter_no_change=99, warm_start=True,
        n_estimators=7, random_state=fresh(),max_depth=1
    )  # fmt: skip
    given = estimator.random_state
    parts = estimator.fit(X, Y)
    first = parts.history_.validation
    parts.set_params(n_estimators=14).fit(X, Y)
    assert parts.random_state is given
    np.testing.assert_array_equal(parts.history_.validation[:7], first)
    if random_state is not None:
        whole = clone(estimator).set_params(random_state=fresh(), warm_start=False).fit(X, Y)
        assert parts.model_ == whole.model_


@pytest.mark.parametrize("early", [True, False])
def test_early_stopping_that_has_ended_a_fit_ends_it_again(early):
    """More patience goes on; without it all rounds are run and kept."""
    rng = np.random.default_rng(0)
    noise = rng.integers(2, size=len(Y))
    val = {"X_val": rng.normal(size=X.shape), "y_val": noise}
    params = {"learning_rate": 1.0, "early_stopping": early, "n_iter_no_change": 3}
    whole, parts = continued(BoostingClassifier(**plain(params)), X, noise, n=60, **val)
    assert_same(whole, parts)
    assert (parts.n_estimators_ < 30) == early
    patient = clone(whole).set_params(n_iter_no_change=9).fit(X, noise, **val)
    parts.set_params(n_iter_no_change=9).fit(X, noise, **val)
    assert_same(patient, parts)


def test_callbacks_hear_of_new_rounds_only():
    seen: list[int] = []
    estimator = BoostingRegressor(
        n_estimators=3,
        warm_start=True,
        callbacks=[lambda info: seen.append(info.round)],
        max_depth=1,
    )
    estimator.fit(X, NUMBERS).set_params(n_estimators=6).fit(X, NUMBERS)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_a_fit_that_a_callback_ended_is_continued():
    estimator = AdaBoostClassifier(warm_start=True, callbacks=[lambda info: info.round == 4])
    assert estimator.fit(X, Y).n_estimators_ == 4
    estimator.set_params(callbacks=None, n_estimators=10).fit(X, Y)
    assert estimator.model_ == AdaBoostClassifier(n_estimators=10).fit(X, Y).model_


@pytest.mark.parametrize("name", FITS)
def test_a_pickled_estimator_is_continued(name):
    estimator, n_classes = FITS[name]
    data = problem(n_classes)
    half = clone(estimator).set_params(n_estimators=4, warm_start=True).fit(*data)
    copy = pickle.loads(pickle.dumps(half)).set_params(n_estimators=8).fit(*data)
    assert copy.model_ == clone(estimator).set_params(n_estimators=8).fit(*data).model_


def test_known_rounds_are_not_searched_again(monkeypatch):
    searched = []
    best = Rebuild.best
    monkeypatch.setattr(Rebuild, "best", lambda self: searched.append(0) or best(self))
    estimator = BoostingClassifier(n_estimators=7, warm_start=True, max_depth=1).fit(X, Y)
    assert len(searched) == 7
    estimator.set_params(n_estimators=10).fit(X, Y)
    assert len(searched) == 10


def test_only_a_warm_start_keeps_rounds():
    """After a plain fit the next begins anew, with the same model."""
    plain = BoostingClassifier(n_estimators=30, max_depth=1).fit(X, Y)
    kept = BoostingClassifier(n_estimators=30, warm_start=True, max_depth=1).fit(X, Y)
    assert len(pickle.dumps(plain)) < len(pickle.dumps(kept))
    plain.set_params(warm_start=True, n_estimators=40).fit(X, Y)
    kept.set_params(n_estimators=40).fit(X, Y)
    assert plain.model_ == kept.model_
    kept.set_params(warm_start=False, n_estimators=5).fit(X, Y)
    assert kept.n_estimators_ == 5
    assert kept._run is None


def test_as_many_rounds_as_before_are_the_same_model():
    estimator = BoostingClassifier(n_estimators=6, warm_start=True, max_depth=1).fit(X, Y)
    before = estimator.model_
    assert estimator.fit(X, Y).model_ == before


def test_metrics_may_change():
    estimator = BoostingClassifier(n_estimators=4, warm_start=True, max_depth=1)
    estimator.fit(X, Y, X_val=X, y_val=Y)
    estimator.set_params(n_estimators=8, metric="roc_auc", n_jobs=1).fit(X, Y, X_val=X, y_val=Y)
    whole = BoostingClassifier(n_estimators=8, metric="roc_auc", max_depth=1).fit(
        X, Y, X_val=X, y_val=Y
    )
    np.testing.assert_array_equal(estimator.history_.validation, whole.history_.validation)


# --- what is refused, and leaves the estimator as it was -------------------------------------


def changed_weights() -> np.ndarray:
    weights = np.ones(len(Y))
    weights[3] = 2.0
    return weights


CHANGES: dict[str, tuple[dict[str, Any], tuple, str]] = {
    "fewer rounds": ({"n_estimators": 5}, (X, Y), "n_estimators must be at least 6, the rounds"),
    "another rate": ({"learning_rate": 0.2}, (X, Y), "learning_rate was None and is 0.2"),
    "another depth and seed": (
        {"max_depth": 2, "random_state": 4}, (X, Y), "max_depth was 1 and is 2, random_state",
    ),
    "another loss": ({"loss": "exponential"}, (X, Y), "loss was 'logistic' and is 'exponential'"),
    "fewer features": ({}, (X[:, :3], Y), "X had 5 features then, and has 3 now"),
    "fewer rows": ({}, (X[:99], Y[:99]), r"the number of rows \(it was 160 and is 99\)"),
    "another X": ({}, (X + 1.0, Y), r"what has changed: X \(in 5 features\)"),
    "another y": ({}, (X, np.roll(Y, 1)), "what has changed: y"),
    "other classes": ({}, (X, Y + 3), r"classes of y were \[0, 1\] then, and are \[3, 4\] now"),
    "weights": ({}, (X, Y, changed_weights()), "what has changed: sample_weight"),
    "held out rows": ({"early_stopping": True}, (X, Y), "the rows that are held out"),
    "no flag": ({"warm_start": 1}, (X, Y), "warm_start must be True or False; got 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_refused_in_words(name):
    params, data, message = CHANGES[name]
    estimator = BoostingClassifier(
        n_estimators=6, warm_start=True, random_state=0, max_depth=1
    ).fit(X, Y)
    before = estimator.model_
    estimator.set_params(**({"n_estimators": 9} | params))
    with pytest.raises(ValueError, match=message):
        estimator.fit(*data)
    assert estimator.model_ is before
    estimator.set_params(warm_start=False).fit(*data)


def test_changes_of_a_learner_are_refused():
    X = np.nan_to_num(problem(2)[0])
    estimator = AdaBoostClassifier(TheirTree(max_depth=1), n_estimators=3, warm_start=True)
    estimator.fit(X, Y)
    estimator.set_params(n_estimators=5, estimator__max_depth=2)
    with pytest.raises(ValueError, match="estimator__max_depth was 1 and is 2"):
        estimator.fit(X, Y)
    estimator.set_params(estimator=TheirTree(max_depth=1)).fit(X, Y)
    assert estimator.n_estimators_ == 5
