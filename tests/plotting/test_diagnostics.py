"""Pictures of diagnostics hold what diagnostics found."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from ensemble_gpu import AdaBoostClassifier, DecisionTreeRegressor
from ensemble_gpu.diagnostics import (
    bias_variance,
    deviation_bound,
    generalisation_bound,
    margin_curves,
    report,
)
from ensemble_gpu.plotting import (
    plot_bias_variance,
    plot_deviation_bounds,
    plot_generalisation_bound,
    plot_margin_curves,
    plot_report,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)


@pytest.fixture(scope="module")
def fit():
    X, y = load_breast_cancer(return_X_y=True)
    return AdaBoostClassifier(variant="discrete", n_estimators=30).fit(X, y), X, y


@pytest.mark.slow
def test_a_report_is_drawn_with_errors_bounds_and_edges(fit):
    found = report(*fit)
    _, own = plt.subplots()
    ax = plot_report(found, ax=own)
    assert ax is own
    bound, edge_bound, error = ax.get_lines()
    np.testing.assert_array_equal(bound.get_ydata(), found.rounds.bound)
    np.testing.assert_array_equal(edge_bound.get_ydata(), found.rounds.edge_bound)
    above = found.rounds.training_error > 0.0
    np.testing.assert_array_equal(error.get_ydata()[above], found.rounds.training_error[above])
    (right,) = (other for other in ax.figure.axes if other is not ax)
    np.testing.assert_array_equal(right.get_lines()[0].get_ydata(), found.rounds.edge)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(labels) == 4
    assert ax.get_title()
    ax.figure.canvas.draw()
    plot_report(report(AdaBoostClassifier(n_estimators=3).fit(*fit[1:]), *fit[1:]))


def test_margins_are_drawn_by_round(fit):
    curves = margin_curves(*fit)
    ax = plot_margin_curves(curves)
    drawn = {line.get_label(): line.get_ydata() for line in ax.get_lines()}
    np.testing.assert_array_equal(drawn["mean"], curves.mean)
    np.testing.assert_array_equal(drawn["median"], curves.quantiles[0.5])
    (minimum,) = (values for label, values in drawn.items() if label.startswith("minimum"))
    np.testing.assert_array_equal(minimum, curves.minimum)
    assert len(ax.collections) == 2
    assert plot_margin_curves(curves, ax=ax) is ax
    ax.figure.canvas.draw()


@pytest.mark.slow
def test_bias_and_variance_are_stacked_below_the_error():
    X = np.linspace(-1.0, 1.0, 50)[:, None]

    def draw(rng):
        return X, X[:, 0] ** 2 + 0.1 * rng.normal(size=50)

    found = bias_variance(
        DecisionTreeRegressor(), draw, X_test=X, truth=X[:, 0] ** 2, sigma=0.1,
        vary=("max_depth", [1, 2, 4]), n_replicates=5,
    )  # fmt: skip
    ax = plot_bias_variance(found)
    assert [text.get_text() for text in ax.get_legend().get_texts()][:3] == [
        "noise", "bias$^2$", "variance",
    ]  # fmt: skip
    top = ax.collections[2].get_paths()[0].vertices[:, 1].max()
    assert top == pytest.approx(found.error.max())
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), found.error)
    assert plot_bias_variance(found, ax=ax) is ax
    ax.figure.canvas.draw()
    alone = bias_variance(DecisionTreeRegressor(), X, X[:, 0], n_replicates=3)
    with pytest.raises(ValueError, match="there is no curve to draw"):
        plot_bias_variance(alone)
    words = bias_variance(
        DecisionTreeRegressor(), X, X[:, 0], n_replicates=3, vary=("max_depth", [2, None])
    )
    labels = [tick.get_text() for tick in plot_bias_variance(words).get_xticklabels()]
    assert labels == ["2", "None"]


def test_deviation_bounds_are_drawn_against_the_rows():
    bounds = [deviation_bound("hinge", m, vc_dimension=3) for m in (1000, 100, 10_000)]
    ax = plot_deviation_bounds(bounds)
    drawn = ax.get_lines()[0]
    np.testing.assert_array_equal(drawn.get_xdata(), [100, 1000, 10_000])
    np.testing.assert_array_equal(drawn.get_ydata(), [bounds[i].bound for i in (1, 0, 2)])
    assert len(ax.get_legend().get_texts()) == 5
    assert plot_deviation_bounds(bounds, ax=ax) is ax
    ax.figure.canvas.draw()
    with pytest.raises(ValueError, match="bounds must be two at least; got 1"):
        plot_deviation_bounds(bounds[:1])


def test_the_bound_by_margins_is_drawn_term_by_term(fit):
    best = generalisation_bound(*fit, complexity=0.002)
    ax = plot_generalisation_bound(*fit, complexity=0.002)
    assert ax.get_lines()[0].get_xydata().tolist() == [[best.theta, best.bound]]
    assert len(ax.collections) == 3
    top = ax.collections[2].get_paths()[0].vertices
    at = np.isclose(top[:, 0], best.theta)
    assert top[at, 1].max() == pytest.approx(best.bound)
    assert plot_generalisation_bound(*fit, ax=ax) is ax
    ax.figure.canvas.draw()
