"""Bagging as a scikit-learn estimator: its own checks, its tools, and its bagging beside ours."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from sklearn import ensemble as peer
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensemble_gpu import AdaBoostClassifier, BoostingRegressor
from ensemble_gpu.bagging.bagging import BaggingClassifier, BaggingRegressor
from tests.estimators.checks import LIGHT_ROWS, assert_checks_pass, each_setting

CHECKED = [
    BaggingClassifier(DecisionTreeClassifier(), 5, bootstrap=False, max_samples=0.7),
    BaggingClassifier(AdaBoostClassifier(n_estimators=5), 3),
    BaggingClassifier(AdaBoostClassifier(n_estimators=10, calibrate=False), 5, voting="hard"),
    BaggingClassifier(DecisionTreeClassifier(), 5, bootstrap_features=True, n_jobs=2),
    BaggingClassifier(KNeighborsClassifier(2), 5),
    BaggingClassifier(make_pipeline(StandardScaler(), GaussianNB()), 5),
    BaggingRegressor(n_estimators=5),
    BaggingRegressor(BoostingRegressor(n_estimators=30, max_depth=1), 5),
    BaggingRegressor(KNeighborsRegressor(2), 5, max_features=0.7),
]


@pytest.mark.slow
@each_setting(CHECKED)
def test_the_checks_of_scikit_learn_pass(estimator, first):
    assert_checks_pass(estimator, LIGHT_ROWS, others=first)


def test_default_parameters_are_the_documented_ones():
    common = {
        "estimator": None, "n_estimators": 10, "max_samples": 1.0, "max_features": 1.0,
        "bootstrap": True, "bootstrap_features": False, "oob_score": False, "warm_start": False,
        "device": None, "n_jobs": None, "random_state": None,
    }  # fmt: skip
    assert BaggingRegressor().get_params() == common
    own = {"voting": "soft", "class_weight": None}
    assert BaggingClassifier().get_params() == {**common, **own}


def sets() -> dict[str, tuple]:
    """Data, learner, our estimator and the peer's, parameters."""
    X, y = load_digits(return_X_y=True)
    tree = DecisionTreeClassifier(random_state=0)
    classifiers = BaggingClassifier, peer.BaggingClassifier
    regressors = BaggingRegressor, peer.BaggingRegressor
    return {
        "cancer": (load_breast_cancer(return_X_y=True), tree, *classifiers, {}),
        "cancer, default trees": (load_breast_cancer(return_X_y=True), None, *classifiers, {}),
        "diabetes, default trees": (load_diabetes(return_X_y=True), None, *regressors, {}),
        "digits": ((X[:700], y[:700]), tree, *classifiers, {"max_features": 0.5}),
        "wine, pasted": (
            load_wine(return_X_y=True), tree, *classifiers,
            {"bootstrap": False, "max_samples": 0.5},
        ),
        "diabetes": (
            load_diabetes(return_X_y=True), DecisionTreeRegressor(random_state=0), *regressors, {},
        ),
    }  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", sets())
def test_error_on_test_rows_is_that_of_scikit_learn_within_their_standard_error(name):
    (X, y), learner, ours, theirs, params = sets()[name]
    scores = []
    for seed in range(12):
        X_fit, X_test, y_fit, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
        pair = [kind(learner, 20, random_state=seed, **params) for kind in (ours, theirs)]
        scores.append([model.fit(X_fit, y_fit).score(X_test, y_test) for model in pair])
    mine, other = np.mean(scores, axis=0)
    error = np.sqrt(np.var(scores, axis=0, ddof=1).sum() / len(scores))
    assert abs(mine - other) < error


@pytest.mark.long
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_grid_search_with_two_jobs_gives_the_serial_result(backend):
    X, y = load_breast_cancer(return_X_y=True)
    grid = {"max_samples": [0.3, 1.0], "estimator__max_depth": [1, 3]}
    model = BaggingClassifier(DecisionTreeClassifier(), 5, random_state=0)
    found = []
    for jobs in (1, 2):
        with joblib.parallel_backend(backend):
            found.append(GridSearchCV(model, grid, cv=2, n_jobs=jobs).fit(X, y))
    assert found[0].best_params_ == found[1].best_params_
    np.testing.assert_array_equal(
        found[0].cv_results_["mean_test_score"], found[1].cv_results_["mean_test_score"]
    )


def test_a_pickle_predicts_the_same_and_knows_its_bags():
    X, y = load_diabetes(return_X_y=True)
    model = BaggingRegressor(Ridge(), random_state=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    np.testing.assert_array_equal(copy.estimators_samples_[3], model.estimators_samples_[3])


def test_a_clone_has_the_parameters_and_no_model():
    X, y = load_diabetes(return_X_y=True)
    model = BaggingRegressor(Ridge(alpha=2.0), 3, max_samples=0.5).fit(X, y)
    copy = clone(model)
    assert copy.estimator.alpha == 2.0
    assert copy.max_samples == 0.5
    assert not hasattr(copy, "estimators_")


def test_names_of_features_are_kept_and_compared():
    pandas = pytest.importorskip("pandas")
    X, y = load_diabetes(return_X_y=True)
    frame = pandas.DataFrame(X, columns=[f"x{f}" for f in range(10)])
    model = BaggingRegressor(BoostingRegressor(n_estimators=5, max_depth=1), 3).fit(frame, y)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])
