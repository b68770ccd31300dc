"""plot_tree: what is drawn is what the tree holds."""

from __future__ import annotations

import itertools
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ensemble_gpu.tree_plotting import plot_tree
from tests.model.trees import from_sklearn, random_forest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.patches import FancyBboxPatch  # noqa: E402

IRIS = load_iris()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


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


def test_sets_of_categories_are_cut_short_and_the_tree_is_named():
    forest = random_forest()
    for t in range(len(forest)):
        ax = plot_tree(forest, t)
        assert ax.get_title() == f"Tree {t} of 5"
        sets = [text for text in texts(ax) if " in {" in text]
        assert all(text.count(",") <= 4 for text in sets)


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


def test_importing_the_file_does_not_import_matplotlib():
    code = "import sys, ensemble_gpu.tree_plotting; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
