"""`explain_global`: importances, shape functions, partial dependence."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.inspection import partial_dependence
from sklearn.tree import DecisionTreeRegressor as SklearnTree

from ensemble_gpu import (
    AdaBoostClassifier,
    BaggingRegressor,
    BoostingClassifier,
    BoostingRanker,
    BoostingRegressor,
    DecisionTreeRegressor,
    RandomForestClassifier,
    metrics,
)
from ensemble_gpu.explaining.dependence import forest_dependence
from tests.explaining.oracle import expected_output
from tests.explaining.test_estimators import CATEGORIES, FULL, NUMBERS, WEIGHTS, Y3, X, Y
from tests.model.trees import from_sklearn, random_forest
from tests.places import DEVICE


@pytest.fixture(scope="module")
def stumps():
    return AdaBoostClassifier(n_estimators=30).fit(X, Y)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(5, max_depth=4, random_state=0, **CATEGORIES).fit(X, Y3)


def test_stumps_know_the_mean_over_their_training_rows(stumps):
    found, over_rows = stumps.explain_global(), stumps.explain_global(X)
    np.testing.assert_allclose(found.mean_abs, over_rows.mean_abs, atol=1e-13)
    np.testing.assert_allclose(found.base_values, over_rows.base_values, atol=1e-13)
    np.testing.assert_array_equal(found.gain, stumps.feature_importances_)
    explained = stumps.explain(X)
    for f, shape in found.shapes.items():
        np.testing.assert_allclose(shape(X[:, f]), explained.values[:, f], atol=1e-13)
        assert shape.weight.sum() + shape.missing_weight == len(X)


def test_trees_need_rows_for_the_mean_of_their_values(forest):
    assert forest.explain_global().mean_abs is None
    found = forest.explain_global(X)
    np.testing.assert_allclose(found.mean_abs, np.abs(forest.explain(X).values).mean(axis=0))
    assert list(found.to_frame().columns) == [*(f"mean_abs[{k}]" for k in range(3)), "gain"]


def test_the_importance_of_a_feature_is_what_its_shuffling_costs(stumps):
    found = stumps.explain_global(X, Y, metric="roc_auc", n_repeats=3).permutation
    assert found.baseline == metrics.roc_auc(Y, stumps.decision_function(X))
    assert found.values.shape == (5, 3)
    order = np.random.default_rng([0, 0]).permutation(len(X))
    shuffled = np.column_stack([X[order, 0], X[:, 1:]])
    expected = found.baseline - metrics.roc_auc(Y, stumps.decision_function(shuffled))
    assert found.values[0, 0] == expected
    assert found.mean.argmax() == 0
    again = stumps.explain_global(X, Y, metric="auc", n_repeats=3).permutation
    np.testing.assert_array_equal(again.values, found.values)


@pytest.mark.parametrize("metric", sorted(metrics.METRICS[metrics.CLASSIFICATION]))
def test_every_metric_of_classes_judges(stumps, forest, metric):
    for estimator, y in ((stumps, Y), (forest, Y3)):
        if metric in ("average_precision", "precision", "recall", "f1") and y is Y3:
            continue  # of two classes
        found = estimator.explain_global(X, y, metric=metric, n_repeats=1).permutation
        assert found.metric == metric
        assert found.values[0, 0] > 0.0


def test_metrics_of_numbers_weights_and_other_libraries():
    model = BoostingRegressor(n_estimators=10, max_depth=2).fit(X, NUMBERS)
    found = model.explain_global(X, NUMBERS, sample_weight=WEIGHTS, n_repeats=1).permutation
    residual = NUMBERS - model.predict(X)
    assert found.metric == "rmse"
    assert abs(found.baseline - np.sqrt(np.average(residual**2, weights=WEIGHTS))) < 1e-12
    there = model.explain_global(
        DEVICE.put(X), DEVICE.put(NUMBERS), sample_weight=DEVICE.put(WEIGHTS), n_repeats=1
    )
    np.testing.assert_allclose(there.permutation.values, found.values, atol=1e-12)

    def largest(y, prediction):
        return np.abs(y - prediction).max()

    found = model.explain_global(X, NUMBERS, metric=largest, n_repeats=1).permutation
    assert found.metric == "largest"
    assert found.baseline == np.abs(residual).max()


def test_partial_dependence_of_stumps_is_the_mean_over_training_rows(stumps):
    found = stumps.explain_global()
    for feature in (0, "x4"):
        exact = found.partial_dependence(feature)
        by_force = found.partial_dependence(feature, exact.grid, X=X)
        np.testing.assert_allclose(exact.values, by_force.values, atol=1e-12)


def test_partial_dependence_of_trees_is_the_output_that_one_feature_tells():
    forest = random_forest(2, n_trees=3)
    for f in (0, 4):
        grid = forest.categories[f] if f in forest.categories else np.array([-1.0, 0.3, np.nan])
        found = forest_dependence(forest, f, np.append(grid[:3], 0.123))
        for v, values in zip([*grid[:3], 0.123], found, strict=True):
            x = np.full(forest.n_features, v)
            np.testing.assert_allclose(
                values, expected_output(forest, x, frozenset({f})), atol=1e-12
            )


def test_partial_dependence_of_trees_equals_scikit_learns():
    tree = SklearnTree(max_depth=6, random_state=0).fit(FULL, NUMBERS)
    found = partial_dependence(tree, FULL, [1], method="recursion", grid_resolution=20)
    values = forest_dependence(from_sklearn(tree), 1, found["grid_values"][0])
    np.testing.assert_allclose(values[:, 0], found["average"][0], atol=1e-12)


def test_partial_dependence_of_committees_and_bags():
    tree = DecisionTreeRegressor(max_depth=2)
    model = BoostingRegressor(estimator=tree, n_estimators=3).fit(X, NUMBERS)
    found = model.explain_global().partial_dependence(0, [0.0, 1.0])
    assert found.values.shape == (2, 1)
    assert found.to_frame().index.name == "x0"
    bag = BaggingRegressor(tree, 2, random_state=0).fit(X, NUMBERS).explain_global(X)
    assert bag.partial_dependence(0, [0.0, 1.0], X=X).values.shape == (2, 1)
    with pytest.raises(ValueError, match="X must be given for the partial dependence of Bagging"):
        bag.partial_dependence(0)


def test_pictures_are_drawn(stumps, forest):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    found = stumps.explain_global(X, Y, n_repeats=1)
    assert len(found.plot().patches) == 5
    assert found.plot("permutation").get_xlabel() == "permutation importance"
    ax = stumps.explain(X).plot(3, most=2)
    assert len(ax.patches) == 3
    end = ax.patches[-1].get_x() + ax.patches[-1].get_width()
    assert abs(end - stumps.decision_function(X)[3]) < 1e-12
    ax = found.shapes[0].plot()
    assert (ax.patches[0].get_data().values == found.shapes[0].values[:, 0]).all()
    lines = forest.explain_global().partial_dependence(4).plot().get_lines()
    assert len(lines) == 3
    pyplot.close("all")


BAD = {
    "y needs X": ({"y": Y}, ValueError, "y was given, and needs X"),
    "metric needs y": ({"X": X, "metric": "error"}, ValueError, "give y"),
    "metric": ({"X": X, "y": Y, "metric": "rmse"}, ValueError, "metric must be one of"),
    "no metric": ({"X": X, "y": Y, "metric": 3}, TypeError, "metric must be a name"),
    "labels": ({"X": X, "y": Y + 1}, ValueError, "labels that were not there in fit: .2."),
    "repeats": ({"X": X, "y": Y, "n_repeats": 0}, ValueError, "n_repeats must be"),
    "rows": ({"X": X, "y": Y[:9]}, ValueError, "y"),
    "library": ({"X": DEVICE.put(X), "y": Y}, ValueError, "must be of one array library"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(stumps, name):
    given, kind, match = BAD[name]
    with pytest.raises(kind, match=match):
        stumps.explain_global(**given)


def test_what_cannot_be_asked_is_named(stumps):
    found = stumps.explain_global()
    with pytest.raises(ValueError, match=r"feature must be from 0 to 4, or one of .*; got 'age'"):
        found.partial_dependence("age")
    with pytest.raises(ValueError, match=r"grid must be an array \[points\]"):
        found.partial_dependence(0, [[1.0]])
    with pytest.raises(ValueError, match=r"importance must be one of \['mean_abs', 'gain'\]"):
        found.plot("permutation")
    quantiles = BoostingRegressor("quantile", quantile=[0.1, 0.9], n_estimators=2).fit(X, NUMBERS)
    with pytest.raises(ValueError, match="one prediction a row"):
        quantiles.explain_global(X, NUMBERS, metric="mae")
    ranker = BoostingRanker(n_estimators=2).fit(X, Y3, qid=np.repeat(np.arange(15), 10))
    with pytest.raises(ValueError, match="ranks rows within queries"):
        ranker.explain_global(X, Y3)
    each = BoostingClassifier(n_estimators=2).fit(X, Y3)
    assert each.explain_global(X).output_names == [0, 1, 2]
