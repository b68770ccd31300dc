"""BoostingClassifier and BoostingRegressor: predictions, stages, arrays, scikit-learn's tools."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.losses import CLASSIFICATION, REGRESSION, CustomLoss, Huber, Logistic, Quantile
from tests.boosters import plain
from tests.datasets import Data, fitted_state, random_data
from tests.places import DEVICE, Place

LABELS = {"integers": np.array([4, 7, 9]), "strings": np.array(["no", "so-so", "yes"])}
CLASSIFIED = list(product(CLASSIFICATION, [2, 3]))
CHOSEN = [0, 1, 2, 2, 7, 12]


def step_for(loss: str) -> str:
    """Newton where there is a second derivative."""
    return "newton" if CLASSIFICATION[loss].has_hessian else "line_search"


def classifier(loss: Any = "logistic", **params: Any) -> BoostingClassifier:
    step = step_for(loss) if isinstance(loss, str) else "newton"
    return BoostingClassifier(loss, **plain({"n_estimators": 12, "step": step, **params}))


def regressor(loss: Any = "squared", **params: Any) -> BoostingRegressor:
    return BoostingRegressor(loss, **plain({"n_estimators": 12, **params}))


def regression_data(n: int = 150, offset: float = 0.0) -> Data:
    """A target that two features explain; all values >= 0, so that every loss takes them."""
    X = random_data(n=n).X
    y = np.abs(2.0 * X[:, 0] + np.sin(3.0 * X[:, 1])) + offset
    return Data(X, y)


# --- predictions -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(("loss", "n_classes"), CLASSIFIED)
def test_predict_is_the_argmax_of_probabilities_that_sum_to_one(loss, n_classes, kind):
    data = random_data(n_classes, n=120).with_missing()
    labels = LABELS[kind][:n_classes]
    estimator = classifier(loss, learning_rate=1.0).fit(data.X, labels[data.y])
    np.testing.assert_array_equal(estimator.classes_, labels)
    for X in (data.X, data.X.astype(np.float32), random_data(n_classes, seed=5).X):
        p, predicted = estimator.predict_proba(X), estimator.predict(X)
        assert p.shape == (len(X), n_classes)
        assert ((p >= 0.0) & (p <= 1.0)).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=8 * np.finfo(p.dtype).eps)
        np.testing.assert_array_equal(predicted, labels[p.argmax(axis=1)])
        assert predicted.dtype == labels.dtype
        F = estimator.decision_function(X)
        expected = (F > 0.0).astype(int) if n_classes == 2 else F.argmax(axis=1)
        np.testing.assert_array_equal(predicted, labels[expected])


@pytest.mark.parametrize(("loss", "n_classes"), CLASSIFIED)
def test_log_probabilities_are_the_logarithms_of_positive_probabilities(loss, n_classes):
    """Also where an output is far beyond 1 and a linear probability would be cut to 0."""
    data = random_data(n_classes, n=120)
    estimator = classifier(loss, learning_rate=1.0, n_estimators=30).fit(data.X, data.y)
    p = estimator.predict_proba(data.X)
    assert (p > 0.0).all()
    np.testing.assert_allclose(estimator.predict_log_proba(data.X), np.log(p), rtol=1e-12)


@pytest.mark.parametrize(("loss", "n_classes"), CLASSIFIED)
def test_stages_end_in_the_prediction_and_can_be_chosen(loss, n_classes):
    """Sums of a gradient model are exact; those of AdaBoost's rescaled weights are not."""
    data = random_data(n_classes, n=90).with_missing()
    estimator = classifier(loss).fit(data.X, data.y)
    exact = {} if loss != "exponential" else {"rtol": 1e-12, "atol": 1e-12}
    compare = np.testing.assert_allclose if exact else np.testing.assert_array_equal
    for method in ("decision_function", "predict_proba", "predict"):
        staged = getattr(estimator, f"staged_{method}")
        every = list(staged(data.X))
        assert len(every) == estimator.n_estimators_ == 12
        compare(every[-1], getattr(estimator, method)(data.X), **exact)
        chosen = list(staged(data.X, rounds=CHOSEN))
        assert len(chosen) == len(CHOSEN)
        for t, stage in zip(CHOSEN[1:], chosen[1:], strict=True):
            compare(stage, every[t - 1], **exact)


