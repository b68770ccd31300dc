"""init_score: outputs that rows begin with; the model holds what is learnt besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier as TheirTree

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.losses import regression_loss
from tests.boosters import plain
from tests.boosting.replaying import problem
from tests.places import Place

X, Y = problem(2)
NUMBERS = problem(0)[1]
SCORE = np.random.default_rng(0).normal(size=len(Y))

CONTINUED = {
    "logistic stumps": (BoostingClassifier(max_depth=1), 2),
    "logistic trees": (BoostingClassifier(**plain(max_depth=3)), 2),
    "multinomial stumps": (BoostingClassifier(max_depth=1), 3),
    "multinomial trees": (BoostingClassifier(**plain(max_depth=2)), 3),
    "exponential": (BoostingClassifier("exponential", max_depth=1), 2),
    "exponential, K classes": (BoostingClassifier("exponential", max_depth=1), 3),
    "squared margin": (BoostingClassifier("squared", max_depth=1), 3),
    "real": (AdaBoostClassifier(), 2),
    "gentle": (AdaBoostClassifier(variant="gentle"), 2),
    "discrete": (AdaBoostClassifier(variant="discrete"), 2),
    "logit": (AdaBoostClassifier(variant="logit"), 2),
    "logit, K classes": (AdaBoostClassifier(variant="logit"), 3),
    "gram": (BoostingRegressor(max_depth=1), 0),
    "squared trees": (BoostingRegressor(**plain(max_depth=3)), 0),
    "newton": (BoostingRegressor("poisson", step="newton", max_depth=1), 0),
    "line search": (BoostingRegressor("huber", max_depth=1), 0),
}


def outputs(estimator: Any, X: np.ndarray) -> np.ndarray:
    return estimator.model_(X)


def data_for(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = problem(n_classes, 300)
    return X, np.exp(0.3 * y) if n_classes == 0 else y


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", CONTINUED)
def test_a_fit_goes_on_from_a_model(name, weighted):
    """k rounds and k more on top of their outputs are 2k rounds, to rounding."""
    estimator, n_classes = CONTINUED[name]
    X, y = data_for(n_classes)
    w = np.random.default_rng(1).gamma(2.0, size=len(y)) if weighted else None
    params = estimator.get_params()
    whole = type(estimator)(**params | {"n_estimators": 16}).fit(X, y, w)
    first = type(estimator)(**params | {"n_estimators": 8}).fit(X, y, w)
    score = outputs(first, X)
    score = score[:, 0] if score.shape[1] == 1 else score
    second = type(estimator)(**params | {"n_estimators": 8}).fit(X, y, w, init_score=score)
    assert second.n_estimators_ == 8
    np.testing.assert_array_equal(second.model_.intercept, np.zeros(len(second.model_.intercept)))
    found = outputs(first, X) + outputs(second, X)
    np.testing.assert_allclose(found, outputs(whole, X), rtol=1e-4, atol=2e-5)


def test_the_squared_loss_fits_the_residuals():
    """They have the mean 0, so that the intercept of the other fit is 0 as well."""
    score = SCORE - np.mean(SCORE - NUMBERS)
    for params in ({}, {"max_depth": 3}):
        offset = BoostingRegressor(**plain(params, n_estimators=20)).fit(
            X, NUMBERS, init_score=score
        )
        residual = BoostingRegressor(**plain(params, n_estimators=20)).fit(X, NUMBERS - score)
        np.testing.assert_allclose(offset.predict(X), residual.predict(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile", "poisson"])
def test_histories_are_losses_of_score_and_model(loss):
    y, y_val = np.exp(0.2 * NUMBERS), np.exp(0.2 * NUMBERS[:40])
    score = 0.1 * SCORE
    estimator = BoostingRegressor(loss, n_estimators=8, metric=["loss", "mae"], max_depth=1)
    estimator.fit(
        X, y, init_score=score, X_val=X[:40], y_val=y_val, init_score_val=score[:40]
    )  # fmt: skip
    value = regression_loss(loss).value
    stages = [F[:, 0] + score for F in estimator.model_.staged(X)]
    expected = [value(y, F).mean() for F in stages]
    np.testing.assert_allclose(estimator.history_.training, expected, rtol=1e-8)
    expected = [value(y_val, F[:40]).mean() for F in stages]
    np.testing.assert_allclose(estimator.history_.evals["validation"]["loss"], expected, rtol=1e-8)
    mean = [np.exp(F) if loss == "poisson" else F for F in stages]
    expected = [np.abs(y_val - p[:40]).mean() for p in mean]
    np.testing.assert_allclose(estimator.history_.evals["validation"]["mae"], expected, rtol=1e-8)


@pytest.mark.parametrize("variant", ["real", "gentle", "discrete"])
def test_adaboost_begins_with_the_weights_of_the_score(variant):
    """w exp(-y F): the same stumps as with these sample weights; its loss is the mean of them."""
    estimator = AdaBoostClassifier(variant=variant, n_estimators=10).fit(X, Y, init_score=SCORE)
    sign = 2.0 * Y - 1.0
    weighted = AdaBoostClassifier(variant=variant, n_estimators=10)
    weighted.fit(X, Y, np.exp(-sign * SCORE))
    if variant != "real":  # whose smoothing is by the lightest row
        np.testing.assert_allclose(
            estimator.decision_function(X), weighted.decision_function(X), rtol=1e-6
        )
    stages = estimator.staged_decision_function(X)
    expected = [np.mean(np.exp(-sign * (F + SCORE))) for F in stages]
    np.testing.assert_allclose(estimator.history_.training, expected, rtol=1e-5)


def test_rows_that_are_held_out_keep_their_score():
    """A score that is right about every row: nothing is left to learn, and no loss to see."""
    score = 30.0 * (2.0 * Y - 1.0)
    estimator = BoostingClassifier(n_estimators=3, early_stopping=True, random_state=0, max_depth=1)
    assert estimator.fit(X, Y, init_score=score).history_.validation.max() < 1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_give_the_same_model_everywhere(place: Place, n_classes):
    X, y = problem(n_classes)
    score = np.random.default_rng(2).normal(size=(len(y), n_classes if n_classes > 2 else 1))
    makers = [lambda: BoostingClassifier(**plain(n_estimators=5, max_depth=2))]
    if n_classes == 2:
        makers += [lambda: AdaBoostClassifier(n_estimators=5)]
    else:
        makers += [lambda: BoostingClassifier("squared", n_estimators=5, max_depth=1)]
    for make in makers:
        here = make().fit(X, y, init_score=score)
        there = make().fit(place.put(X), place.put(y), init_score=place.put(score))
        assert here.model_.fingerprint() == there.model_.fingerprint()
        with use_engine("reference"):
            assert make().fit(X, y, init_score=score).model_ == here.model_


def test_rows_of_weight_zero_are_as_if_absent():
    weights = np.random.default_rng(4).integers(0, 2, len(Y)).astype(float)
    some = weights > 0
    for make in (BoostingClassifier, AdaBoostClassifier):
        every = make(n_estimators=5).fit(X, Y, weights, init_score=SCORE)
        alone = make(n_estimators=5).fit(X[some], Y[some], init_score=SCORE[some])
        assert every.model_.fingerprint() == alone.model_.fingerprint()


def test_a_run_with_a_score_is_continued():
    whole = BoostingClassifier(n_estimators=8, max_depth=1).fit(X, Y, init_score=SCORE)
    parts = BoostingClassifier(n_estimators=4, warm_start=True, max_depth=1).fit(
        X, Y, init_score=SCORE
    )
    parts.set_params(n_estimators=8)
    with pytest.raises(ValueError, match="what has changed: init_score"):
        parts.fit(X, Y)
    assert parts.fit(X, Y, init_score=SCORE).model_ == whole.model_


THREE = problem(3)[1]
VAL = {"X_val": X, "y_val": Y}
BAD: dict[str, tuple[Any, tuple, dict[str, Any], str]] = {
    "SAMME": (AdaBoostClassifier(variant="discrete"), (X, THREE),
              {"init_score": np.zeros((160, 3))}, "init_score with 3 classes is for losses"),
    "MH": (AdaBoostClassifier(), (X, THREE),
           {"init_score": np.zeros((160, 3))}, "variant='logit'"),
    "a learner": (AdaBoostClassifier(TheirTree()), (np.nan_to_num(X), Y),
                  {"init_score": SCORE}, "init_score is for boosting of stumps and trees"),
    "too short": (BoostingClassifier(max_depth=1), (X, Y), {"init_score": SCORE[:9]},
                  "X has 160 rows, init_score has 9"),
    "no column a class": (BoostingClassifier(max_depth=1), (X, THREE), {"init_score": SCORE},
                          r"must have shape \(160, 3\): a value a row and class; got .*\(160,\)"),
    "columns": (BoostingClassifier(max_depth=1), (X, Y), {"init_score": np.zeros((160, 2))},
                r"must have shape \(160,\) or \(160, 1\): a value a row; got shape \(160, 2\)"),
    "NaN": (BoostingRegressor(max_depth=1), (X, NUMBERS), {"init_score": SCORE * np.nan},
            "init_score contains NaN"),
    "text": (BoostingRegressor(max_depth=1), (X, NUMBERS), {"init_score": ["a"] * 160},
             "init_score must hold numbers"),
    "none for validation": (BoostingClassifier(max_depth=1), (X, Y), {"init_score": SCORE, **VAL},
                            "init_score_val is None, but training has an init_score"),
    "none for training": (BoostingClassifier(max_depth=1), (X, Y), {"init_score_val": SCORE, **VAL},
                          "init_score_val is given, but training has none"),
    "in a set": (BoostingClassifier(max_depth=1), (X, Y),
                 {"init_score": SCORE, "eval_set": [(X, Y, None, SCORE[:3])]},
                 r"eval_set\[0\]\[0\] has 160 rows, eval_set\[0\]\[3\] has 3"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_wrong_scores_are_named(name):
    estimator, data, given, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        estimator.fit(*data, **given)
    assert not hasattr(estimator, "model_")


def test_eval_sets_have_scores_of_their_own():
    estimator = BoostingClassifier(n_estimators=4, metric="log_loss", max_depth=1)
    estimator.fit(X, Y, init_score=SCORE, eval_set=[(X, Y, None, SCORE), (X, Y, None, 0 * SCORE)])
    evals = estimator.history_.evals
    F = [F + shift for shift in (SCORE, 0.0) for F in estimator.staged_decision_function(X)]
    loss = [np.mean(np.log1p(np.exp(-(2 * Y - 1) * f))) for f in F]
    np.testing.assert_allclose(evals["validation_0"]["log_loss"], loss[:4], rtol=1e-9)
    np.testing.assert_allclose(evals["validation_1"]["log_loss"], loss[4:], rtol=1e-9)
