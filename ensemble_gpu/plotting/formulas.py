"""Pictures of formulas: losses of the margin, impurities of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.losses import CLASSIFICATION, Loss, Margin, classification_loss
from ensemble_gpu.model.impurity import impurity
from ensemble_gpu.plotting.axes import GREY, axes_or_new, class_colours, tidy

CRITERIA = ("gini", "entropy", "error")


def plot_losses(losses: Sequence[str | Loss] | None = None, *, ax: Any = None) -> Any:
    """phi(v) of losses of two classes against the margin v = y F, and the step 1[v <= 0].

    Parameters
    ----------
    losses : names or losses of the margin; None: all that have a name
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    found = [classification_loss(loss, 2) for loss in (losses or CLASSIFICATION)]
    for loss in found:
        if not isinstance(loss, Margin):
            raise TypeError(f"losses must be losses of the margin; got {loss!r}.")
    ax = axes_or_new(ax)
    v = np.linspace(-2.0, 3.0, 501)
    ax.plot(v, (v <= 0.0).astype(float), color=GREY, linestyle="--", label="error, 1[v <= 0]")
    for loss, colour in zip(found, class_colours(max(2, len(found))), strict=False):
        ax.plot(v, loss.value(np.ones_like(v), v), color=colour, label=loss.name)
    ax.set_ylim(-0.1, 4.0)
    ax.set_xlabel("margin v = y F(x)")
    ax.set_ylabel("loss")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_impurities(criteria: Sequence[str] = CRITERIA, *, ax: Any = None) -> Any:
    """Impurities of two classes against the share p of one of them.

    Parameters
    ----------
    criteria : names as of `impurity`
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    p = np.linspace(0.0, 1.0, 401)
    curves = [impurity(np.stack([1.0 - p, p], axis=1), criterion) for criterion in criteria]
    ax = axes_or_new(ax)
    for name, curve, colour in zip(criteria, curves, class_colours(max(2, len(curves))),
                                   strict=False):  # fmt: skip
        ax.plot(p, curve, color=colour, label=name)
    ax.set_xlabel("share p of a class")
    ax.set_ylabel("impurity")
    ax.legend(frameon=False)
    tidy(ax)
    return ax
