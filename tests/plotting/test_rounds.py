"""The picture of a criterion shows what the fit has kept."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu import L2BoostRegressor
from ensemble_gpu.smoothers import KernelRidge, Linear

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("Agg")

X = np.linspace(0.0, 1.0, 50)[:, None]
Y = np.sin(6.0 * X[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=50)


def test_the_curves_are_those_of_the_fit():
    from ensemble_gpu.plotting import plot_criterion

    model = L2BoostRegressor(KernelRidge(0.2, 5.0), learning_rate=0.8, n_estimators=60).fit(X, Y)
    ax = plot_criterion(model)
    curve, chosen = ax.get_lines()
    np.testing.assert_array_equal(curve.get_ydata(), model.criteria_["aicc"])
    assert chosen.get_xdata()[0] == model.n_estimators_
    (right,) = (other for other in ax.figure.axes if other is not ax)
    np.testing.assert_array_equal(right.get_lines()[0].get_ydata(), model.df_)
    assert plot_criterion(model, "bic").get_ylabel() == "BIC"
    plt.close("all")
    with pytest.raises(ValueError, match=r"criterion must be one of 'aic', .*; got 'cv'"):
        plot_criterion(model, "cv")
    constant = L2BoostRegressor(Linear(), componentwise=True).fit(X, np.ones(50))
    with pytest.raises(ValueError, match="no round to draw"):
        plot_criterion(constant)
