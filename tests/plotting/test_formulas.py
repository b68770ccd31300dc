"""Pictures of formulas hold the curves of the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu.losses import Squared
from ensemble_gpu.plotting import plot_impurities, plot_losses

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


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


def test_impurities_are_drawn_against_the_share():
    found = curves(plot_impurities())
    assert set(found) == {"gini", "entropy", "error"}
    p, gini = found["gini"]
    np.testing.assert_allclose(gini, 2.0 * p * (1.0 - p), atol=1e-15)
    ax = plot_impurities(["error"])
    assert plot_impurities(["gini"], ax=ax) is ax
    assert set(curves(ax)) == {"error", "gini"}
