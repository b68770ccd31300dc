"""How many rounds of L2Boost: a criterion and the degrees of freedom, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.drawing.axes import BLUE, GREY, RED, axes_or_new, tidy

NAMES = {
    "aic": "AIC", "aicc": "corrected AIC", "bic": "BIC", "gmdl": "gMDL", "gcv": "GCV",
    "cv": "squared error of the folds",
}  # fmt: skip


def plot_criterion(estimator: Any, criterion: str | None = None, *, ax: Any = None) -> Any:
    """A criterion (left axis) and the degrees of freedom (right axis) after each round.

    The dotted line is the number of rounds of the model. Rounds are logarithmic, because most
    changes are in the first ones.

    Parameters
    ----------
    estimator : a fitted L2BoostRegressor
    criterion : one of `criteria_`; None: the one that chose the rounds, "aicc" where none did
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes, that of the criterion
    """
    name = criterion or estimator.criterion or "aicc"
    if name not in estimator.criteria_:
        known = ", ".join(map(repr, estimator.criteria_))
        raise ValueError(f"criterion must be one of {known} or None; got {criterion!r}.")
    curve, k = estimator.criteria_[name], estimator.n_estimators_
    if not len(curve):
        raise ValueError("there is no round to draw: the model is a constant.")
    rounds = np.arange(1, len(curve) + 1)
    ax = axes_or_new(ax)
    right = ax.twinx()
    right.plot(rounds, estimator.df_, color=RED, linewidth=1.4)
    right.set_ylabel("degrees of freedom", color=RED)
    right.set_ylim(bottom=0.0)
    right.spines["top"].set_visible(False)
    ax.plot(rounds, np.where(np.isfinite(curve), curve, np.nan), color=BLUE, linewidth=1.4)
    ax.set_ylabel(NAMES[name], color=BLUE)
    ax.axvline(k, color=GREY, linestyle=":", linewidth=1.2)
    ax.set_title(f"{k} rounds, {estimator.df_[k - 1]:.2f} degrees of freedom")
    ax.set_xscale("log")
    ax.set_xlim(1, max(2, len(rounds)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("rounds")
    tidy(ax)
    return ax
