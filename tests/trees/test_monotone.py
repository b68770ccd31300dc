"""Monotone constraints: predictions rise and fall as they are told to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import tree as peers

from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.trees.problems import integer_weights
from tests.trees.test_exact import node_rows

SIGNS = [1, -1, 0, 1]


def noisy(n: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32).astype(np.float64)
    y = X[:, 0] - X[:, 1] + np.sin(3 * X[:, 2]) - 0.5 * X[:, 3] + 1.5 * rng.normal(size=n)
    return X, y.round(3)


TREES: dict[str, Any] = {
    "regression tree": lambda **p: DecisionTreeRegressor(**p),
    "best-first regression tree": lambda **p: DecisionTreeRegressor(max_leaf_nodes=40, **p),
    "poisson tree": lambda **p: DecisionTreeRegressor(criterion="poisson", **p),
    "gini tree": lambda **p: DecisionTreeClassifier(**p),
    "entropy tree": lambda **p: DecisionTreeClassifier(criterion="entropy", **p),
    "error tree": lambda **p: DecisionTreeClassifier(criterion="error", **p),
    "random tree": lambda **p: DecisionTreeRegressor(splitter="random", random_state=0, **p),
    "forest": lambda **p: RandomForestClassifier(6, random_state=0, **p),
    "regression forest": lambda **p: RandomForestRegressor(
        6, max_features=2, random_state=0, **p
    ),
}  # fmt: skip


def output(estimator: Any, X: np.ndarray) -> np.ndarray:
    if hasattr(estimator, "predict_proba"):
        return estimator.predict_proba(X)[:, 1]
    return estimator.predict(X)


def fitted(name: str, **params: Any) -> tuple[Any, np.ndarray]:
    X, y = noisy()
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    estimator = TREES[name](**params)
    if hasattr(estimator, "predict_proba"):
        y = (y > 0).astype(int)
    return estimator.fit(X, np.exp(y) if name == "poisson tree" else y), X


def breaches(estimator: Any, X: np.ndarray) -> list[int]:
    """How often the output moves the wrong way on a grid through each row, by feature."""
    grid = np.linspace(-4, 4, 33)
    found = []
    for f, sign in enumerate(SIGNS):
        rows = np.repeat(X[:100], len(grid), axis=0)
        rows[:, f] = np.tile(grid, 100)
        steps = np.diff(output(estimator, rows).reshape(100, -1), axis=1)
        found.append(int((steps * sign < 0).sum()))
    return found


@pytest.mark.parametrize("name", TREES)
def test_predictions_are_monotone(name):
    estimator, X = fitted(name, monotonic_cst=SIGNS)
    assert breaches(estimator, X) == [0, 0, 0, 0]
    assert estimator.model_.n_leaves(0) > 5
    free, _ = fitted(name)
    assert all(b > 0 for b, sign in zip(breaches(free, X), SIGNS, strict=True) if sign)


@pytest.mark.parametrize("criterion", ["squared_error", "gini", "entropy"])
@pytest.mark.parametrize("params", [{"max_depth": 5}, {"max_leaf_nodes": 15}], ids=str)
def test_the_tree_is_that_of_scikit_learn(criterion, params):
    X, y = noisy()
    kinds = (DecisionTreeRegressor, peers.DecisionTreeRegressor)
    if criterion != "squared_error":
        kinds, y = (DecisionTreeClassifier, peers.DecisionTreeClassifier), (y > 0).astype(int)
    weights = integer_weights(len(y))
    params = {"criterion": criterion, "monotonic_cst": SIGNS, "min_samples_leaf": 4, **params}
    found = kinds[0](max_bins=None, **params).fit(X, y, weights)
    peer = kinds[1](random_state=0, **params).fit(X, y, weights)
    assert node_rows(found, X) == node_rows(peer, X)
    np.testing.assert_allclose(output(found, X), output(peer, X), rtol=1e-9)


def test_zeros_constrain_nothing():
    X, y = noisy()
    free = DecisionTreeRegressor().fit(X, y)
    assert DecisionTreeRegressor(monotonic_cst=[0, 0, 0, 0]).fit(X, y).model_ == free.model_


def test_names_say_which_features_are_constrained():
    pd = pytest.importorskip("pandas")
    X, y = noisy()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    by_name = DecisionTreeRegressor(monotonic_cst={"a": 1, "b": -1, "d": 1}).fit(frame, y)
    assert by_name.model_ == DecisionTreeRegressor(monotonic_cst=SIGNS).fit(X, y).model_