@pytest.mark.parametrize("offset", [0.0, 0.1, 1e6])
@pytest.mark.parametrize("loss", REGRESSION)
def test_stages_of_a_regressor_end_in_the_prediction_and_can_be_chosen(loss, offset):
    data = regression_data(offset=offset).with_missing()
    estimator = regressor(loss).fit(data.X, data.y)
    every = list(estimator.staged_predict(data.X))
    np.testing.assert_array_equal(every[-1], estimator.predict(data.X))
    chosen = list(estimator.staged_predict(data.X, rounds=np.array(CHOSEN)))
    for t, stage in zip(CHOSEN[1:], chosen[1:], strict=True):
        np.testing.assert_array_equal(stage, every[t - 1])
    constant = estimator.model_.intercept[0]
    np.testing.assert_array_equal(chosen[0], np.exp(constant) if loss == "poisson" else constant)


@pytest.mark.parametrize(
    ("rounds", "error", "says"),
    [
        ([3, 2], ValueError, "rounds must ascend .* got 2 after 3"),
        ([13], ValueError, "from 0 to 12, the rounds of the model; got 13"),
        ([-1], ValueError, "from 0 to 12, the rounds of the model; got -1"),
        ([1.5], TypeError, "rounds must hold integers; got 1.5"),
        ([True], TypeError, "rounds must hold integers; got True"),
        ("12", TypeError, "rounds must hold integers; got '1'"),
        (5, TypeError, "rounds .*5"),
    ],
    ids=repr,
)
def test_bad_stages_are_named(rounds, error, says):
    data = random_data(n=60)
    fitted = [classifier().fit(data.X, data.y), regressor().fit(data.X, data.X[:, 0])]
    stages = [fitted[0].staged_predict_proba, fitted[0].staged_decision_function]
    for staged in [*stages, fitted[0].staged_predict, fitted[1].staged_predict]:
        with pytest.raises(error, match=says):
            list(staged(data.X, rounds=rounds))


def test_poisson_predicts_the_exponential_of_its_output():
    data = regression_data()
    estimator = regressor("poisson").fit(data.X, data.y)
    F = estimator.model_(data.X)[:, 0]
    np.testing.assert_allclose(estimator.predict(data.X), np.exp(F), rtol=1e-14)
    assert estimator.link_ == "log"
    assert (estimator.predict(1e3 * data.X) > 0.0).all()


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_a_quantile_is_above_its_share_of_the_training_rows(quantile):
    data = regression_data(400)
    y = data.y + np.random.default_rng(0).normal(size=400)
    by_name = regressor("quantile", quantile=quantile, n_estimators=60).fit(data.X, y)
    assert np.mean(y <= by_name.predict(data.X)) == pytest.approx(quantile, abs=0.05)
    by_object = regressor(Quantile(quantile), n_estimators=60).fit(data.X, y)
    assert by_name.model_ == by_object.model_


def test_logit_is_boosting_of_the_logistic_loss_on_half_the_scale():
    """Two classes while no working response is cut (|z| <= 4), and always for several classes."""
    data = random_data(3, n=120)
    logit = AdaBoostClassifier(variant="logit", n_estimators=12).fit(data.X, data.y)
    newton = classifier("logistic", learning_rate=1.0, multiclass="shared").fit(data.X, data.y)
    assert logit.model_ == newton.model_
    two = random_data(n=120)
    logit = AdaBoostClassifier(variant="logit", n_estimators=2, learning_rate=0.1)
    newton = classifier("logistic", n_estimators=2, learning_rate=0.1).fit(two.X, two.y)
    F = logit.fit(two.X, two.y).decision_function(two.X)
    np.testing.assert_allclose(2.0 * F, newton.decision_function(two.X), rtol=1e-6)


