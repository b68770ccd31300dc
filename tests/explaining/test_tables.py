"""Sums of stumps: a feature's Shapley value is its table, centred by the training rows."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor, use_engine
from ensemble_gpu.explaining.background import Background
from tests.datasets import random_data


@pytest.fixture(scope="module")
def data():
    return random_data(3, n=200, p=5).with_missing().with_weights()


def weighted_means(estimator, data):
    weights = np.ones(len(data.X)) if data.weights is None else data.weights
    return {
        f: np.average(table(data.X[:, f]), axis=0, weights=weights)
        for f, table in estimator.model_.tables.items()
    }


@pytest.mark.parametrize("missing", ["abstain", "learn"])
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_values_are_tables_minus_their_training_means(data, missing, weighted, engine):
    weights = data.weights if weighted else None
    with use_engine(engine):
        model = AdaBoostClassifier(n_estimators=30, missing=missing)
        model.fit(data.X, data.y, sample_weight=weights)
        found = model.explain(data.X)
    rows = np.ones(len(data.X)) if weights is None else weights
    for f in range(5):
        table = model.model_.shape_function(f)(data.X[:, f])
        expected = table - np.average(table, axis=0, weights=rows)
        np.testing.assert_allclose(found.values[:, f], expected, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(found.scores, model.decision_function(data.X), rtol=0.0, atol=1e-13)


def test_the_background_has_the_same_bits_on_every_engine(data):
    arrays = []
    for name in ("cpu", "reference"):
        with use_engine(name):
            model = BoostingClassifier(n_estimators=5, max_depth=1, missing="learn")
            model.fit(data.X, data.y, sample_weight=data.weights)
        arrays.append(vars(model.background_))
    for one, other in zip(arrays[0].values(), arrays[1].values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_background_counts_rows_between_thresholds(data):
    model = AdaBoostClassifier(n_estimators=20).fit(data.X, data.y, sample_weight=data.weights)
    for f, thresholds, weight, missing in model.background_:
        x = data.X[:, f]
        piece = np.searchsorted(thresholds, x[~np.isnan(x)])
        expected = np.bincount(piece, data.weights[~np.isnan(x)], len(thresholds) + 1)
        np.testing.assert_allclose(weight, expected, rtol=1e-12)
        np.testing.assert_allclose(missing, data.weights[np.isnan(x)].sum(), rtol=1e-12)
    whole = AdaBoostClassifier(n_estimators=20).fit(data.X, data.y)
    assert all((weight == np.rint(weight)).all() for _, _, weight, _ in whole.background_)


def test_weights_of_any_size_make_a_background(data):
    plain = AdaBoostClassifier(n_estimators=5).fit(data.X, data.y, sample_weight=data.weights)
    for factor in (1e-300, 1e290):
        model = AdaBoostClassifier(n_estimators=5)
        model.fit(data.X, data.y, sample_weight=factor * data.weights)
        np.testing.assert_allclose(
            model.background_.weight / factor, plain.background_.weight, rtol=1e-9
        )


def test_bags_are_explained_by_the_rows_that_were_given(data):
    model = BoostingRegressor(max_depth=1, n_estimators=10, n_bags=3)
    model.fit(data.X, data.y, sample_weight=data.weights)
    mean = np.average(model.explain(data.X).values, axis=0, weights=data.weights)
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)


def test_fewer_rounds_have_the_same_background(data):
    model = BoostingRegressor(max_depth=1, n_estimators=30).fit(data.X, data.y)
    few = BoostingRegressor(max_depth=1, n_estimators=8, learning_rate=model._rate)
    few.fit(data.X, data.y)
    model.model_ = model.model_.first(8)
    assert model.model_.fingerprint() == few.model_.fingerprint()
    np.testing.assert_allclose(model.explain(data.X).values, few.explain(data.X).values, atol=1e-15)


def test_a_model_without_rounds_has_an_empty_background():
    model = AdaBoostClassifier(n_estimators=3).fit(np.zeros((4, 2)), [0, 1, 1, 1])
    assert isinstance(model.background_, Background)
    found = model.explain(np.zeros((3, 2)))
    assert not found.values.any()
    np.testing.assert_array_equal(found.scores[:, 0], model.decision_function(np.zeros((3, 2))))
