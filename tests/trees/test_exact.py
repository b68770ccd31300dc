"""With max_bins=None a tree is that of scikit-learn, wherever no two splits tie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import tree as peers

from ensemble_gpu import use_engine
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.products import every_pair
from tests.trees.problems import integer_weights, overlapping, without_ties

CLASSES = ["iris", "wine", "breast cancer", "digits", "twonorm", "ringnorm", "waveform"]
CASES = [(name, c) for name in CLASSES for c in ("gini", "entropy")]
CASES += [("diabetes", c) for c in ("squared_error", "poisson")]


def both(criterion: str, **params: Any) -> tuple[Any, Any]:
    """Our tree and scikit-learn's."""
    own, peer = (
        (DecisionTreeRegressor, peers.DecisionTreeRegressor)
        if criterion in ("squared_error", "poisson")
        else (DecisionTreeClassifier, peers.DecisionTreeClassifier)
    )
    return (
        own(criterion=criterion, max_bins=None, **params),
        peer(criterion=criterion, random_state=0, **params),
    )


def node_rows(estimator: Any, X: np.ndarray) -> set[frozenset[int]]:
    """The sets of rows that come together in a node."""
    path = estimator.decision_path(X).tocsc()
    return {frozenset(own.tolist()) for own in np.split(path.indices, path.indptr[1:-1])}


def assert_same_nodes(found: Any, peer: Any) -> None:
    """Equal node by node; both are in preorder."""
    nodes, tree = found.model_.nodes, peer.tree_
    assert len(nodes) == tree.node_count
    inner = tree.feature >= 0
    np.testing.assert_array_equal(nodes.feature, np.where(inner, tree.feature, LEAF))
    np.testing.assert_allclose(nodes.threshold[inner], tree.threshold[inner], rtol=1e-12)
    np.testing.assert_array_equal(nodes.left, tree.children_left)
    np.testing.assert_array_equal(nodes.right, tree.children_right)
    np.testing.assert_array_equal(nodes.n_samples, tree.n_node_samples)
    np.testing.assert_allclose(nodes.weight, tree.weighted_n_node_samples, rtol=1e-12)
    np.testing.assert_allclose(nodes.value, tree.value[:, 0, :], rtol=1e-9, atol=1e-12)
    scale = 1e-9 * tree.impurity[0]
    np.testing.assert_allclose(nodes.impurity, tree.impurity, rtol=1e-9, atol=scale)
    np.testing.assert_allclose(
        found.feature_importances_, peer.feature_importances_, rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize(("name", "criterion"), CASES)
@pytest.mark.parametrize("params", [{"max_depth": 2}, {"min_samples_leaf": 25}], ids=str)
def test_large_nodes_are_those_of_scikit_learn(name, criterion, params):
    X, y = overlapping(name)
    weights = integer_weights(len(y))
    found, peer = both(criterion, **params)
    assert_same_nodes(found.fit(X, y, weights), peer.fit(X, y, weights))
    if hasattr(peer, "predict_proba"):
        np.testing.assert_allclose(found.predict_proba(X), peer.predict_proba(X), atol=1e-12)
    np.testing.assert_allclose(found.predict(X), peer.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(found.apply(X), peer.apply(X))
    assert (found.get_depth(), found.get_n_leaves()) == (peer.get_depth(), peer.get_n_leaves())


LIMITS: dict[str, dict[str, Any]] = {
    "none": {},
    "depth": {"max_depth": 6},
    "best first": {"max_leaf_nodes": 12},
    "best first, to the end": {"max_leaf_nodes": 10_000},
    "rows to split": {"min_samples_split": 20},
    "share of rows to split": {"min_samples_split": 0.1},
    "rows of a leaf": {"min_samples_leaf": 4},
    "share of rows of a leaf": {"min_samples_leaf": 0.03},
    "weight of a leaf": {"min_weight_fraction_leaf": 0.04},
    "gain": {"min_impurity_decrease": 0.004},
    "pruning": {"ccp_alpha": 0.004},
    "all together": {
        "max_depth": 5, "max_leaf_nodes": 9, "min_samples_split": 12, "min_samples_leaf": 3,
        "min_impurity_decrease": 0.002,
    },
}  # fmt: skip


# Full trees of all data; every limit with every criterion, on two, three and ten classes.
LIMITED = [(*case, "none") for case in CASES]
LIMITED += [
    (name, criterion, limit)
    for limit in LIMITS
    if limit != "none"
    for name, criterion in [
        ("breast cancer", "gini"), ("digits", "gini"), ("waveform", "entropy"),
        ("diabetes", "squared_error"), ("diabetes", "poisson"),
    ]
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "criterion", "limit"), LIMITED)
def test_every_node_has_the_rows_that_it_has_in_scikit_learn(name, criterion, limit):
    X, y = without_ties(name)
    params = dict(LIMITS[limit])
    if criterion == "squared_error":  # impurities are squares of y there
        params |= {k: 1e4 * params[k] for k in {"min_impurity_decrease", "ccp_alpha"} & {*params}}
    weights = integer_weights(len(y))
    found, peer = both(criterion, **params)
    found.fit(X, y, weights), peer.fit(X, y, weights)
    assert node_rows(found, X) == node_rows(peer, X)
    assert found.get_n_leaves() == peer.get_n_leaves() > 1


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0, 1: 2.0}], ids=str)
@pytest.mark.parametrize("name", ["breast cancer", "waveform"])
def test_class_weights_are_those_of_scikit_learn(name, class_weight):
    X, y = overlapping(name)
    found, peer = both("gini", class_weight=class_weight, max_depth=3, min_samples_leaf=10)
    assert_same_nodes(found.fit(X, y), peer.fit(X, y))