# --- arrays in, arrays out -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("loss", "n_classes"), [("logistic", 2), ("logistic", 3), ("hinge", 3)])
def test_a_classifier_answers_where_x_lives_with_the_model_of_numpy(
    place: Place, loss, n_classes, dtype
):
    data = random_data(n_classes, n=60).with_missing()
    X, y = place.put(data.X.astype(dtype)), place.put(data.y)
    estimator = classifier(loss, n_estimators=5).fit(X, y)
    here = classifier(loss, n_estimators=5).fit(data.X.astype(dtype), data.y)
    assert estimator.model_.fingerprint() == here.model_.fingerprint()
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        answer, expected = getattr(estimator, method)(X), getattr(here, method)(data.X)
        place.check(answer, dtype)
        assert answer.shape == expected.shape
        rtol = 1e-5 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(place.host(answer), expected, rtol=rtol, atol=1e-6)
    place.check(estimator.predict(X), "int64")
    for stages in ([2, 5], None):
        place.check(next(estimator.staged_predict_proba(X, rounds=stages)), dtype)
        place.check(next(estimator.staged_decision_function(X, rounds=stages)), dtype)
        place.check(next(estimator.staged_predict(X, rounds=stages)), "int64")
    assert estimator.score(X, y) == here.score(data.X.astype(dtype), data.y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", REGRESSION)
def test_a_regressor_answers_where_x_lives_with_the_model_of_numpy(place: Place, loss, dtype):
    data = regression_data(60).with_missing()
    X, y = place.put(data.X.astype(dtype)), place.put(data.y)
    estimator = regressor(loss, n_estimators=5).fit(X, y)
    here = regressor(loss, n_estimators=5).fit(data.X.astype(dtype), data.y)
    assert estimator.model_.fingerprint() == here.model_.fingerprint()
    answer = estimator.predict(X)
    place.check(answer, dtype)
    np.testing.assert_allclose(place.host(answer), here.predict(data.X), rtol=1e-5)
    for stages in ([2, 5], None):
        place.check(next(estimator.staged_predict(X, rounds=stages)), dtype)
    expected = here.score(data.X.astype(dtype), data.y)
    assert estimator.score(X, y) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool", "float32"])
def test_targets_of_any_real_type_are_read_on_a_device(place: Place, dtype):
    data = regression_data(60)
    y = np.round(data.y).astype(dtype)
    estimator = regressor(n_estimators=4).fit(place.put(data.X), place.put(y))
    expected = regressor(n_estimators=4).fit(data.X, y.astype(np.float64))
    assert estimator.model_ == expected.model_


def test_a_model_trained_on_a_device_predicts_on_numpy():
    data, place = regression_data(60), DEVICE
    there = regressor("huber").fit(place.put(data.X), place.put(data.y))
    here = regressor("huber").fit(data.X, data.y)
    assert there.engine_ == "reference"
    np.testing.assert_array_equal(there.predict(data.X), here.predict(data.X))


def test_string_labels_with_features_on_a_device_come_back_on_the_host():
    data, place = random_data(3, n=60), DEVICE
    y = LABELS["strings"][data.y]
    estimator = classifier(n_estimators=4).fit(place.put(data.X), y)
    predicted = estimator.predict(place.put(data.X))
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_array_equal(
        predicted, classifier(n_estimators=4).fit(data.X, y).predict(data.X)
    )


def half_squared(y, F):
    return 0.5 * (F - y) * (F - y)


def residual(y, F):
    return F - y


OWN = CustomLoss(half_squared, residual, name="own", convex=True, curvature=1.0)


def test_a_loss_of_plain_functions_runs_on_every_namespace_and_device(place: Place):
    data = regression_data(60)
    params = {"n_estimators": 6, "step": "constant"}
    there = BoostingRegressor(OWN, **plain(params)).fit(place.put(data.X), place.put(data.y))
    here = BoostingRegressor(OWN, **plain(params)).fit(data.X, data.y)
    assert there.model_ == here.model_
    squared = BoostingRegressor(n_estimators=6, max_depth=1).fit(data.X, data.y)
    np.testing.assert_allclose(here.predict(data.X), squared.predict(data.X), rtol=1e-6)


@pytest.mark.interop
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("loss", "n_classes"), CLASSIFIED)
def test_a_classifier_on_another_library_is_that_of_numpy(library, loss, n_classes, dtype):
    data = random_data(n_classes, n=80).with_missing().with_weights()
    X, y = library.put(data.X.astype(dtype)), library.put(data.y)
    found = classifier(loss).fit(X, y, library.put(data.weights))
    here = classifier(loss).fit(data.X.astype(dtype), data.y, data.weights)
    assert found.model_.fingerprint() == here.model_.fingerprint()
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        library.check(getattr(found, method)(X), dtype)
    library.check(found.predict(X), "int64")
    library.check(next(found.staged_predict_proba(X, rounds=[3])), dtype)
    np.testing.assert_array_equal(library.host(found.predict(X)), here.predict(data.X))


