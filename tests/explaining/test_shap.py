"""The package shap: equal values on the same trees, and plots that take ours.

shap is imported inside the tests: selected without it, these tests fail, they do not skip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    DecisionTreeClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from ensemble_gpu.explaining.trees import explain_forest
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.forest import Forest
from tests.explaining.test_estimators import FULL, NUMBERS, WEIGHTS, Y3, X, Y
from tests.model.trees import from_sklearn

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]


def shap_trees(forest: Forest) -> dict[str, Any]:
    """Our trees as shap's TreeExplainer takes them, in float64."""
    trees = []
    for t in range(forest.n_trees):
        span = forest.span(t)
        nodes = forest.nodes.between(span.start, span.stop)
        left, right = (np.where(nodes.feature == LEAF, -1, a) for a in (nodes.left, nodes.right))
        trees.append({
            "children_left": left, "children_right": right,
            "children_default": np.where(nodes.missing_left, left, right),
            "features": nodes.feature, "thresholds": nodes.threshold,
            "values": nodes.value / (forest.n_trees if forest.average else 1.0),
            "node_sample_weight": nodes.weight,
        })  # fmt: skip
    return {"trees": trees}


def by_shap(forest: Forest, rows: np.ndarray) -> np.ndarray:
    import shap

    explainer = shap.TreeExplainer(shap_trees(forest), feature_perturbation="tree_path_dependent")
    found = np.asarray(explainer.shap_values(rows, check_additivity=False))
    return found.reshape(*rows.shape, forest.n_outputs)


MODELS = {
    "forest": (RandomForestRegressor(5, random_state=0), NUMBERS),
    "classes": (RandomForestClassifier(5, random_state=0), Y3),
    "boosted": (BoostingRegressor(n_estimators=20), NUMBERS),
    "boosted classes": (BoostingClassifier(n_estimators=10), Y3),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "missing"])
def test_trees_have_the_values_of_shap(name, holes):
    estimator, y = MODELS[name]
    rows = X if holes else FULL
    forest = estimator.fit(rows, y, sample_weight=WEIGHTS).model_
    found = estimator.explain(rows[:40]).values
    np.testing.assert_allclose(found, by_shap(forest, rows[:40]), rtol=0.0, atol=1e-10)


def test_trees_of_scikit_learn_have_the_values_of_shap():
    import shap
    from sklearn.ensemble import RandomForestClassifier as Theirs

    narrow = FULL.astype(np.float32)  # to which shap rounds the rows of these trees
    fitted = Theirs(10, max_depth=5, random_state=0).fit(narrow, Y3)
    explainer = shap.TreeExplainer(fitted, feature_perturbation="tree_path_dependent")
    forest = from_sklearn(fitted)
    found, base = explain_forest(forest, narrow[:40], None)
    expected = explainer.shap_values(narrow[:40], check_additivity=False)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(base, explainer.expected_value, rtol=0.0, atol=1e-10)


def stump_trees(estimator: Any, rows: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    """As trees of depth 1, whose weights are those of the rows on each side."""
    rounds, trees = estimator.model_.rounds, []
    for f, t, missing, values in zip(
        rounds.feature, rounds.threshold, rounds.missing_leaf, rounds.values, strict=True
    ):
        x = rows[:, f]
        left = weights[np.where(np.isnan(x), missing == 0, x <= t)].sum()
        trees.append({
            "children_left": np.array([1, -1, -1]), "children_right": np.array([2, -1, -1]),
            "children_default": np.array([1 + missing, -1, -1]), "features": np.array([f, -1, -1]),
            "thresholds": np.array([t, np.nan, np.nan]),
            "values": np.array([[0.0], values[:, 0], values[:, 1]]),
            "node_sample_weight": np.array([weights.sum(), left, weights.sum() - left]),
        })  # fmt: skip
    return {"trees": trees}


def test_stumps_have_the_values_of_shap():
    import shap

    model = AdaBoostClassifier(n_estimators=40, missing="learn")
    model.fit(X, Y, sample_weight=WEIGHTS)
    trees = stump_trees(model, X, WEIGHTS)
    explainer = shap.TreeExplainer(trees, feature_perturbation="tree_path_dependent")
    expected = explainer.shap_values(X, check_additivity=False)
    np.testing.assert_allclose(model.explain(X).values[:, :, 0], expected, rtol=0.0, atol=1e-10)


def test_stumps_have_the_interventional_values_of_shap():
    """A sum of functions of one feature has one answer, with the training rows as background."""
    import shap

    model = AdaBoostClassifier(n_estimators=40, missing="learn").fit(FULL, Y)
    trees = stump_trees(model, FULL, np.ones(len(FULL)))
    every = shap.maskers.Independent(FULL, max_samples=len(FULL))
    explainer = shap.TreeExplainer(trees, every, feature_perturbation="interventional")
    expected = explainer.shap_values(FULL, check_additivity=False)
    np.testing.assert_allclose(model.explain(FULL).values[:, :, 0], expected, rtol=0.0, atol=1e-6)


def test_plots_of_shap_take_our_explanations():
    import matplotlib.pyplot as plt
    import shap

    found = AdaBoostClassifier(n_estimators=20).fit(X, Y).explain(X[:30])
    several = DecisionTreeClassifier(max_depth=3).fit(X, Y3).explain(X[:30])
    for values in (found.to_shap(), several.to_shap(1)):
        assert isinstance(values, shap.Explanation)
        assert values.shape == (30, 5)
        for plot in (shap.plots.beeswarm, shap.plots.bar, shap.plots.heatmap):
            plot(values, show=False)
        shap.plots.waterfall(values[0], show=False)
        shap.plots.scatter(values[:, 0], show=False)
        shap.plots.decision(values.base_values[0], values.values, show=False)
        plt.close("all")
    assert several.to_shap().shape == (30, 5, 3)


def test_values_are_arrays_of_the_library(library):
    for estimator in (AdaBoostClassifier(n_estimators=5), DecisionTreeClassifier(max_depth=3)):
        estimator.fit(X, Y)
        found = estimator.explain(library.put(X))
        library.check(found.values, "float64")
        library.check(found.base_values, "float64")
        np.testing.assert_array_equal(library.host(found.values), estimator.explain(X).values)
        np.testing.assert_array_equal(found.to_shap(0).data, X)
