"""Pictures of what diagnostics found."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.diagnostics import BoostingReport, MarginCurves
from ensemble_gpu.plotting.axes import BLUE, GREEN, GREY, ORANGE, RED, axes_or_new, tidy


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