@pytest.mark.interop
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", [*REGRESSION, OWN], ids=lambda loss: getattr(loss, "name", loss))
def test_a_regressor_on_another_library_is_that_of_numpy(library, loss, dtype):
    data = regression_data(80).with_missing()
    X, y = library.put(data.X.astype(dtype)), library.put(data.y)
    found = regressor(loss).fit(X, y)
    here = regressor(loss).fit(data.X.astype(dtype), data.y)
    assert found.model_.fingerprint() == here.model_.fingerprint()
    library.check(found.predict(X), dtype)
    library.check(next(found.staged_predict(X, rounds=[3])), dtype)
    assert found.score(X, y) == pytest.approx(here.score(data.X, data.y), rel=1e-5)


# --- scikit-learn's tools --------------------------------------------------------------------

GRADIENT = {
    "n_estimators": None, "learning_rate": None, "max_leaf_nodes": None,
    "min_samples_leaf": None, "min_hessian": None, "l2_regularization": None, "subsample": None,
    "n_bags": 1, "max_features": "auto", "monotonic_cst": None, "interaction_cst": None,
    "max_bins": 255, "categorical_features": "from_dtype", "categorical_split": "subset",
    "missing": "abstain", "early_stopping": "auto",
    "validation_fraction": 0.1, "n_iter_no_change": 20, "metric": None,
    "device": None, "n_jobs": None, "callbacks": None, "warm_start": False,
    "random_state": 0, "estimator": None, "init": "constant", "candidates": 1,
}  # fmt: skip


def test_default_parameters_are_the_documented_ones():
    own = {"loss": "logistic", "stump": "real", "step": None, "class_weight": None}
    own |= {"max_depth": 4, "multiclass": "auto"}
    assert BoostingClassifier().get_params() == {**GRADIENT, **own}
    own = {"loss": "squared", "quantile": None, "step": None, "max_depth": 6}
    assert BoostingRegressor().get_params() == {**GRADIENT, **own}


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_score_is_scikit_learns_r2(loss, weighted):
    data = regression_data().with_weights()
    weights = data.weights if weighted else None
    estimator = regressor(loss).fit(data.X, data.y)
    expected = r2_score(data.y, estimator.predict(data.X), sample_weight=weights)
    assert estimator.score(data.X, data.y, weights) == pytest.approx(expected, rel=1e-12)


def test_score_of_a_constant_target_is_scikit_learns_r2():
    data = regression_data()
    estimator = regressor().fit(data.X, data.y)
    for y in (np.zeros(150), estimator.predict(data.X[:1]).repeat(150)):
        X = data.X if y[0] == 0.0 else data.X[:1].repeat(150, axis=0)
        assert estimator.score(X, y) == r2_score(y, estimator.predict(X))


@pytest.mark.parametrize("loss", [Huber(0.5), Quantile(0.8), OWN], ids=lambda loss: loss.name)
def test_a_clone_and_a_pickle_keep_the_loss_object(loss):
    data = regression_data()
    estimator = regressor(loss, step="constant").fit(data.X, data.y)
    copy = clone(estimator)
    assert copy.get_params() == estimator.get_params()
    assert not fitted_state(copy)
    assert copy.fit(data.X, data.y).model_ == estimator.model_
    again = pickle.loads(pickle.dumps(estimator))
    assert again.loss == loss
    np.testing.assert_array_equal(again.predict(data.X), estimator.predict(data.X))
    np.testing.assert_array_equal(again.history_.training, estimator.history_.training)


