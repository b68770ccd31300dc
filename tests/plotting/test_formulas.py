"""Pictures of formulas hold the curves of the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu.losses import Squared, minimiser, optimal_risk, psi, psi_tilde, wrong_side_risk
from ensemble_gpu.plotting import (
    plot_impurities,
    plot_losses,
    plot_minimiser,
    plot_psi,
    plot_risks,
)
from tests.losses.shapes import TILTED

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)


def curves(ax: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {line.get_label(): line.get_data() for line in ax.get_lines()}


def test_losses_are_drawn_against_the_margin():
    found = curves(plot_losses())
    assert set(found) == {
        "error, 1[v <= 0]", "exponential", "logistic", "squared", "truncated_squared", "hinge",
    }  # fmt: skip
    v, hinge = found["hinge"]
    np.testing.assert_allclose(hinge, np.maximum(1.0 - v, 0.0))
    np.testing.assert_allclose(found["exponential"][1], np.exp(-v))
    assert set(curves(plot_losses(["hinge"]))) == {"error, 1[v <= 0]", "hinge"}
    with pytest.raises(ValueError, match="loss must be one of"):
        plot_losses([Squared()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draw", "function", "dashed"),
    [(plot_risks, optimal_risk, wrong_side_risk), (plot_psi, psi, psi_tilde),
     (plot_minimiser, minimiser, None)],
)  # fmt: skip
def test_risks_are_drawn_by_their_functions_of_custom_losses_too(draw, function, dashed):
    ax = draw(["squared", TILTED])
    found = curves(ax)
    for name, loss in (("squared", "squared"), ("tilted", TILTED)):
        at, values = found[name]
        np.testing.assert_array_equal(values, function(loss, at))
    if dashed is not None:
        (line,) = (
            line for line in ax.get_lines() if line.get_linestyle() == "--"
            and line.get_color() == found_colour(ax, "tilted")
        )  # fmt: skip
        at, values = line.get_data()
        drawn = np.isfinite(values)
        assert drawn.any()
        np.testing.assert_array_equal(values[drawn], dashed(TILTED, at[drawn]))
    assert ax.get_title()
    assert {text.get_text() for text in ax.get_legend().get_texts()} == {"squared", "tilted"}
    _, own = plt.subplots()
    assert draw(ax=own) is own
    ax.figure.canvas.draw()


def found_colour(ax: Any, name: str) -> Any:
    (line,) = (line for line in ax.get_lines() if line.get_label() == name)
    return line.get_color()


def test_impurities_are_drawn_against_the_share():
    found = curves(plot_impurities())
    assert set(found) == {"gini", "entropy", "error"}
    p, gini = found["gini"]
    np.testing.assert_allclose(gini, 2.0 * p * (1.0 - p), atol=1e-15)
    ax = plot_impurities(["error"])
    assert plot_impurities(["gini"], ax=ax) is ax
    assert set(curves(ax)) == {"error", "gini"}