@pytest.mark.parametrize(("name", "criterion"), [c for c in CASES if c[0] != "digits"])
def test_missing_values_take_the_side_that_scikit_learn_gives_them(name, criterion):
    X, y = without_ties(name)
    X = X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    weights = integer_weights(len(y))
    found, peer = both(criterion, max_depth=4, min_samples_leaf=8)
    found.fit(X, y, weights), peer.fit(X, y, weights)
    assert node_rows(found, X) == node_rows(peer, X)


@pytest.mark.parametrize(("name", "criterion"), CASES)
def test_the_pruning_path_is_that_of_scikit_learn(name, criterion):
    X, y = without_ties(name)
    weights = integer_weights(len(y))
    found, peer = (
        estimator.cost_complexity_pruning_path(X, y, weights)
        for estimator in both(criterion, max_depth=6)
    )
    scale = 1e-9 * peer.impurities[-1]
    np.testing.assert_allclose(found.impurities, peer.impurities, rtol=1e-9, atol=scale)
    np.testing.assert_allclose(found.ccp_alphas, peer.ccp_alphas, rtol=1e-7, atol=scale)


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_an_alpha_of_the_path_leaves_the_tree_of_the_path(criterion):
    X, y = overlapping("iris" if criterion == "gini" else "diabetes")
    X, y = X[:100], y[:100]
    estimator, _ = both(criterion)
    path = estimator.cost_complexity_pruning_path(X, y)
    assert not hasattr(estimator, "model_")
    assert (np.diff(path.ccp_alphas) >= 0).all()
    assert (np.diff(path.impurities) >= 0).all()
    sizes = []
    for alpha, risk in zip(path.ccp_alphas, path.impurities, strict=True):
        estimator.set_params(ccp_alpha=alpha * (1 + 1e-9)).fit(X, y)
        nodes = estimator.model_.nodes
        leaf = nodes.feature == LEAF
        left = float((nodes.weight * nodes.impurity)[leaf].sum() / nodes.weight[0])
        assert left >= risk * (1 - 1e-9)
        sizes.append(estimator.get_n_leaves())
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1
    assert sizes[0] > 10