def test_grid_search_over_names_and_loss_objects():
    data = regression_data(90)
    grid = {"loss": ["squared", "huber", Huber(2.0), Quantile(0.6)], "n_estimators": [3, 12]}
    search = GridSearchCV(BoostingRegressor(max_depth=1), grid, cv=2, error_score="raise")
    search.fit(data.X, data.y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_["n_estimators"] == 12
    two = random_data(n=90)
    grid = {"loss": ["logistic", Logistic(), "squared"]}
    search = GridSearchCV(
        BoostingClassifier(n_estimators=5, max_depth=1), grid, cv=2, error_score="raise"
    )
    scores = search.fit(two.X, two.y).cv_results_["mean_test_score"]
    assert scores[0] == scores[1]


def test_pipelines_and_cross_validation_on_real_data():
    X, y = load_diabetes(return_X_y=True)
    model = make_pipeline(StandardScaler(), BoostingRegressor(max_depth=1))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.4
    iris = load_iris()
    model = make_pipeline(
        StandardScaler(), BoostingClassifier(n_estimators=30, learning_rate=0.3, max_depth=1)
    )
    names = iris.target_names[iris.target]
    assert cross_val_score(model, iris.data, names, cv=3).mean() > 0.9


def test_parameters_can_be_set_and_a_second_fit_forgets_the_first():
    data, other = regression_data(), regression_data(60)
    estimator = regressor(early_stopping=True, random_state=0).fit(data.X, data.y)
    estimator.set_params(loss="huber", early_stopping=False).fit(other.X[:, :4], other.y)
    assert estimator.model_ == regressor("huber").fit(other.X[:, :4], other.y).model_
    assert estimator.n_features_in_ == 4
    assert not hasattr(estimator, "validation_loss_")
    three = random_data(3, n=60)
    again = classifier().fit(random_data().X, random_data().y).fit(three.X, three.y)
    np.testing.assert_array_equal(again.classes_, [0, 1, 2])
    assert again.model_ == classifier().fit(three.X, three.y).model_


def test_a_parameter_changed_after_fit_does_not_change_predictions():
    data = random_data(n=60)
    estimator = classifier("squared").fit(data.X, data.y)
    before = estimator.predict_proba(data.X)
    estimator.set_params(loss="logistic", stump="discrete", learning_rate=0.5)
    np.testing.assert_array_equal(estimator.predict_proba(data.X), before)


def test_fit_does_not_change_its_arguments():
    data = regression_data().with_missing().with_weights()
    X, y, weights = data.X.copy(), data.y.copy(), data.weights.copy()
    for loss in REGRESSION:
        regressor(loss).fit(X, y, weights).predict(X)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(weights, data.weights)


NAMES = [f"column {f}" for f in range(6)]


def goes(estimator: Any, X: np.ndarray, feature: int, sign: int) -> bool:
    """Whether the output never falls (sign -1: rises) where one feature alone grows."""
    grid = np.repeat(X[:1], 200, axis=0)
    grid[:, feature] = np.linspace(X[:, feature].min(), X[:, feature].max(), 200)
    return bool((sign * np.diff(estimator.model_(grid)[:, 0]) >= 0.0).all())


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_a_dict_of_column_names_is_the_array_of_their_signs(loss):
    data = regression_data()
    frame = pd.DataFrame(data.X, columns=NAMES)
    named = regressor(loss, n_estimators=40, monotonic_cst={"column 1": 1, "column 0": -1})
    listed = regressor(loss, n_estimators=40, monotonic_cst=[-1, 1, 0, 0, 0, 0])
    named.fit(frame, data.y)
    assert named.model_ == listed.fit(data.X, data.y).model_
    assert goes(named, data.X, 0, -1)
    assert goes(named, data.X, 1, +1)
    np.testing.assert_array_equal(named.feature_names_in_, NAMES)
    np.testing.assert_array_equal(named.predict(frame), listed.predict(data.X))
    free = regressor(loss, n_estimators=40).fit(data.X, data.y)
    assert not goes(free, data.X, 0, -1)


def test_a_monotone_classifier_is_monotone_in_its_probability():
    data = random_data()
    free, bound = classifier(n_estimators=60), classifier(n_estimators=60)
    bound.set_params(monotonic_cst=[1, 1, 0, 0, 0, 0]).fit(data.X, data.y)
    free.fit(data.X, data.y)
    for feature in (0, 1):
        assert goes(bound, data.X, feature, +1)
    assert not all(goes(free, data.X, feature, +1) for feature in (0, 1))


@pytest.mark.parametrize("loss", REGRESSION)
def test_rows_of_weight_zero_are_as_if_absent_for_a_regressor(loss):
    data = regression_data()
    kept = np.arange(150) % 3 > 0
    y = np.where(kept, data.y, 1e6)
    weighted = regressor(loss).fit(data.X, y, kept.astype(float))
    assert weighted.model_ == regressor(loss).fit(data.X[kept], y[kept]).model_


def test_a_target_that_the_loss_refuses_may_have_weight_zero():
    """As if absent: also where the value is outside of the domain."""
    data = regression_data()
    kept = np.arange(150) != 4
    y = np.where(kept, data.y, -1.0)
    weighted = regressor("poisson").fit(data.X, y, kept.astype(float))
    assert weighted.model_ == regressor("poisson").fit(data.X[kept], y[kept]).model_


@pytest.mark.parametrize("loss", CLASSIFICATION)
def test_rows_of_weight_zero_are_as_if_absent_for_a_classifier(loss):
    data = random_data(3, n=120)
    kept = (np.arange(120) % 3 > 0) & (data.y < 2)
    weighted = classifier(loss).fit(data.X, data.y, kept.astype(float))
    np.testing.assert_array_equal(weighted.classes_, [0, 1])
    alone = classifier(loss).fit(data.X[kept], data.y[kept])
    F, expected = weighted.decision_function(data.X), alone.decision_function(data.X)
    np.testing.assert_allclose(F, expected, rtol=1e-6)


@pytest.mark.parametrize("loss", [*CLASSIFICATION, *REGRESSION])
def test_importances_are_shares_of_the_features_used(loss):
    """`squared` is a loss of both tasks."""
    data = regression_data()
    data.X[:, 2] = 0.0
    fitted = []
    if loss in CLASSIFICATION:
        fitted.append(classifier(loss).fit(data.X, data.y > 2.0))
    if loss in REGRESSION:
        fitted.append(regressor(loss).fit(data.X, data.y))
    for estimator in fitted:
        assert estimator.feature_importances_.shape == (6,)
        assert estimator.feature_importances_.sum() == pytest.approx(1.0, rel=1e-12)
        assert (estimator.feature_importances_ >= 0.0).all()
        assert estimator.feature_importances_[2] == 0.0
        assert estimator.feature_importances_.argmax() == 0


@pytest.mark.parametrize("scale", [2.0**-100, 2.0**-30, 2.0**30, 2.0**100])
@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile"])
def test_a_target_in_other_units_gives_the_same_rounds_and_scaled_predictions(loss, scale):
    data = regression_data()
    plain = regressor(loss).fit(data.X, data.y)
    units = regressor(loss).fit(data.X, scale * data.y)
    np.testing.assert_array_equal(units.model_.rounds.feature, plain.model_.rounds.feature)
    expected = plain.predict(data.X)
    np.testing.assert_allclose(units.predict(data.X) / scale, expected, rtol=1e-3)
    assert units.feature_importances_.sum() == pytest.approx(1.0)


def test_fitted_attributes_describe_the_rounds():
    data = regression_data()
    estimator = regressor("huber", learning_rate=0.5, step="constant").fit(data.X, data.y)
    assert estimator.n_estimators_ == len(estimator.model_.rounds) == 12
    np.testing.assert_array_equal(estimator.errors_, estimator.model_.rounds.error)
    np.testing.assert_array_equal(estimator.alphas_, 0.5)
    assert estimator.stop_reason_ == "all 12 rounds were run"
    assert (estimator.engine_, estimator.link_) == ("cpu", "identity")


@pytest.mark.parametrize(
    "estimator", [BoostingClassifier(max_depth=1), BoostingRegressor(max_depth=1)], ids=str
)
def test_a_target_that_no_stump_explains_gives_the_best_constant(estimator):
    y = np.repeat([0, 1], [10, 30])
    estimator = clone(estimator).fit(np.zeros((40, 2)), y)
    assert estimator.n_estimators_ == 0
    assert "no stump" in estimator.stop_reason_
    constant = (
        estimator.predict_proba(np.zeros((1, 2)))[0, 1]
        if isinstance(estimator, BoostingClassifier)
        else estimator.predict(np.zeros((1, 2)))[0]
    )
    assert constant == pytest.approx(0.75)
    assert estimator.feature_importances_.tolist() == [0.0, 0.0]
