"""Pictures of formulas: losses of the margin and their risks, impurities of two classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.drawing.axes import GREY, axes_or_new, class_colours, tidy
from ensemble_gpu.losses import (
    CLASSIFICATION,
    Loss,
    minimiser,
    optimal_risk,
    psi,
    psi_tilde,
    wrong_side_risk,
)
from ensemble_gpu.losses.risks import phi_of
from ensemble_gpu.model.impurity import impurity

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
    v = np.linspace(-2.0, 3.0, 501)
    curves = [(phi.loss.name, phi(v)) for phi in map(phi_of, losses or CLASSIFICATION)]
    ax = axes_or_new(ax)
    ax.plot(v, (v <= 0.0).astype(float), color=GREY, linestyle="--", label="error, 1[v <= 0]")
    _draw(ax, v, curves)
    ax.set_ylim(-0.1, 4.0)
    return _named(ax, "margin v = y F(x)", "loss", "Losses of the margin")


def plot_risks(losses: Sequence[str | Loss] | None = None, *, ax: Any = None) -> Any:
    """H(eta), the least mean loss (lines), and H-(eta), that of a wrong decision (dashed).

    Parameters
    ----------
    losses : names or losses of the margin; None: all that have a name
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    eta = np.linspace(0.0, 1.0, 401)
    found = _each(losses)
    lines = [(one.name, optimal_risk(one, eta)) for one in found]
    dashed = [("", wrong_side_risk(one, eta)) for one in found]
    ax = axes_or_new(ax)
    _draw(ax, eta, dashed, linestyle="--")
    _draw(ax, eta, lines)
    title = "Least risk H (lines) and least risk of an error H- (dashed)"
    return _named(ax, "eta = P(y = +1 | x)", "mean loss", title)


def plot_psi(losses: Sequence[str | Loss] | None = None, *, ax: Any = None) -> Any:
    """psi(t), with psi(excess error) <= excess risk (lines), and psi_tilde (dashed, where above).

    Parameters
    ----------
    losses : names or losses of the margin; None: all that have a name
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    t = np.linspace(0.0, 1.0, 401)
    found = _each(losses)
    lines = [(one.name, psi(one, t)) for one in found]
    above = [psi_tilde(one, t) for one in found]
    dashed = [
        ("", np.where(upper > lower + 1e-9, upper, np.nan))
        for upper, (_, lower) in zip(above, lines, strict=True)
    ]
    ax = axes_or_new(ax)
    _draw(ax, t, dashed, linestyle="--")
    _draw(ax, t, lines)
    title = "psi: an excess error t costs an excess risk of psi(t) or more"
    return _named(ax, "excess error t", "excess risk", title)


def plot_minimiser(losses: Sequence[str | Loss] | None = None, *, ax: Any = None) -> Any:
    """a*(eta), the output with the least mean loss; it has the sign of 2 eta - 1 if calibrated.

    Parameters
    ----------
    losses : names or losses of the margin; None: all that have a name
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    eta = np.linspace(0.0, 1.0, 401)[1:-1]
    outputs = [(one.name, minimiser(one, eta)) for one in _each(losses)]
    lines = [(name, np.where(np.isfinite(a), a, np.nan)) for name, a in outputs]
    ax = axes_or_new(ax)
    ax.axhline(0.0, color=GREY, linewidth=0.7)
    _draw(ax, eta, lines)
    return _named(ax, "eta = P(y = +1 | x)", "output a*", "Outputs with the least mean loss")


def _each(losses: Sequence[str | Loss] | None) -> list[Loss]:
    return [phi_of(loss).loss for loss in losses or CLASSIFICATION]


def _draw(
    ax: Any,
    x: np.ndarray,
    curves: Sequence[tuple[str, np.ndarray]],
    linestyle: str = "-",
) -> None:
    """A colour a curve; curves without a name are not in the legend.

    The first are the widest, so that curves that are equal show.
    """
    colours = class_colours(max(2, len(curves)))
    for i, ((name, y), colour) in enumerate(zip(curves, colours, strict=False)):
        label, width = name or "_nolegend_", 1.4 + 0.4 * (len(curves) - 1 - i)
        ax.plot(x, y, color=colour, linestyle=linestyle, linewidth=width, label=label)


def _named(ax: Any, x: str, y: str, title: str) -> Any:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.set_title(title)
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
    _draw(ax, p, list(zip(criteria, curves, strict=True)))
    return _named(ax, "share p of a class", "impurity", "Impurity of a node of two classes")
