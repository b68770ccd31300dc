"""Pictures of decision regions hold what the estimator answers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression

from ensemble_gpu import AdaBoostClassifier, NeighboursClassifier
from ensemble_gpu.plotting import plot_decision_regions, plot_shape_functions
from tests.places import DEVICE

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)
from matplotlib.colors import to_rgb  # noqa: E402

from ensemble_gpu.drawing.axes import BLUE, RED  # noqa: E402


@pytest.fixture(scope="module")
def two():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, size=(120, 2))
    y = np.where((X**2).sum(axis=1) < 0.6, "inside", "outside")
    return AdaBoostClassifier(n_estimators=15).fit(X, y), X, y


@pytest.fixture(scope="module")
def three():
    X, y = load_iris(return_X_y=True)
    return NeighboursClassifier(7).fit(X, y), X, y


def centres(ax, n):
    """The points of the grid, along each axis."""
    return np.linspace(*ax.get_xlim(), n), np.linspace(*ax.get_ylim(), n)


def test_classes_are_drawn_in_their_colours(two):
    model, X, y = two
    ax = plot_decision_regions(model, X, y, resolution=21)
    image = ax.images[0].get_array()
    across, up = centres(ax, 21)
    points = np.array([[a, b] for b in up for a in across])
    is_second = (model.predict(points) == "outside").reshape(21, 21)
    for colour, where in ((BLUE, ~is_second), (RED, is_second)):
        np.testing.assert_allclose(
            image[where], np.broadcast_to(1.0 - 0.45 * (1.0 - np.array(to_rgb(colour))),
                                          (where.sum(), 3)), atol=1e-12)  # fmt: skip
    inside, outside = ax.collections
    np.testing.assert_array_equal(inside.get_offsets(), X[y == "inside"])
    np.testing.assert_array_equal(outside.get_offsets(), X[y == "outside"])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["inside", "outside"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 1")
    ax.figure.canvas.draw()


@pytest.mark.slow
@pytest.mark.parametrize("what", ["score", "probability"])
def test_scores_and_probabilities_are_drawn_with_their_boundary(two, what):
    model, X, _ = two
    ax = plot_decision_regions(model, X, what=what, resolution=15)
    mesh = ax.collections[0]
    across, up = centres(ax, 15)
    points = np.array([[a, b] for b in up for a in across])
    expected = model.decision_function(points)
    if what == "probability":
        expected = model.predict_proba(points)[:, 1]
    np.testing.assert_allclose(mesh.get_array().ravel(), expected, rtol=1e-12)
    low, high = mesh.get_clim()
    assert low + high == pytest.approx(1.0 if what == "probability" else 0.0)
    assert len(ax.collections) == 2  # and the boundary
    assert ax.get_legend() is None
    ax.figure.canvas.draw()


def test_weights_are_areas_of_points(two):
    model, X, y = two
    w = np.random.default_rng(1).gamma(1.0, size=len(y))
    inside, outside = plot_decision_regions(model, X, y, sample_weight=w, resolution=5).collections
    sizes = np.concatenate([inside.get_sizes(), outside.get_sizes()])
    ratio = sizes / np.concatenate([w[y == "inside"], w[y == "outside"]])
    np.testing.assert_allclose(ratio, ratio[0])


def test_other_features_are_held_at_their_medians(three):
    model, X, y = three
    ax = plot_decision_regions(model, X, y, "probability", features=(2, 3), resolution=9)
    across, up = centres(ax, 9)
    points = np.tile(np.median(X, axis=0), (81, 1))
    points[:, 2], points[:, 3] = np.tile(across, 9), np.repeat(up, 9)
    shares = model.predict_proba(points).reshape(9, 9, 3)
    image = np.asarray(ax.images[0].get_array())
    flat = np.linalg.lstsq(shares.reshape(-1, 3), image.reshape(-1, 3), rcond=None)[0]
    np.testing.assert_allclose(shares @ flat, image, atol=1e-12)  # a mixture of three colours
    assert ax.get_xlabel() == "feature 2"


def test_any_estimator_is_drawn_and_regressors_by_what_they_predict(two):
    _, X, y = two
    plot_decision_regions(LogisticRegression().fit(X, y), X, y, "score", resolution=7)
    _, own = plt.subplots()
    target = X[:, 0] + X[:, 1]
    ax = plot_decision_regions(
        LinearRegression().fit(X, target), X, target, "score", resolution=7, ax=own
    )
    assert ax is own
    across, up = centres(ax, 7)
    expected = up[:, None] + across
    np.testing.assert_allclose(ax.collections[0].get_array().reshape(7, 7), expected, atol=1e-9)


def test_rows_of_any_library_and_frames_are_taken(two):
    model, X, y = two
    pandas = pytest.importorskip("pandas")
    here = plot_decision_regions(model, X, y, resolution=9).images[0].get_array()
    there = plot_decision_regions(model, DEVICE.put(X), y, resolution=9).images[0].get_array()
    np.testing.assert_array_equal(here, there)
    frame = pandas.DataFrame(X, columns=["left", "up"])
    ax = plot_decision_regions(AdaBoostClassifier(n_estimators=3).fit(frame, y), frame, y,
                               resolution=5)  # fmt: skip
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("left", "up")


def test_histograms_of_the_rows_are_below_the_shapes(two):
    model, X, _ = two
    figure = plot_shape_functions(model, X=X)
    for ax in figure.axes:
        (strip,) = ax.child_axes
        assert strip.get_position().y1 <= ax.get_position().y0
        low, high = strip.get_xlim()
        assert (low, high) == ax.get_xlim()
        f = int(ax.get_title().split()[1])
        drawn = sum(patch.get_height() for patch in strip.patches)
        assert drawn == ((X[:, f] >= low) & (X[:, f] <= high)).sum()
    figure.canvas.draw()


def test_bad_input_is_refused_in_words(two, three):
    model, X, y = two
    with pytest.raises(
        ValueError, match=r"what must be one of \('class', 'score', 'probability'\)"
    ):
        plot_decision_regions(model, X, y, "regions")
    with pytest.raises(ValueError, match="features must be two different columns from 0 to 1; got"):
        plot_decision_regions(model, X, y, features=(0, 2))
    with pytest.raises(ValueError, match="resolution must be an integer >= 2; got 1"):
        plot_decision_regions(model, X, y, resolution=1)
    with pytest.raises(
        ValueError, match=r"X must have two features at least; got shape \(120, 1\)"
    ):
        plot_decision_regions(model, X[:, :1], y)
    with pytest.raises(
        ValueError, match="'score' is for two classes or a regressor; got 3 classes"
    ):
        plot_decision_regions(
            LogisticRegression(max_iter=1000).fit(*three[1:]), *three[1:], "score"
        )
    with pytest.raises(TypeError, match="what='class' needs a fitted estimator with classes_"):
        plot_decision_regions(LinearRegression().fit(X, X[:, 0]), X)
    with pytest.raises(TypeError, match="got AdaBoostClassifier"):
        plot_decision_regions(AdaBoostClassifier(), X)
    with pytest.raises(ValueError, match=r"not seen: \['between'\]"):
        plot_decision_regions(model, X, np.where(y == "inside", y, "between"), resolution=3)
    with pytest.raises(ValueError, match="X has 120 rows, y has 3"):
        plot_decision_regions(model, X, y[:3], resolution=3)
    with pytest.raises(ValueError, match="sample_weight must hold a number >= 0 a row"):
        plot_decision_regions(model, X, y, sample_weight=-np.ones(len(y)), resolution=3)
