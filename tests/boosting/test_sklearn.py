"""A scikit-learn estimator: its own checks, and the tools that people use it with."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from tests.boosters import plain
from tests.datasets import random_data
from tests.estimators.checks import LIGHT_ROWS, assert_checks_pass, each_setting

CHECKED = [
    AdaBoostClassifier(n_estimators=20),
    AdaBoostClassifier(n_estimators=20, variant="discrete"),
    AdaBoostClassifier(n_estimators=20, variant="gentle"),
    AdaBoostClassifier(n_estimators=20, missing="learn"),
    AdaBoostClassifier(n_estimators=20, missing="error"),
    AdaBoostClassifier(n_estimators=20, max_bins=None, n_jobs=1),
    AdaBoostClassifier(n_estimators=20, variant="logit"),
    BoostingClassifier(n_estimators=20, max_depth=1),
    BoostingClassifier(n_estimators=5, step="line_search", max_depth=1),
    BoostingClassifier(n_estimators=20, step="constant", max_depth=1),
    BoostingClassifier(n_estimators=20, stump="discrete", max_depth=1),
    BoostingClassifier(n_estimators=20, missing="learn", max_depth=1),
    BoostingClassifier(n_estimators=20, max_bins=None, n_jobs=1, max_depth=1),
    BoostingClassifier(
        "exponential", n_estimators=5, stump="discrete", step="line_search", max_depth=1
    ),
    BoostingClassifier("squared", n_estimators=50, max_depth=1),
    BoostingClassifier("truncated_squared", n_estimators=20, learning_rate=0.5, max_depth=1),
    # a hundred rounds: margins grow to 1 slowly
    BoostingClassifier("hinge", n_estimators=100, step="constant", max_depth=1),
    BoostingRegressor(n_estimators=50, max_depth=1),
    BoostingRegressor(n_estimators=20, missing="learn", max_depth=1),
    BoostingRegressor("absolute", n_estimators=8, learning_rate=0.5, max_depth=1),
    BoostingRegressor("huber", n_estimators=10, max_depth=1),
    BoostingRegressor("quantile", n_estimators=8, learning_rate=0.5, max_depth=1),
    BoostingRegressor("poisson", n_estimators=10, step="newton", max_depth=1),
    BoostingClassifier(n_estimators=10, n_bags=2, max_depth=1),
    BoostingClassifier(**plain(n_estimators=5, max_depth=3, n_bags=2)),
    BoostingRegressor(**plain(n_estimators=5, max_depth=3, n_bags=2, interaction_cst="pairwise")),
    BoostingClassifier(n_estimators=20),
    BoostingRegressor(n_estimators=20),
]


@pytest.mark.slow
@each_setting(CHECKED)
def test_the_checks_of_scikit_learn_pass(estimator, first):
    assert_checks_pass(estimator, LIGHT_ROWS, others=first)


def test_default_parameters_are_the_documented_ones():
    assert AdaBoostClassifier().get_params() == {
        "estimator": None, "variant": "real", "multiclass": "auto", "n_estimators": 100,
        "learning_rate": 1.0,
        "max_bins": 255, "missing": "abstain", "calibrate": None,
        "categorical_features": "from_dtype", "categorical_split": "subset",
        "early_stopping": False,
        "validation_fraction": 0.1, "n_iter_no_change": 100, "metric": None,
        "class_weight": None, "device": None,
        "n_jobs": None, "callbacks": None, "warm_start": False,
        "random_state": None,
    }  # fmt: skip


def test_cross_validation_on_real_data_beats_ninety_five_per_cent():
    X, y = load_breast_cancer(return_X_y=True)
    assert cross_val_score(AdaBoostClassifier(), X, y, cv=5).mean() > 0.95


def test_iris_in_a_pipeline_with_string_labels():
    iris = load_iris()
    y = iris.target_names[iris.target]
    model = make_pipeline(StandardScaler(), AdaBoostClassifier(n_estimators=30))
    predicted = cross_val_predict(model, iris.data, y, cv=3)
    assert np.mean(predicted == y) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.long)])
def test_grid_search_with_two_jobs_gives_the_serial_result(backend):
    data = random_data(n=200)
    grid = {"n_estimators": [5, 20], "variant": ["real", "discrete"], "learning_rate": [0.5, 1.0]}
    found = []
    for jobs in (1, 2):
        with joblib.parallel_backend(backend):
            search = GridSearchCV(AdaBoostClassifier(), grid, cv=2, n_jobs=jobs)
            search.fit(data.X, data.y)
        found.append(search)
    assert found[0].best_params_ == found[1].best_params_
    np.testing.assert_array_equal(
        found[0].cv_results_["mean_test_score"], found[1].cv_results_["mean_test_score"]
    )
    assert found[0].best_estimator_.model_ == found[1].best_estimator_.model_


def test_a_grid_of_numpy_values_is_accepted():
    data = random_data(n=100)
    grid = {"early_stopping": np.array([True, False]), "n_estimators": np.array([3, 5])}
    search = GridSearchCV(AdaBoostClassifier(random_state=0), grid, cv=2, error_score="raise")
    assert search.fit(data.X, data.y).best_estimator_.n_estimators_ > 0


@pytest.mark.slow
def test_fits_in_threads_of_joblib_give_the_models_of_fits_one_after_the_other():
    sets = [random_data(seed=seed, n=9000, p=12) for seed in range(4)]

    def fingerprint(data):
        fitted = AdaBoostClassifier(n_estimators=15, n_jobs=2).fit(data.X, data.y)
        return fitted.model_.fingerprint()

    alone = [fingerprint(data) for data in sets]
    together = joblib.Parallel(n_jobs=2, prefer="threads")(
        joblib.delayed(fingerprint)(data) for data in sets
    )
    assert alone == together


def test_a_clone_has_the_parameters_and_no_model():
    data = random_data()
    estimator = AdaBoostClassifier(variant="gentle", n_estimators=7, learning_rate=0.3)
    copy = clone(estimator.fit(data.X, data.y))
    assert copy.get_params() == estimator.get_params()
    assert not hasattr(copy, "model_")


@pytest.mark.parametrize("variant", ["real", "discrete", "gentle"])
def test_a_pickle_predicts_the_same(variant, tmp_path):
    data = random_data(3).with_missing()
    estimator = AdaBoostClassifier(variant=variant, n_estimators=20).fit(data.X, data.y)
    joblib.dump(estimator, tmp_path / "model.joblib")
    for copy in (pickle.loads(pickle.dumps(estimator)), joblib.load(tmp_path / "model.joblib")):
        assert copy.model_.fingerprint() == estimator.model_.fingerprint()
        np.testing.assert_array_equal(copy.predict_proba(data.X), estimator.predict_proba(data.X))
        np.testing.assert_array_equal(copy.classes_, estimator.classes_)


def test_refitting_forgets_the_first_fit():
    data, other = random_data(), random_data(3, p=4, seed=1)
    estimator = AdaBoostClassifier(n_estimators=10, early_stopping=True, random_state=0)
    estimator.fit(data.X, data.y)
    estimator.set_params(early_stopping=False).fit(other.X, other.y)
    fresh = AdaBoostClassifier(n_estimators=10).fit(other.X, other.y)
    assert estimator.model_ == fresh.model_
    assert not hasattr(estimator, "validation_loss_")
    assert estimator.n_features_in_ == 4


def test_fit_does_not_change_its_arguments():
    data = random_data().with_missing().with_weights()
    X, y, weights = data.X.copy(), data.y.copy(), data.weights.copy()
    AdaBoostClassifier(n_estimators=10).fit(X, y, weights).predict_proba(X)
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(weights, data.weights)


@pytest.mark.parametrize("variant", ["real", "discrete", "gentle"])
def test_importances_are_shares_of_the_used_features(variant):
    data = random_data()
    data.X[:, 2] = 0.0
    estimator = AdaBoostClassifier(variant=variant, n_estimators=30).fit(data.X, data.y)
    assert estimator.feature_importances_.shape == (6,)
    assert estimator.feature_importances_.sum() == pytest.approx(1.0)
    assert (estimator.feature_importances_ >= 0).all()
    assert estimator.feature_importances_[2] == 0.0


def test_fitted_attributes_describe_the_rounds():
    data = random_data()
    estimator = AdaBoostClassifier(n_estimators=12, learning_rate=0.5).fit(data.X, data.y)
    assert estimator.n_estimators_ == len(estimator.model_.rounds) == 12
    np.testing.assert_array_equal(estimator.errors_, estimator.model_.rounds.error)
    np.testing.assert_array_equal(estimator.alphas_, 0.5)
    assert estimator.stop_reason_ == "all 12 rounds were run"
    assert estimator.engine_ == "cpu"
    assert estimator.n_features_in_ == 6


def test_score_is_the_weighted_share_of_right_predictions():
    data = random_data().with_weights()
    estimator = AdaBoostClassifier(n_estimators=3).fit(data.X, data.y)
    right = estimator.predict(data.X) == data.y
    assert estimator.score(data.X, data.y) == right.mean()
    expected = (right * data.weights).sum() / data.weights.sum()
    assert estimator.score(data.X, data.y, data.weights) == pytest.approx(expected, rel=1e-12)
