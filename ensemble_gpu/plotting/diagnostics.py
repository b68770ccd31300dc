"""Pictures of what diagnostics found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.diagnostics import (
    BoostingReport,
    Decomposition,
    DeviationBound,
    MarginCurves,
)
from ensemble_gpu.diagnostics.margin_bounds import THETAS, generalisation_bounds
from ensemble_gpu.drawing.axes import BLUE, GREEN, GREY, ORANGE, RED, axes_or_new, tidy


def plot_report(report: BoostingReport, *, ax: Any = None) -> Any:
    """Training error and its bounds (left axis, logarithmic), and the edges (right axis).

    Parameters
    ----------
    report : result of `diagnostics.report`
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes, that of the errors
    """
    table = report.rounds
    rounds = np.arange(1, len(table.error) + 1)
    ax = axes_or_new(ax)
    right = ax.twinx()
    label = f"edge, chance - error (least: {report.gamma:.3g})"
    right.plot(rounds, table.edge, ".", color=GREEN, markersize=3.0, alpha=0.6, label=label)
    right.set_ylabel("edge", color=GREEN)
    right.set_ylim(bottom=min(0.0, report.gamma))
    right.spines["top"].set_visible(False)
    ax.plot(rounds, table.bound, color=GREY, linestyle="--", label=r"bound, $\prod Z_t$")
    if np.isfinite(table.edge_bound).all():
        label = r"$\exp(-2\sum\gamma_t^2)$"
        ax.plot(rounds, table.edge_bound, color=ORANGE, linestyle=":", label=label)
    error, floor = table.training_error, 0.5 / report.n_rows  # below a single row: 0
    label = f"training error (last: {error[-1]:.2%})"
    ax.plot(rounds, np.maximum(error, floor), color=BLUE, label=label)
    ax.set_yscale("log")
    ax.set_ylim(floor, 2.0 * max(1.0, float(table.bound.max())))
    ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
    ax.set_xlabel("rounds")
    ax.set_ylabel("training rows classified wrong")
    ax.set_title("What the rounds did to the training error")
    lines = [one.get_legend_handles_labels() for one in (ax, right)]
    ax.legend(lines[0][0] + lines[1][0], lines[0][1] + lines[1][1], frameon=False)
    tidy(ax)
    return ax


def plot_margin_curves(curves: MarginCurves, *, ax: Any = None) -> Any:
    """Minimum, mean and quantiles of the margins against the number of rounds.

    Parameters
    ----------
    curves : result of `diagnostics.margin_curves`
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    shares = sorted(curves.quantiles)
    for low, high in zip(shares[: len(shares) // 2], reversed(shares), strict=False):
        ax.fill_between(
            curves.rounds, curves.quantiles[low], curves.quantiles[high], color=BLUE, alpha=0.15,
            linewidth=0.0, label=f"{low:.0%} to {high:.0%} of the rows",
        )  # fmt: skip
    if len(shares) % 2:
        middle = shares[len(shares) // 2]
        label = "median" if middle == 0.5 else f"{middle:.0%} quantile"
        ax.plot(curves.rounds, curves.quantiles[middle], color=BLUE, label=label)
    ax.plot(curves.rounds, curves.mean, color=ORANGE, label="mean")
    last = curves.minimum[-1]
    ax.plot(curves.rounds, curves.minimum, color=RED, label=f"minimum (last: {last:.3g})")
    ax.axhline(0.0, color=GREY, linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel("rounds")
    ax.set_ylabel("margin")
    ax.set_title("Margins by round")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_generalisation_bound(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    delta: float = 0.05,
    complexity: float | None = None,
    ax: Any = None,
) -> Any:
    """The terms of the bound by margins, stacked, against theta; its least value is marked.

    Parameters
    ----------
    estimator, X, y, delta, complexity : as of `diagnostics.generalisation_bound`
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    found = generalisation_bounds(estimator, X, y, THETAS, delta=delta, complexity=complexity)
    ax = axes_or_new(ax)
    floor = np.zeros(len(found))
    parts = [
        ("share of margins <= theta", [one.share for one in found], BLUE),
        ("4 Rad$_m$ / theta", [one.complexity_term for one in found], ORANGE),
        ("confidence", [one.theta_term + one.confidence_term for one in found], GREY),
    ]
    for label, part, colour in parts:
        top = floor + np.array(part)
        ax.fill_between(THETAS, floor, top, color=colour, alpha=0.45, linewidth=0.0, label=label)
        floor = top
    best = min(found, key=lambda one: one.bound)
    label = f"least bound: {best.bound:.3g} at theta = {best.theta:.3g}"
    ax.plot([best.theta], [best.bound], "o", color=RED, label=label)
    ax.axhline(1.0, color=GREY, linestyle=":", linewidth=1.0)  # from there on it says nothing
    ax.set_ylim(0.0, max(1.5, 2.0 * best.bound))
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("theta")
    ax.set_ylabel("bound on the error of new rows")
    ax.set_title("What margins say about new rows")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_bias_variance(found: Decomposition, *, ax: Any = None) -> Any:
    """Bias, variance and noise stacked, and the error, against the values of the parameter.

    Of the 0-1 loss variance may be negative, where it lowers the error; it is drawn as it is.

    Parameters
    ----------
    found : result of `diagnostics.bias_variance` with `vary`
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    if found.parameter is None or len(found.values) < 2:
        raise ValueError("there is no curve to draw: give bias_variance vary=(parameter, values).")
    known = bool(np.isfinite(found.noise).all())
    numbers = all(isinstance(value, int | float) for value in found.values)
    at = np.array(found.values, dtype=float) if numbers else np.arange(len(found.values))
    squared = found.loss == "squared"
    parts = [("noise", found.noise, GREY)] if known else []
    bias = "bias$^2$" if squared else "bias"
    parts.append((bias if known else f"{bias} and noise", found.bias, BLUE))
    parts.append(("variance", found.variance, ORANGE))
    ax = axes_or_new(ax)
    floor = np.zeros(len(at))
    for label, part, colour in parts:
        ax.fill_between(
            at, floor, floor + part, color=colour, alpha=0.45, linewidth=0.0, label=label
        )
        floor = floor + part
    width = found.standard_error
    ax.errorbar(at, found.error, yerr=width, color=RED, marker="o", markersize=4.0, capsize=2.0,
                label="error (bar: standard error)")  # fmt: skip
    best = int(np.argmin(found.error))
    ax.axvline(at[best], color=GREY, linestyle=":", linewidth=0.9,
               label=f"least error: {found.values[best]}")  # fmt: skip
    if not numbers:
        ax.set_xticks(at, [str(value) for value in found.values])
    elif at.min() > 0.0 and at.max() / at.min() > 20.0:
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    ax.set_xlabel(found.parameter)
    ax.set_ylabel("squared error" if squared else "share classified wrong")
    ax.set_title(f"Bias and variance ({found.n_replicates} replicates)")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_deviation_bounds(bounds: Sequence[DeviationBound], *, ax: Any = None) -> Any:
    """The terms of bounds on the deviation of the risk, and the radius, against the rows.

    Parameters
    ----------
    bounds : results of `diagnostics.deviation_bound` for several m
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    if len(bounds) < 2:
        raise ValueError(f"bounds must be two at least; got {len(bounds)}.")
    found = sorted(bounds, key=lambda one: one.m)
    rows = [one.m for one in found]
    ax = axes_or_new(ax)
    ax.plot(rows, [one.bound for one in found], color=RED, label="bound on R - R$_m$")
    terms = [one.complexity_term for one in found]
    ax.plot(rows, terms, color=BLUE, label="complexity, 2 lambda L Rad$_m$")
    terms = [one.confidence_term for one in found]
    ax.plot(rows, terms, color=ORANGE, label="confidence")
    ax.plot(rows, [one.radius for one in found], color=GREEN, linestyle="--", label="radius lambda")
    label = "risk of f = 0: above it the bound says nothing"
    ax.axhline(found[0].at_zero, color=GREY, linestyle=":", linewidth=1.0, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("rows m")
    ax.set_ylabel("loss (radius: sum of coefficients)")
    ax.set_title(f"How far the risk may be from the mean loss ({found[0].loss})")
    ax.legend(frameon=False)
    tidy(ax)
    return ax
