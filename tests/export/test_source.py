"""What can be exported, and what the others are told."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier as OtherTree

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingClassifier,
    RidgeRegressor,
    to_code,
    to_onnx,
    to_treelite,
)
from ensemble_gpu.export.source import source_of
from tests.datasets import random_data
from tests.export.fits import fitted, rows


@pytest.mark.parametrize(
    ("estimator", "got"),
    [
        (AdaBoostClassifier(OtherTree(max_depth=1), n_estimators=2),
         "got AdaBoostClassifier.*, whose model_ is a Committee"),
        (BaggingClassifier(AdaBoostClassifier(n_estimators=2), 2),
         "got BaggingClassifier of AdaBoostClassifier"),
        (RidgeRegressor(), "got RidgeRegressor"),
        (LogisticRegression(), "got LogisticRegression"),
    ],
)  # fmt: skip
def test_an_estimator_of_other_learners_is_refused_with_those_that_can_be_exported(estimator, got):
    data = random_data()
    estimator.fit(data.X, data.y)
    for export in (to_onnx, to_treelite, lambda one: to_code(one, "c")):
        with pytest.raises(TypeError, match=f"a fitted AdaBoostClassifier.*RandomForest.*{got}"):
            export(estimator)


def test_what_is_no_estimator_is_refused():
    with pytest.raises(TypeError, match=r"estimator must be a fitted .* got str"):
        to_code("model", "c")


def test_an_estimator_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        to_code(AdaBoostClassifier(), "c")
    with pytest.raises(NotFittedError):
        to_code(BaggingClassifier(), "c")


@pytest.mark.parametrize(("export", "package"), [(to_onnx, "onnx"), (to_treelite, "treelite")])
def test_a_missing_package_is_named_with_the_extra_that_has_it(export, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install 'ensemble_gpu\[{package}\]'"):
        export(fitted("adaboost"))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"exact": 1}, TypeError, "exact must be True or False; got 1"),
        ({"dtype": "float16"}, ValueError, "dtype must be 'float32' or 'float64'; got 'float16'"),
    ],
)
def test_a_wrong_parameter_of_to_onnx_is_an_error(given, error, message):
    with pytest.raises(error, match=message):
        to_onnx(fitted("adaboost"), **given)


def test_subsets_without_their_categories_are_refused():
    from ensemble_gpu.model.forest import Forest

    forest = fitted("tree").model_
    bare = Forest(forest.nodes, forest.starts, forest.n_features, subsets=forest.subsets)
    with pytest.raises(ValueError, match=r"those of features \[4\] are missing"):
        source_of(bare)


@pytest.mark.parametrize("name", ["adaboost of trees", "adaboost of trees, votes, categories"])
def test_a_committee_of_trees_is_a_forest_with_the_same_bits(name):
    model = fitted(name).model_
    np.testing.assert_array_equal(source_of(fitted(name)).model(rows()), model(rows()))


@pytest.mark.parametrize("name", ["bag, categories", "bag of votes", "bag regressor"])
def test_a_bag_of_trees_is_a_forest_with_the_same_bits(name):
    bag, X = fitted(name), rows()
    found = source_of(bag).model(X)
    answers = bag.predict_proba(X) if hasattr(bag, "classes_") else bag.predict(X)[:, None]
    np.testing.assert_array_equal(found, answers)
