"""scikit-learn estimators: its own checks, and the tools that people use them with."""

from __future__ import annotations

import pickle
import re
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.datasets import random_data
from tests.estimators.checks import assert_checks_pass, each_setting

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CHECKED = [
    DecisionTreeClassifier(),
    DecisionTreeClassifier(splitter="random", max_features=1, class_weight="balanced"),
    DecisionTreeRegressor(),
    DecisionTreeRegressor(criterion="poisson", max_leaf_nodes=12, ccp_alpha=0.001),
    RandomForestClassifier(5),
    RandomForestClassifier(5, bootstrap=False, splitter="random", n_jobs=2),
    RandomForestClassifier(5, capacity="max_leaf_nodes", validation_loss="log_loss"),
    RandomForestRegressor(5),
    RandomForestRegressor(5, criterion="poisson", missing="error", max_bins=None),
    RandomForestRegressor(5, capacity="ccp_alpha", validation="holdout"),
]
KINDS = [
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
]


@pytest.mark.slow
@each_setting(CHECKED)
def test_the_checks_of_scikit_learn_pass(estimator, first):
    assert_checks_pass(estimator, others=first)


def small(kind: type) -> Any:
    return kind(n_estimators=4, random_state=0) if "Forest" in kind.__name__ else kind()


def data_for(kind: type) -> tuple[np.ndarray, np.ndarray]:
    data = random_data(3).with_missing()
    return data.X, data.y if "Classifier" in kind.__name__ else data.y + data.X[:, 0]


TREE_DEFAULTS = {
    "splitter": "best", "max_depth": None, "min_samples_split": 2, "min_samples_leaf": 1,
    "min_weight_fraction_leaf": 0.0, "max_leaf_nodes": None, "min_impurity_decrease": 0.0,
    "ccp_alpha": 0.0, "monotonic_cst": None,
    "max_bins": 255, "categorical_features": "from_dtype", "categorical_split": "subset",
    "missing": "learn", "device": None, "n_jobs": None, "random_state": None,
}  # fmt: skip
FOREST_DEFAULTS = TREE_DEFAULTS | {
    "n_estimators": 100, "bootstrap": True, "max_samples": None, "oob_score": False,
    "subspace": "node", "warm_start": False,
    "capacity": None, "capacity_grid": None, "validation": "oob", "validation_fraction": 0.2,
    "validation_folds": 5, "callbacks": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "defaults"),
    [
        (
            KINDS[0],
            TREE_DEFAULTS | {"criterion": "gini", "max_features": None, "class_weight": None},
        ),
        (KINDS[1], TREE_DEFAULTS | {"criterion": "squared_error", "max_features": None}),
        (
            KINDS[2],
            FOREST_DEFAULTS
            | {"criterion": "gini", "max_features": "sqrt", "class_weight": None, "voting": "soft"}
            | {"validation_loss": "error"},
        ),
        (KINDS[3], FOREST_DEFAULTS | {"criterion": "squared_error", "max_features": 1.0}),
    ],
)
def test_default_parameters_are_the_documented_ones(kind, defaults):
    assert kind().get_params() == defaults
    for name in defaults:
        assert re.search(rf"^    ([\w, ]*\b)?{name}\b[\w, ]* : ", kind.__doc__, re.MULTILINE), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_clone_has_the_parameters_and_no_model(kind):
    X, y = data_for(kind)
    fitted = small(kind).set_params(max_depth=3).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "model_")


@pytest.mark.parametrize("kind", KINDS)
def test_a_pickle_predicts_the_same(kind):
    X, y = data_for(kind)
    fitted = small(kind).fit(X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    assert copy.model_ == fitted.model_
    np.testing.assert_array_equal(copy.predict(X), fitted.predict(X))


@pytest.mark.parametrize("kind", KINDS)
def test_fit_does_not_change_its_arguments(kind):
    X, y = data_for(kind)
    weights = np.linspace(0, 2, len(y))
    before = X.copy(), y.copy(), weights.copy()
    small(kind).fit(X, y, weights).predict(X)
    for found, own in zip((X, y, weights), before, strict=True):
        np.testing.assert_array_equal(found, own)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["feature_importances_", "predict", "apply", "decision_path"])
def test_nothing_is_said_before_fit(kind, name):
    X, _ = data_for(kind)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(kind(), name)(X)


@pytest.mark.parametrize("name", ["get_depth", "get_n_leaves"])
def test_a_tree_that_is_not_there_has_no_size(name):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(DecisionTreeClassifier(), name)()


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.long)])
def test_a_grid_search_with_two_jobs_gives_the_serial_result(backend):
    X, y = load_iris(return_X_y=True)
    grid = {"max_depth": [2, None], "max_features": np.array([2, 4]), "n_estimators": [3]}
    with joblib.parallel_backend(backend):
        searches = [
            GridSearchCV(RandomForestClassifier(random_state=0), grid, cv=2, n_jobs=jobs).fit(X, y)
            for jobs in (1, 2)
        ]
    np.testing.assert_array_equal(*(search.cv_results_["mean_test_score"] for search in searches))
    assert searches[0].best_estimator_.model_ == searches[1].best_estimator_.model_


