"""Every split of a tree is the best there is: compared with all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu import use_engine
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.products import every_pair
from tests.trees.oracle import Node, mass

CRITERIA = ["gini", "entropy", "error", "squared_error", "poisson"]


def table(seed: int, n: int = 90, missing: bool = True) -> np.ndarray:
    """Two columns of numbers with ties, one of five categories, one of six that says more."""
    rng = np.random.default_rng(seed)
    X = np.stack(
        [
            rng.integers(12, size=n), rng.normal(size=n).round(1), rng.integers(5, size=n),
            rng.integers(6, size=n),
        ],
        axis=1,
    ).astype(np.float64)  # fmt: skip
    if missing:
        X[rng.random(X.shape) < 0.12] = np.nan
    return X


def target(criterion: str, X: np.ndarray, n_classes: int = 2) -> np.ndarray:
    rng = np.random.default_rng(9)
    category = np.nan_to_num(X[:, 3], nan=6).astype(int)
    effect = np.array([0.0, 2.0, -1.0, 3.0, 1.0, -2.0, 0.5])[category]
    level = effect + np.nan_to_num(X[:, 1]) + rng.normal(size=len(X))
    if criterion == "squared_error":
        return level.round(3)
    if criterion == "poisson":
        return rng.poisson(np.exp(level / 2)).astype(np.float64)
    return np.digitize(level, np.quantile(level, np.arange(1, n_classes) / n_classes))


def estimator(criterion: str, **params: Any) -> Any:
    kind = DecisionTreeRegressor if criterion in CRITERIA[3:] else DecisionTreeClassifier
    return kind(criterion=criterion, max_bins=None, **params)


def nodes_of(tree: Any, X: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """(node, its rows) for every node."""
    path = tree.decision_path(X).tocsc()
    return [(i, np.sort(own)) for i, own in enumerate(np.split(path.indices, path.indptr[1:-1]))]


@every_pair("criterion, min_rows, weighted", CRITERIA, [1, 6], [False, True])
def test_every_split_is_the_best_of_all_thresholds_subsets_and_sides(criterion, min_rows, weighted):
    X = table(1)
    y = target(criterion, X)
    w = np.random.default_rng(2).integers(1, 9, size=len(y)) * 1.0 if weighted else np.ones(len(y))
    categorical = (2, 3) if min_rows == 1 else ()  # leaves that are too small leave other subsets
    tree = estimator(
        criterion, max_depth=4, min_samples_leaf=min_rows, categorical_features=categorical
    ).fit(X, y, w)
    nodes = tree.model_.nodes
    assert tree.get_depth() == 4
    for i, rows in nodes_of(tree, X):
        node = Node(criterion, X[rows], y[rows], w[rows], categorical, min_rows)
        own = mass(criterion, node.y, node.w)
        assert nodes.weight[i] * nodes.impurity[i] == pytest.approx(own, abs=1e-8)
        assert nodes.n_samples[i] == len(rows)
        if nodes.feature[i] != LEAF:
            left, right = nodes.left[i], nodes.right[i]
            after = nodes.weight[[left, right]] @ nodes.impurity[[left, right]]
            assert after == pytest.approx(node.best(), rel=1e-9, abs=1e-8)
        elif not node.pure and len(rows) >= 2 * min_rows and tree.model_.depths[i] < 4:
            assert node.best() == np.inf


@pytest.mark.parametrize("criterion", ["gini", "entropy", "error"])
def test_a_subset_for_several_classes_is_as_good_as_any_single_category_or_class_order(criterion):
    X = table(4, n=200, missing=False)[:, 3:]
    y = target(criterion, np.column_stack([X, X, X, X]), n_classes=4)
    w = np.ones(len(y))
    tree = estimator(criterion, max_depth=1, categorical_features=[0]).fit(X, y)
    nodes, node = tree.model_.nodes, Node(criterion, X, y, w, (0,))
    found = nodes.weight[1:] @ nodes.impurity[1:]
    ways = list(node.subsets(0, range(1, 2)))
    for k in range(4):
        order = sorted(range(6), key=lambda v: np.mean(y[X[:, 0] == v] == k))
        ways += [np.isin(X[:, 0], order[:size]) for size in range(1, 6)]
    assert found <= min(map(node.after, ways)) + 1e-9
    assert found == pytest.approx(min(map(node.after, ways)), abs=1e-9)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_single_category_against_all_others(criterion):
    X = table(5, missing=False)
    y = target(criterion, X)
    tree = estimator(
        criterion, max_depth=3, categorical_features=[0, 1], categorical_split="single"
    ).fit(X[:, 2:], y)
    nodes = tree.model_.nodes
    for i, rows in nodes_of(tree, X[:, 2:]):
        if nodes.feature[i] == LEAF:
            continue
        node = Node(criterion, X[rows, 2:], y[rows], np.ones(len(rows)))
        ways = [way for f in (0, 1) for way in node.subsets(f, range(1, 2))]
        left, right = nodes.left[i], nodes.right[i]
        after = nodes.weight[[left, right]] @ nodes.impurity[[left, right]]
        assert after == pytest.approx(min(map(node.after, ways)), rel=1e-9, abs=1e-8)
        bits = tree.model_.subsets[nodes.subset[i]]
        assert bin(int(bits[0])).count("1") == 1


def test_missing_alone_can_be_a_child():
    x = np.array([1.0, 2.0, 3.0, np.nan, np.nan, np.nan])[:, None]
    tree = DecisionTreeClassifier().fit(x, [0, 0, 0, 1, 1, 1])
    assert tree.model_.nodes.threshold[0] == np.inf
    assert tree.predict([[np.nan], [5.0], [-9.0]]).tolist() == [1, 0, 0]


def test_missing_values_go_with_the_values_that_they_resemble():
    x = np.array([1.0, 2.0, np.nan, 8.0, 9.0, np.nan])[:, None]
    tree = DecisionTreeRegressor(max_depth=1).fit(x, [0.0, 0.0, 5.0, 5.0, 5.0, 5.0])
    assert tree.predict([[np.nan]]).tolist() == [5.0]
    tree = DecisionTreeRegressor(max_depth=1).fit(x, [5.0, 5.0, 5.0, 0.0, 0.0, 5.0])
    assert tree.predict([[np.nan]]).tolist() == [5.0]


@pytest.mark.parametrize("heavy", [0, 1])
def test_missing_values_unseen_in_training_go_to_the_child_with_more_rows(heavy):
    x = np.arange(10.0)[:, None]
    y = (x[:, 0] >= (7 if heavy == 0 else 3)).astype(int)
    tree = DecisionTreeClassifier().fit(x, y)
    assert tree.predict([[np.nan]]).tolist() == [heavy]


@pytest.mark.parametrize("categorical_split", ["subset", "single"])
def test_unknown_categories_behave_like_missing(categorical_split):
    X = table(7)
    y = target("gini", X)
    tree = DecisionTreeClassifier(
        categorical_features=[2, 3], categorical_split=categorical_split
    ).fit(X, y)
    strange = X.copy()
    absent = np.isnan(X[:, [2, 3]])
    strange[:, [2, 3]] = np.where(absent, 77.0, X[:, [2, 3]])
    np.testing.assert_array_equal(tree.predict_proba(strange), tree.predict_proba(X))
    strange[:, 2] = -1.0
    X[:, 2] = np.nan
    np.testing.assert_array_equal(tree.predict_proba(strange), tree.predict_proba(X))


def test_a_category_needs_one_split_where_numbers_need_many():
    x = np.arange(8.0)[np.random.default_rng(0).integers(8, size=100)][:, None]
    y = (x[:, 0] % 2).astype(int)
    found = DecisionTreeClassifier(categorical_features=[True]).fit(x, y)
    assert found.get_n_leaves() == 2
    assert DecisionTreeClassifier(categorical_features=None).fit(x, y).get_n_leaves() == 8


def test_more_than_64_categories_have_more_than_one_word():
    rng = np.random.default_rng(1)
    x = rng.integers(200, size=3000).astype(float)[:, None]
    odd = rng.random(200) < 0.5
    y = odd[x[:, 0].astype(int)].astype(int)
    with use_engine("reference"):
        other = DecisionTreeClassifier(categorical_features=[0]).fit(x, y)
    found = DecisionTreeClassifier(categorical_features=[0]).fit(x, y)
    assert found.get_n_leaves() == 2
    assert found.score(x, y) == 1.0
    assert found.model_ == other.model_


def test_the_lowest_feature_wins_a_tie_and_then_the_lowest_threshold():
    x = np.array([0.0, 1.0, 2.0, 3.0])
    X = np.stack([np.zeros(4), x, x], axis=1)
    nodes = DecisionTreeClassifier(max_depth=1).fit(X, [0, 1, 1, 0]).model_.nodes
    assert (nodes.feature[0], nodes.threshold[0]) == (1, 0.5)


def test_rows_that_cannot_be_told_apart_stay_together():
    X = np.ones((6, 2))
    found = DecisionTreeClassifier(max_features=1).fit(X, [0, 1, 1, 2, 2, 2])
    assert found.get_n_leaves() == 1
    np.testing.assert_allclose(found.predict_proba(X[:1]), [[1 / 6, 2 / 6, 3 / 6]])


def test_features_are_drawn_until_one_can_split():
    X = np.zeros((40, 30))
    X[:, 17] = np.arange(40)
    found = DecisionTreeClassifier(max_features=1, random_state=0).fit(X, np.arange(40) % 2)
    assert found.score(X, np.arange(40) % 2) == 1.0


@pytest.mark.slow
def test_every_feature_is_drawn_and_none_more_often_than_others():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.integers(2, size=60)
    roots = [
        DecisionTreeClassifier(max_features=1, random_state=seed).fit(X, y).model_.nodes.feature[0]
        for seed in range(150)
    ]
    counts = np.bincount(roots, minlength=5)
    assert np.sum((counts - 30) ** 2 / 30) < 18.5  # chi-squared with 4 degrees: 0.1 %


@pytest.mark.slow
def test_random_thresholds_are_spread_over_the_values():
    X = np.arange(64.0)[:, None]
    y = np.arange(64) % 2
    trees = [DecisionTreeClassifier(splitter="random", random_state=s) for s in range(80)]
    roots = [tree.fit(X, y).model_.nodes.threshold[0] for tree in trees]
    assert min(roots) < 5
    assert max(roots) > 58
    assert 25 < np.mean(roots) < 38