@pytest.mark.parametrize("weight", [3.0, 0.1])
def test_equal_weights_change_only_the_weights_of_the_nodes(weight):
    X, y = without_ties("wine")
    plain = DecisionTreeClassifier().fit(X, y).model_.nodes
    found = DecisionTreeClassifier().fit(X, y, np.full(len(y), weight)).model_.nodes
    for name in ("feature", "threshold", "left", "right", "n_samples"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    np.testing.assert_allclose(found.weight, weight * plain.weight, rtol=1e-12)
    np.testing.assert_allclose(found.value, plain.value, atol=1e-12)


@pytest.mark.parametrize("exponent", [-300, -200, -30, 0, 30, 150])
def test_the_scale_of_a_target_changes_only_the_values(exponent):
    X, y = without_ties("diabetes")
    y = y - 152.0
    plain = DecisionTreeRegressor(max_depth=4).fit(X, y).model_.nodes
    scale = 2.0 ** np.round(exponent * np.log2(10.0))
    found = DecisionTreeRegressor(max_depth=4).fit(X, y * scale).model_.nodes
    np.testing.assert_array_equal(found.feature, plain.feature)
    np.testing.assert_array_equal(found.threshold, plain.threshold)
    np.testing.assert_allclose(found.value, plain.value * scale, rtol=1e-12)


@pytest.mark.parametrize("value", [0.0, -3.7, 1e-20, 1e-290, 1e300, -1.7e308])
def test_a_constant_target_is_predicted(value):
    X, _ = without_ties("iris")
    found = DecisionTreeRegressor().fit(X, np.full(len(X), value))
    assert found.get_n_leaves() == 1
    np.testing.assert_allclose(found.predict(X), value, rtol=1e-12)
    assert found.feature_importances_.tolist() == [0.0] * 4


def test_one_class_is_a_single_leaf():
    X, _ = without_ties("iris")
    found = DecisionTreeClassifier().fit(X, ["only"] * len(X))
    assert found.get_n_leaves() == 1
    assert found.predict(X[:2]).tolist() == ["only", "only"]
    np.testing.assert_array_equal(found.predict_proba(X), 1.0)


def many_values(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(X, y, labels): every value once; more of them than 16 bits count, and than a sample has."""
    rng = np.random.default_rng(5)
    X = np.stack([rng.permutation(n) / 2.0**18 for _ in range(3)], axis=1)  # float32 holds them
    y = np.sin(9.0 * X[:, 0]) + 3.0 * X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    return X, y, np.digitize(y, [0.0, 0.8])


@pytest.mark.slow
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_a_tree_is_exact_however_many_values_a_feature_has(criterion):
    X, y, labels = many_values(140_000)
    found, peer = both(criterion, min_samples_leaf=3_000)
    target = y if criterion == "squared_error" else labels
    assert_same_nodes(found.fit(X, target), peer.fit(X, target))
    assert len(found.model_.nodes) > 30


@pytest.mark.slow
def test_a_full_tree_tells_any_two_values_apart():
    X, _, _ = many_values(140_000)
    labels = np.random.default_rng(0).integers(2, size=len(X))
    assert DecisionTreeClassifier(max_bins=None).fit(X[:, :1], labels).score(X[:, :1], labels) == 1


WIDE: list[dict[str, Any]] = [
    {"criterion": "gini"},
    {"criterion": "entropy", "min_samples_leaf": 3},
    {"criterion": "error", "max_leaf_nodes": 30},
    {"criterion": "gini", "splitter": "random", "max_features": 2},
    {"criterion": "squared_error", "min_weight_fraction_leaf": 0.01},
    {"criterion": "squared_error", "monotonic_cst": [0, 1, 0], "max_features": 2},
    {"criterion": "poisson"},
]


@pytest.mark.slow
@every_pair("params, holes, n_classes", WIDE, [False, True], [2, 3], ids=str)
def test_many_codes_give_one_tree_on_both_engines(params, holes, n_classes):
    X, y, labels = many_values(5_000)
    if holes:
        X[::9, 0] = X[::7, 1] = np.nan
    real = params["criterion"] in ("squared_error", "poisson")
    target = np.exp(y) if real else np.minimum(labels, n_classes - 1)
    estimator = DecisionTreeRegressor if real else DecisionTreeClassifier
    own = estimator(max_bins=None, max_depth=7, random_state=0, **params)
    alone = own.set_params(n_jobs=1).fit(X, target).model_
    assert len(alone.nodes) > 20
    assert own.set_params(n_jobs=2).fit(X, target).model_ == alone
    with use_engine("reference"):
        assert own.fit(X, target).model_ == alone


@pytest.mark.slow
def test_more_codes_than_16_bits_give_one_tree_on_both_engines():
    X, _, labels = many_values(70_000)
    own = DecisionTreeClassifier(max_bins=None, max_depth=3)
    alone = own.fit(X, labels).model_
    with use_engine("reference"):
        assert own.fit(X, labels).model_ == alone


@pytest.mark.parametrize("shift", [0.0, 1e9, -3e-5])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_leaf_of_one_row_has_its_target_to_the_last_bit(weighted, scale, shift):
    rng = np.random.default_rng(2)
    X = rng.permutation(1000).reshape(-1, 1).astype(np.float64)
    y = scale * (rng.normal(size=1000) + shift)
    weights = rng.uniform(0.5, 1.5, size=1000) if weighted else None
    found = DecisionTreeRegressor(max_bins=None).fit(X, y, weights)
    assert found.get_n_leaves() == len(np.unique(y)) == 1000
    np.testing.assert_array_equal(found.predict(X), y)


def test_means_of_a_skewed_target_are_those_of_scikit_learn():
    rng = np.random.default_rng(3)
    X = rng.random((4000, 3)).astype(np.float32).astype(np.float64)
    y = np.exp(4.0 * X[:, 0] + rng.normal(size=4000))
    found, peer = both("squared_error", max_leaf_nodes=40)
    predicted = peer.fit(X, y).predict(X)
    np.testing.assert_allclose(found.fit(X, y).predict(X), predicted, rtol=1e-12)