def test_cross_validation_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(30, random_state=0)
    assert cross_val_score(forest, X, y, cv=3).mean() > 0.94
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(30, max_features=0.4, random_state=0)
    assert cross_val_score(forest, X, y, cv=3).mean() > 0.38


def test_string_labels_and_probabilities_agree():
    iris = load_iris()
    y = iris.target_names[iris.target]
    found = RandomForestClassifier(8, random_state=0).fit(iris.data, y)
    p = found.predict_proba(iris.data)
    assert found.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    np.testing.assert_array_equal(found.predict(iris.data), found.classes_[p.argmax(axis=1)])
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(found.predict_log_proba(iris.data), np.log(p))
    assert found.score(iris.data, y) > 0.95


COLOURS = np.array(["red", "green", "blue", "grey"])


def frames(n: int = 120) -> dict[str, tuple[Any, np.ndarray]]:
    """The same table as frames of both libraries; the colour says nearly all."""
    rng = np.random.default_rng(0)
    colour, size = rng.integers(4, size=n), rng.normal(size=n)
    labels = COLOURS[colour].astype(object)
    labels[::11] = None
    y = ((colour == 1) | (colour == 3)) ^ (rng.random(n) < 0.05)
    columns = {"colour": labels, "size": size}
    return {
        "pandas": (pd.DataFrame(columns).astype({"colour": "category"}), y),
        "polars": (
            pl.DataFrame(
                {"colour": pl.Series(labels.tolist(), dtype=pl.Categorical), "size": size}
            ),
            y,
        ),
    }


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, RandomForestClassifier])
def test_frames_of_both_libraries_give_the_same_model(kind):
    fits = {name: small(kind).fit(*frame) for name, frame in frames().items()}
    assert fits["pandas"].model_ == fits["polars"].model_
    assert list(fits["pandas"].feature_names_in_) == ["colour", "size"]
    for name, (frame, y) in frames().items():
        for fitted in fits.values():
            np.testing.assert_array_equal(
                fitted.predict_proba(frame), fits["pandas"].predict_proba(frames()["pandas"][0])
            )
            assert fitted.score(frame, y) > 0.9, name
    tree = DecisionTreeClassifier(max_depth=1).fit(*frames()["pandas"])
    assert tree.model_.nodes.feature[0] == 0
    assert tree.score(*frames()["pandas"]) > 0.85


def test_labels_do_not_hang_on_the_order_or_the_presence_of_categories():
    frame, y = frames()["pandas"]
    fitted = DecisionTreeClassifier().fit(frame, y)
    rows = frame.iloc[[1, 2, 3]].copy()
    other = rows.assign(
        colour=rows["colour"].cat.set_categories(["blue", "x", "green", "red", "grey"])
    )
    np.testing.assert_array_equal(fitted.predict_proba(other), fitted.predict_proba(rows))
    unknown = rows.assign(colour=pd.Categorical(["x", "x", "x"]))
    missing = rows.assign(colour=pd.Categorical([None] * 3, categories=COLOURS))
    np.testing.assert_array_equal(fitted.predict_proba(unknown), fitted.predict_proba(missing))


def test_names_indices_and_a_mask_choose_the_same_features():
    X, y = data_for(DecisionTreeClassifier)
    X = X.copy()
    X[:, 5] -= np.nanmin(X[:, 5])
    frame = pd.DataFrame(X, columns=list("abcdef"))
    models = [
        DecisionTreeClassifier(categorical_features=given).fit(rows, y).model_
        for given, rows in [
            ([5], X), ([False] * 5 + [True], X), (np.array([5]), frame), (["f"], frame),
            (["f"], pl.DataFrame(frame)),
        ]
    ]  # fmt: skip
    assert len({model.fingerprint() for model in models}) == 1
    assert models[0] != DecisionTreeClassifier().fit(X, y).model_


def test_a_frame_with_other_columns_is_refused():
    frame, y = frames()["pandas"]
    fitted = DecisionTreeClassifier().fit(frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame.rename(columns={"size": "weight"}))
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["size", "colour"]])


def test_a_second_fit_forgets_the_first():
    frame, y = frames()["pandas"]
    X, labels = data_for(DecisionTreeClassifier)
    tree = DecisionTreeClassifier().fit(frame, y).fit(X, labels)
    assert tree.model_ == DecisionTreeClassifier().fit(X, labels).model_
    assert not hasattr(tree, "feature_names_in_")
    assert tree.predict(X).shape == labels.shape
