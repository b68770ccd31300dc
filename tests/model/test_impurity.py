"""Impurities: the formulas for two classes, and those of the nodes of trees."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import DecisionTreeClassifier, impurity

P = np.linspace(0.01, 0.99, 99)
TWO = np.stack([1.0 - P, P], axis=1)
FORMULAS = {
    "gini": 2.0 * P * (1.0 - P),
    "entropy": -P * np.log2(P) - (1.0 - P) * np.log2(1.0 - P),
    "log_loss": -P * np.log2(P) - (1.0 - P) * np.log2(1.0 - P),
    "error": np.minimum(P, 1.0 - P),
}


@pytest.mark.parametrize("criterion", FORMULAS)
def test_two_classes_have_the_formula(criterion):
    np.testing.assert_allclose(impurity(TWO, criterion), FORMULAS[criterion], rtol=1e-12)
    assert impurity([1.0, 0.0, 0.0], criterion) == 0.0
    even = {"gini": 0.75, "error": 0.75}.get(criterion, 2.0)
    assert impurity(np.full(4, 0.25), criterion) == pytest.approx(even)


@pytest.mark.parametrize("criterion", FORMULAS)
def test_nodes_of_trees_have_it(criterion):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, size=200)
    nodes = DecisionTreeClassifier(criterion=criterion, max_depth=4).fit(X, y).model_.nodes
    np.testing.assert_allclose(impurity(nodes.value, criterion), nodes.impurity, atol=1e-12)


@pytest.mark.parametrize(
    ("p", "criterion", "says"),
    [
        ([0.5, 0.5], "mse", "criterion must be one of 'gini'"),
        ([0.5, 0.6], "gini", "p must add up to 1"),
        ([-0.5, 1.5], "gini", "p must hold shares >= 0"),
        (0.5, "gini", "p must hold shares >= 0"),
    ],
)
def test_bad_shares_are_named(p, criterion, says):
    with pytest.raises(ValueError, match=says):
        impurity(p, criterion)
