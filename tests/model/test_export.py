"""export_text: every branch and every leaf in words."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.tree import export_text as sklearn_text

from ensemble_gpu import BoostingClassifier
from ensemble_gpu.bagging.random_forest import RandomForestClassifier
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.export import export_text
from ensemble_gpu.model.forest import Forest, Nodes
from ensemble_gpu.trees.tree import DecisionTreeClassifier as OwnTree
from tests.boosters import plain
from tests.model.trees import from_sklearn, random_forest

IRIS = load_iris()


def iris(**options) -> tuple[DecisionTreeClassifier, Forest]:
    peer = DecisionTreeClassifier(random_state=0, **options)
    peer.fit(IRIS.data.astype(np.float32), IRIS.target)
    return peer, from_sklearn(peer)


def tree_of_three_tests(missing_left: bool = True) -> Forest:
    """colour in a set, then size <= 1.5, then whether weight is missing."""
    L = LEAF
    nodes = Nodes(
        feature=np.array([0, 1, L, L, 2, L, L]),
        threshold=np.array([np.nan, 1.5, np.nan, np.nan, np.inf, np.nan, np.nan]),
        missing_left=np.array([missing_left, True, False, False, False, False, False]),
        left=np.array([1, 2, L, L, 5, L, L]),
        right=np.array([4, 3, L, L, 6, L, L]),
        subset=np.array([0, L, L, L, L, L, L]),
        value=np.arange(7.0)[:, None] / 2,
        impurity=np.ones(7),
        n_samples=np.array([10, 6, 4, 2, 4, 3, 1]),
        weight=np.array([10, 6, 4, 2, 4, 3, 1.0]),
    )
    subsets = np.array([[0b1010]], dtype=np.uint64)
    return Forest(nodes, [0], 3, subsets=subsets, categories={0: np.array([1.0, 2.5, 7.0, 9.0])})


NAMES = ["colour", "size", "weight"]


def test_tests_of_every_kind_and_where_missing_values_go():
    assert export_text(tree_of_three_tests(), feature_names=NAMES, decimals=1) == (
        "|--- colour in {2.5, 9} or missing\n"
        "|   |--- size <= 1.5 or missing\n"
        "|   |   |--- value: 1.0\n"
        "|   |--- size > 1.5\n"
        "|   |   |--- value: 1.5\n"
        "|--- colour not in {2.5, 9}\n"
        "|   |--- weight is present\n"
        "|   |   |--- value: 2.5\n"
        "|   |--- weight is missing\n"
        "|   |   |--- value: 3.0\n"
    )


def test_categories_can_be_named():
    text = export_text(
        tree_of_three_tests(False),
        feature_names=NAMES,
        category_names={0: ["red", "green", "blue", "grey"]},
    )
    assert "|--- colour in {green, grey}\n" in text
    assert "|--- colour not in {green, grey} or missing\n" in text


def test_categories_can_be_named_by_column():
    colours = ["red", "green", "blue", "grey"]
    forest = tree_of_three_tests()
    by_name = export_text(forest, feature_names=NAMES, category_names={"colour": colours})
    assert by_name == export_text(forest, feature_names=NAMES, category_names={0: colours})


LABELS = ["apple", "fig", "kiwi", "plum"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(LABELS * 10),
        pl.Series(LABELS * 10, dtype=pl.Categorical),
        pl.Series(LABELS * 10, dtype=pl.Enum(["plum", "kiwi", "fig", "apple"])),
    ],
    ids=["pandas", "polars", "Enum"],
)
@pytest.mark.parametrize("kind", [OwnTree, RandomForestClassifier])
def test_an_estimator_fitted_on_labels_shows_them(column, kind):
    frame = (pl if isinstance(column, pl.Series) else pd).DataFrame({"fruit": column})
    text = export_text(kind(random_state=0).fit(frame, np.array([0, 1, 1, 0] * 10)))
    assert "fruit in {apple, plum}" in text or "fruit in {fig, kiwi}" in text
    renamed = export_text(
        OwnTree().fit(frame, np.array([0, 1, 1, 0] * 10)), category_names={"fruit": list("AFKP")}
    )
    assert "fruit in {A, P}" in renamed or "fruit in {F, K}" in renamed


def test_only_the_labels_of_training_are_counted():
    frame = pd.DataFrame({"x": range(40), "fruit": pd.Categorical(LABELS * 10)})
    weights = np.array([1.0, 0.0, 1.0, 1.0] * 10)  # no fig
    tree = OwnTree().fit(frame, np.array([0, 1, 1, 0] * 10), sample_weight=weights)
    text = export_text(tree)
    assert "fruit in {kiwi}" in text or "fruit in {apple, plum}" in text
    with pytest.raises(ValueError, match=r"category_names\['fruit'\] must hold 3 names"):
        export_text(tree, category_names={"fruit": LABELS})


def test_categories_that_are_numbers_are_shown_as_numbers():
    X = np.array([[3.0], [5.0], [8.0], [9.0]] * 10)
    labelled = pd.DataFrame({"zip": pd.Categorical(X[:, 0].astype(int))})
    y = np.array([0, 1, 1, 0] * 10)
    for tree in (OwnTree(categorical_features=[0]).fit(X, y), OwnTree().fit(labelled, y)):
        text = export_text(tree)
        assert " in {3, 9}" in text or " in {5, 8}" in text


def test_boosted_trees_show_values_and_no_classes():
    two = BoostingClassifier(**plain(max_depth=2, n_estimators=2)).fit(IRIS.data, IRIS.target > 0)
    assert export_text(two).count("value: ") == two.model_.n_leaves()
    three = BoostingClassifier(**plain(max_depth=2, n_estimators=2)).fit(IRIS.data, IRIS.target)
    for text in (export_text(three), export_text(three, class_names=IRIS.target_names)):
        assert "class" not in text
        values = [[float(v) for v in part.split("]")[0].split(", ")]
                  for part in text.split("value: [")[1:]]  # fmt: skip
        leaves = three.model_.tree(0).nodes
        expected = leaves.value[leaves.feature == LEAF]
        np.testing.assert_allclose(values, expected, atol=5.1e-4)


def test_the_text_is_scikit_learns_with_missing_values():
    peer, forest = iris()
    options = {"feature_names": list(IRIS.feature_names), "class_names": list(IRIS.target_names)}
    expected = sklearn_text(peer, decimals=3, **options)
    found = export_text(forest, **options)
    in_our_words = [
        line.replace("<=  ", "<= ").replace(">  ", "> ") for line in expected.splitlines()
    ]
    assert [line.removesuffix(" or missing") for line in found.splitlines()] == in_our_words
    assert found.count(" or missing") == forest.n_leaves() - 1


def test_values_of_a_regression():
    X, y = load_diabetes(return_X_y=True)
    peer = DecisionTreeRegressor(max_depth=2).fit(X.astype(np.float32), y)
    text = from_sklearn(peer).to_text(decimals=1)
    leaves = [v for v, left in zip(peer.tree_.value.ravel(), peer.tree_.children_left, strict=True)
              if left == LEAF]  # fmt: skip
    assert [float(part.split("\n")[0]) for part in text.split("value: ")[1:]] == [
        pytest.approx(v, abs=0.051) for v in leaves
    ]


def test_an_estimator_brings_its_own_names():
    estimator = SimpleNamespace(
        model_=iris(max_depth=1)[1],
        classes_=IRIS.target_names,
        feature_names_in_=np.array(["a", "b", "c", "d"], dtype=object),
    )
    text = export_text(estimator)
    assert text.startswith(("|--- c <= ", "|--- d <= "))
    assert "class: setosa" in text


def test_weights_are_shown_when_asked_for():
    text = export_text(iris(max_depth=1)[1], class_names=IRIS.target_names, show_weights=True)
    assert "class: setosa, values: [1.000, 0.000, 0.000], rows: 50, weight: 50.000\n" in text


def test_branches_below_the_depth_are_cut():
    forest = iris()[1]
    text = forest.to_text(max_depth=1)
    assert text.count("... (") == 2
    cut = sum(int(part.split(" ")[0]) for part in text.split("... (")[1:])
    assert cut + text.count("value") + text.count("... (") + 2 == len(forest.nodes)
    assert forest.to_text(max_depth=forest.depth()) == forest.to_text()


def test_a_lone_leaf_is_one_line():
    assert random_forest(depth=0, n_outputs=1).to_text().count("\n") == 1


def test_a_chosen_tree_is_the_one_written():
    forest = random_forest()
    assert forest.to_text(3) == forest.tree(3).to_text()
    assert forest.to_text(3) != forest.to_text(2)


def test_small_negative_numbers_do_not_become_minus_zero():
    nodes = tree_of_three_tests().nodes
    text = Forest(
        Nodes(**vars(nodes) | {"value": -1e-9 * np.ones((7, 1))}),
        [0], 3, subsets=np.array([[2]], dtype=np.uint64),
    ).to_text()  # fmt: skip
    assert "value: 0.000\n" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tree": 1}, "tree must be an integer from 0 to 0; got 1"),
        ({"feature_names": ["a"]}, "feature_names must hold 3 names, one a feature; got 1"),
        ({"class_names": ["a", "b"]}, "class_names must hold 1 names, one an output; got 2"),
        ({"category_names": {0: ["red", "blue"]}}, r"names\[0\] must hold 4 names, .*; got \['red"),
        ({"category_names": {0: "rgbw"}}, r"category_names\[0\] must hold 4 names, .*; got 'rgbw'"),
        ({"category_names": {7: []}}, r"by categorical features, \[0\] or \['feature 0'\]; got 7"),
        ({"category_names": {1: ["a"]}}, "must be keyed by categorical features, .*; got 1"),
        ({"category_names": {"size": ["a"]}}, "keyed by categorical features, .*; got 'size'"),
        ({"decimals": -1}, "decimals must be an integer >= 0; got -1"),
        ({"max_depth": -1}, "max_depth must be None or an integer >= 0; got -1"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        export_text(tree_of_three_tests(), **options)


def test_names_of_categories_that_are_no_dict_are_refused():
    with pytest.raises(TypeError, match=r"category_names must be a dict of .*; got \['red'\]"):
        export_text(tree_of_three_tests(), category_names=["red"])


def test_names_for_a_tree_without_categories_are_refused():
    with pytest.raises(ValueError, match="of which there are none; got 0"):
        export_text(iris()[1], category_names={0: ["a"]})


def test_what_is_no_forest_is_refused():
    with pytest.raises(TypeError, match="model must be a Forest or a fitted estimator of trees"):
        export_text("tree")
