"""plot_tree: what is drawn is what the tree holds."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensemble_gpu import BoostingClassifier
from ensemble_gpu.kernels.tree_protocol import LEAF
from ensemble_gpu.model.export import _cut
from ensemble_gpu.plotting.tree import MOST_LETTERS, plot_tree
from ensemble_gpu.trees.tree import DecisionTreeClassifier as OwnTree
from tests.boosters import plain
from tests.model.trees import from_sklearn, random_forest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.patches import FancyBboxPatch  # noqa: E402

IRIS = load_iris()


@pytest.fixture(scope="module")
def iris():
    peer = DecisionTreeClassifier(random_state=0)
    return from_sklearn(peer.fit(IRIS.data.astype(np.float32), IRIS.target))


def boxes(ax):
    return [p for p in ax.patches if isinstance(p, FancyBboxPatch)]


def texts(ax):
    return [t.get_text() for t in ax.texts]


def test_every_node_has_a_box_and_every_branch_a_line(iris):
    ax = plot_tree(iris, feature_names=IRIS.feature_names, class_names=IRIS.target_names)
    ax.figure.canvas.draw()
    assert len(boxes(ax)) == len(iris.nodes)
    lines = [
        line for line in ax.get_lines() if line.get_linestyle() == "-" and len(line.get_xdata()) > 1
    ]
    assert len(lines) == len(iris.nodes) - 1
    assert "petal width (cm) ≤ 0.800" in texts(ax)
    assert texts(ax).count("setosa") == 1
    assert "150 rows" in texts(ax)


def test_boxes_do_not_overlap(iris):
    places = sorted((b.get_y(), b.get_x(), b.get_width()) for b in boxes(plot_tree(iris)))
    for (level, x, width), (next_level, next_x, _) in itertools.pairwise(places):
        assert next_level != level or next_x >= x + width


def test_texts_stay_inside_their_boxes(iris):
    ax = plot_tree(iris, feature_names=IRIS.feature_names, class_names=IRIS.target_names)
    ax.figure.canvas.draw()
    width = boxes(ax)[0].get_window_extent().width
    assert max(t.get_window_extent().width for t in ax.texts) <= width


def test_missing_values_have_one_dot_a_test(iris):
    dots = [line for line in plot_tree(iris).get_lines() if line.get_marker() == "o"]
    assert len(dots) == iris.n_leaves() - 1


def test_strips_show_the_shares_of_the_classes(iris):
    ax = plot_tree(iris, class_names=IRIS.target_names)
    widths = [[bar.get_width() for bar in container] for container in ax.containers]
    strips = np.array(widths).reshape(-1, 3)
    assert len(strips) == len(iris.nodes)
    shares = strips / strips.sum(axis=1, keepdims=True)
    for value in iris.nodes.value:
        assert np.isclose(shares, value).all(axis=1).any()


def test_levels_below_the_depth_are_cut(iris):
    ax = plot_tree(iris, max_depth=1)
    assert texts(ax).count("...") == 2
    assert len(boxes(ax)) == 5


def test_a_regression_shows_values():
    X, y = load_diabetes(return_X_y=True)
    forest = from_sklearn(DecisionTreeRegressor(max_depth=2).fit(X.astype(np.float32), y))
    ax = plot_tree(forest, decimals=1)
    ax.figure.canvas.draw()
    for value, left in zip(forest.nodes.value[:, 0], forest.nodes.left, strict=True):
        assert any(f"{value:.1f}" in text for text in texts(ax)), left
    assert not ax.containers


def test_the_picture_is_drawn_on_the_axes_given(iris):
    _, ax = plt.subplots(figsize=(3, 2))
    estimator = SimpleNamespace(model_=iris, classes_=IRIS.target_names)
    assert plot_tree(estimator, ax=ax) is ax
    assert ax.get_legend().get_texts()[0].get_text() == "setosa"


@pytest.mark.slow
def test_sets_of_categories_are_cut_short_and_the_tree_is_named():
    forest = random_forest()
    for t in range(len(forest)):
        ax = plot_tree(forest, t)
        assert ax.get_title() == f"Tree {t} of 5"
        sets = [text.split("{")[1] for text in texts(ax) if " in {" in text]
        assert all(len(inside) <= MOST_LETTERS + 1 for inside in sets)
        assert any(inside.endswith(" more}") for inside in sets)


@pytest.mark.parametrize(
    ("words", "limit", "shown"),
    [
        ([], 9, []),
        (["fig"], 9, ["fig"]),
        (["fig", "kiwi", "plum"], 15, ["fig", "kiwi", "plum"]),
        (["fig", "kiwi", "plum"], 14, ["fig", "2 more"]),
        (["fig", "kiwi", "plum", "pear"], 17, ["fig", "kiwi", "2 more"]),
        (["gooseberry", "fig"], 6, ["goose…", "1 more"]),
    ],
)
def test_words_are_cut_where_the_limit_is_reached(words, limit, shown):
    assert _cut(words, limit) == shown


@pytest.fixture(scope="module")
def fruit():
    rng = np.random.default_rng(0)
    names = ["apple", "banana", "cherry", "dragon fruit", "elderberry", "honeydew melon"]
    kind, size = rng.choice(names, 300), rng.normal(size=300)
    sweet = np.where(np.isin(kind, names[::2]), size > 0.3, size < -0.2)
    frame = pd.DataFrame({"fruit": pd.Categorical(kind), "size": size})
    return OwnTree(max_depth=3).fit(frame, sweet)


def test_labels_of_categories_are_drawn_and_stay_inside_their_boxes(fruit):
    ax = plot_tree(fruit)
    ax.figure.canvas.draw()
    assert any("fruit in {" in text and "banana" in text for text in texts(ax))
    width = boxes(ax)[0].get_window_extent().width
    assert max(t.get_window_extent().width for t in ax.texts) <= width


def test_a_long_line_does_not_make_the_others_small(fruit):
    ax = plot_tree(fruit)
    sizes = {t.get_text(): t.get_fontsize() for t in ax.texts}
    assert max(sizes.values()) > min(sizes.values())
    assert next(size for text, size in sizes.items() if text.startswith("size")) == 9.0


def test_names_of_categories_are_checked(fruit):
    with pytest.raises(ValueError, match=r"category_names\['fruit'\] must hold 6 names"):
        plot_tree(fruit, category_names={"fruit": ["a"]})


def test_a_boosted_tree_of_several_classes_shows_scores():
    model = BoostingClassifier(**plain(max_depth=2, n_estimators=2)).fit(IRIS.data, IRIS.target)
    ax = plot_tree(model)
    nodes = model.model_.tree(0).nodes
    leaves = nodes.value[nodes.feature == LEAF]
    for scores in leaves:
        assert "[" + ", ".join(f"{s:.3f}" for s in scores) + "]" in texts(ax)
    heights = [[-bar.get_height() for bar in container] for container in ax.containers]
    np.testing.assert_allclose(heights / np.abs(heights).max(), leaves / np.abs(leaves).max())
    assert not {"0", "1", "2"} & set(texts(ax))
    assert [t.get_text() for t in ax.get_legend().get_texts()][:3] == ["0", "1", "2"]


def test_inner_nodes_of_a_boosted_tree_show_no_value():
    model = BoostingClassifier(**plain(max_depth=2, n_estimators=2)).fit(IRIS.data, IRIS.target > 0)
    assert "150 rows" in texts(plot_tree(model))
    assert not any("rows, " in text for text in texts(plot_tree(model)))


def test_a_lone_leaf_can_be_drawn():
    ax = plot_tree(random_forest(depth=0, n_outputs=1))
    ax.figure.canvas.draw()
    assert len(boxes(ax)) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [({"tree": 7}, "from 0 to 0; got 7"), ({"max_depth": 1.5}, "max_depth must be None or an")],
)
def test_bad_options_are_refused(iris, options, message):
    with pytest.raises(ValueError, match=message):
        plot_tree(iris, **options)
