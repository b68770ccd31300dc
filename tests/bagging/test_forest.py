"""Random forests: bags, predictions out of bag, weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from ensemble_gpu.bagging.random_forest import RandomForestClassifier, RandomForestRegressor
from ensemble_gpu.trees.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.bagging.forests import bag, trees_of
from tests.datasets import random_data

X, Y = load_wine(return_X_y=True)
X_REAL, Y_REAL = load_diabetes(return_X_y=True)


def test_the_forest_is_the_mean_of_its_trees():
    forest = RandomForestClassifier(7, random_state=0).fit(X, Y)
    np.testing.assert_allclose(
        forest.predict_proba(X), trees_of(forest, X).mean(axis=0), atol=1e-15
    )
    np.testing.assert_array_equal(
        forest.predict(X), forest.classes_[np.argmax(forest.predict_proba(X), axis=1)]
    )
    forest = RandomForestRegressor(7, random_state=0).fit(X_REAL, Y_REAL)
    np.testing.assert_allclose(
        forest.predict(X_REAL), trees_of(forest, X_REAL).mean(axis=0)[:, 0], rtol=1e-14
    )


@pytest.mark.parametrize("max_samples", [None, 40, 0.3])
@pytest.mark.parametrize("max_features", [None, 3])
def test_a_tree_of_the_forest_is_the_tree_of_its_bag(max_samples, max_features):
    draws = {None: len(Y), 40: 40, 0.3: round(0.3 * len(Y))}[max_samples]
    forest = RandomForestClassifier(
        3, max_samples=max_samples, max_features=max_features, random_state=5
    ).fit(X, Y)
    for t in range(3):
        counts = bag(forest, t, X, Y, draws)
        nodes = forest.model_.tree(t).nodes
        assert counts.sum() == draws == nodes.weight[0]
        assert (counts > 0).sum() == nodes.n_samples[0]
        shares = np.bincount(Y, weights=counts) / draws
        np.testing.assert_allclose(nodes.value[0], shares)
        leaves = nodes.feature == -1
        assert nodes.weight[leaves].sum() == draws
        if max_features is None:
            alone = DecisionTreeClassifier().fit(X, Y, counts)
            grown = forest.model_.tree(t)(X)
            seen = counts > 0
            np.testing.assert_array_equal(grown[seen], alone.predict_proba(X)[seen])


def test_without_bootstrap_and_with_all_features_every_tree_is_the_decision_tree():
    forest = RandomForestRegressor(3, bootstrap=False, random_state=1).fit(X_REAL, Y_REAL)
    alone = DecisionTreeRegressor().fit(X_REAL, Y_REAL).model_
    for t in range(3):
        assert forest.model_.tree(t) == alone


@pytest.mark.parametrize("max_bins", [None, 255, 8])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_probabilities_out_of_bag_are_those_of_the_trees_that_lack_the_row(
    max_bins, missing, splitter
):
    rows = X.copy()
    if missing:
        rows[np.random.default_rng(0).random(rows.shape) < 0.2] = np.nan
    forest = RandomForestClassifier(
        30, oob_score=True, random_state=2, max_bins=max_bins, splitter=splitter
    ).fit(rows, Y)
    out = np.array([bag(forest, t, rows, Y) == 0 for t in range(30)])
    mean = (trees_of(forest, rows) * out[:, :, None]).sum(axis=0) / out.sum(axis=0)[:, None]
    np.testing.assert_allclose(forest.oob_decision_function_, mean, rtol=1e-12, atol=1e-15)
    assert forest.oob_score_ == np.mean(np.argmax(mean, axis=1) == Y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "params",
    [{}, {"criterion": "poisson"}, {"max_bins": 8}, {"ccp_alpha": 20.0},
     {"monotonic_cst": [0, 0, 1, 1, 0, 0, -1, 0, 0, 0]}],
    ids=str,
)  # fmt: skip
def test_means_out_of_bag_are_those_of_the_trees_that_lack_the_row(params):
    forest = RandomForestRegressor(30, oob_score=True, random_state=2, **params)
    forest.fit(X_REAL, Y_REAL)
    out = np.array([bag(forest, t, X_REAL, Y_REAL) == 0 for t in range(30)])
    mean = (trees_of(forest, X_REAL)[:, :, 0] * out).sum(axis=0) / out.sum(axis=0)
    np.testing.assert_allclose(forest.oob_prediction_, mean, rtol=1e-12)
    r2 = 1 - np.sum((Y_REAL - mean) ** 2) / np.sum((Y_REAL - Y_REAL.mean()) ** 2)
    assert forest.oob_score_ == pytest.approx(r2, rel=1e-9)


def test_rows_without_weight_have_no_prediction_out_of_bag():
    weights = np.ones(len(Y))
    weights[::5] = 0.0
    kept = weights > 0
    forest = RandomForestClassifier(40, oob_score=True, random_state=0).fit(X, Y, weights)
    assert np.isnan(forest.oob_decision_function_[~kept]).all()
    without = RandomForestClassifier(40, oob_score=True, random_state=0).fit(X[kept], Y[kept])
    np.testing.assert_array_equal(
        forest.oob_decision_function_[kept], without.oob_decision_function_
    )
    assert forest.oob_score_ == without.oob_score_


def test_the_score_out_of_bag_is_weighted_by_the_rows_and_not_by_the_classes():
    weights = np.random.default_rng(0).integers(1, 6, size=len(Y)) + 0.5
    for class_weight in (None, {0: 9.0}, "balanced", "balanced_subsample"):
        forest = RandomForestClassifier(
            40, oob_score=True, class_weight=class_weight, random_state=0
        ).fit(X, Y, weights)
        right = np.argmax(forest.oob_decision_function_, axis=1) == Y
        assert forest.oob_score_ == pytest.approx(np.average(right, weights=weights), rel=1e-6)


def test_a_metric_of_the_users_is_given_labels():
    y = np.array(["a", "b", "c"])[Y]
    seen = []

    def metric(truth: np.ndarray, found: np.ndarray) -> float:
        seen.append((truth, found))
        return 0.25

    forest = RandomForestClassifier(40, oob_score=metric, random_state=0).fit(X, y)
    assert forest.oob_score_ == 0.25
    np.testing.assert_array_equal(seen[0][0], y)
    assert set(seen[0][1]) == {"a", "b", "c"}


def test_rows_that_every_tree_has_seen_are_reported():
    with pytest.warns(UserWarning, match="no prediction out of bag") as caught:
        forest = RandomForestClassifier(2, oob_score=True, random_state=0).fit(X, Y)
    assert caught[0].filename == __file__
    seen = (bag(forest, 0, X, Y) > 0) & (bag(forest, 1, X, Y) > 0)
    np.testing.assert_array_equal(np.isnan(forest.oob_decision_function_[:, 0]), seen)
    assert 0 <= forest.oob_score_ <= 1


def test_without_warm_start_a_second_fit_starts_anew():
    forest = RandomForestClassifier(40, oob_score=True, random_state=0).fit(X, Y)
    first = forest.model_
    forest.set_params(oob_score=False).fit(X[:, :5], Y)
    assert not hasattr(forest, "oob_score_")
    assert forest.n_features_in_ == 5
    assert forest.set_params(oob_score=True).fit(X, Y).model_ == first


@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample"])
def test_balanced_classes_weigh_the_same(class_weight):
    rows = np.flatnonzero((Y < 2) & ((Y == 0) | (np.arange(len(Y)) % 9 == 0)))
    forest = RandomForestClassifier(20, class_weight=class_weight, random_state=0)
    forest.fit(X[rows], Y[rows])
    roots = forest.model_.nodes.value[forest.model_.starts]
    plain = np.mean(Y[rows])
    if class_weight == "balanced_subsample":
        np.testing.assert_allclose(roots, 0.5, atol=1e-4)
    else:
        assert np.abs(roots - 0.5).max() > 0.02
        np.testing.assert_allclose(roots.mean(axis=0), 0.5, atol=0.12)
    assert plain < 0.2


def test_balanced_bags_of_heavy_rare_rows_do_not_overflow():
    n = 40_000
    x = np.random.default_rng(0).normal(size=(n, 2))
    y = (np.arange(n) < 2).astype(int)
    weights = np.where(y == 1, 1e9, 1.0) + 0.5
    forest = RandomForestClassifier(
        3, class_weight="balanced_subsample", max_depth=3, random_state=0
    ).fit(x, y, weights)
    assert (forest.model_.nodes.weight > 0).all()
    assert (forest.model_.nodes.value >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [RandomForestClassifier, DecisionTreeClassifier])
def test_rows_of_weight_zero_are_as_if_absent(kind):
    data = random_data(3).with_missing()
    weights = np.random.default_rng(0).integers(0, 3, size=len(data.y)).astype(float)
    kept = weights > 0
    for params in ({}, {"min_samples_leaf": 0.02, "class_weight": "balanced"}):
        found = kind(random_state=0, **params).fit(data.X, data.y, weights)
        other = kind(random_state=0, **params).fit(data.X[kept], data.y[kept], weights[kept])
        assert found.model_ == other.model_


@pytest.mark.parametrize("kind", ["class", "real"])
def test_a_whole_weight_is_a_repetition(kind):
    weights = np.random.default_rng(0).integers(1, 4, size=len(Y))
    y = Y if kind == "class" else X[:, 0] + Y
    own = DecisionTreeClassifier() if kind == "class" else DecisionTreeRegressor()
    found = own.fit(X, y, weights).model_.nodes
    again = own.fit(np.repeat(X, weights, axis=0), np.repeat(y, weights)).model_.nodes
    for name in ("feature", "threshold", "left", "right", "weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
    np.testing.assert_allclose(found.value, again.value, rtol=1e-12)


def test_apply_and_decision_path_agree():
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    leaves = forest.apply(X)
    path, pointers = forest.decision_path(X)
    assert leaves.shape == (len(Y), 5)
    assert path.shape == (len(Y), pointers[-1])
    for t in range(5):
        own = path[:, pointers[t] : pointers[t + 1]].toarray()
        assert (own[np.arange(len(Y)), leaves[:, t]] == 1).all()
        nodes = forest.model_.tree(t).nodes
        assert (nodes.feature[leaves[:, t]] == -1).all()
        assert own[:, 0].all()


def test_extra_trees_are_rougher_than_trees_with_the_best_thresholds():
    X_bc, y_bc = load_breast_cancer(return_X_y=True)
    best = RandomForestClassifier(10, random_state=0).fit(X_bc, y_bc).model_
    extra = RandomForestClassifier(10, splitter="random", bootstrap=False, random_state=0)
    extra.fit(X_bc, y_bc)
    assert len(extra.model_.nodes) > 1.5 * len(best.nodes)
    assert extra.score(X_bc, y_bc) == 1.0


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_no_row_out_of_the_bag_is_an_error(kind):
    forest = kind(3, oob_score=True, random_state=0)
    with pytest.raises(ValueError, match="oob_score needs rows out of the bag: every row is in"):
        forest.fit([[1.0]], [1])
    assert not hasattr(forest, "model_")


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_the_order_of_the_rows_does_not_matter(kind):
    X_, y = (X, Y) if kind is RandomForestClassifier else (X_REAL, Y_REAL)
    order = np.random.default_rng(0).permutation(len(y))
    first = kind(40, oob_score=True, random_state=0).fit(X_, y)
    other = kind(40, oob_score=True, random_state=0).fit(X_[order], y[order])
    assert first.model_ == other.model_
    name = "oob_decision_function_" if kind is RandomForestClassifier else "oob_prediction_"
    np.testing.assert_array_equal(getattr(first, name)[order], getattr(other, name))


def test_whole_weights_are_repetitions_to_draw_from():
    weights = np.random.default_rng(0).integers(0, 4, size=len(Y))
    found = RandomForestClassifier(6, random_state=0).fit(X, Y, weights)
    again = RandomForestClassifier(6, random_state=0).fit(
        np.repeat(X, weights, axis=0), np.repeat(Y, weights)
    )
    nodes, others = found.model_.nodes, again.model_.nodes
    for name in ("feature", "threshold", "weight", "value"):
        np.testing.assert_array_equal(getattr(nodes, name), getattr(others, name))


def test_other_weights_multiply_the_counts():
    weights = np.where(Y == 0, 100.5, 0.5)
    forest = RandomForestClassifier(6, random_state=0).fit(X, Y, weights)
    for t in range(6):
        counts = bag(forest, t, X, Y, weights=weights)
        shares = np.bincount(Y, weights=counts * weights)
        root = forest.model_.tree(t).nodes
        np.testing.assert_allclose(root.value[0], shares / shares.sum(), rtol=1e-9)
        assert root.weight[0] == pytest.approx(shares.sum(), rel=1e-9)


@pytest.mark.parametrize(
    "params", [{}, {"class_weight": "balanced_subsample"}, {"max_samples": 0.3}], ids=str
)
def test_leaves_keep_their_share_of_the_weight_of_the_bag(params):
    weights = np.random.default_rng(0).gamma(1.0, size=len(Y))
    forest = RandomForestClassifier(8, min_weight_fraction_leaf=0.1, random_state=0, **params)
    model = forest.fit(X, Y, weights).model_
    for t in range(8):
        nodes = model.tree(t).nodes
        assert nodes.weight.min() >= 0.1 * nodes.weight[0] * (1 - 1e-9)
        assert model.n_leaves(t) > 2
