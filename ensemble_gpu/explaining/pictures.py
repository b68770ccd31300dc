"""Pictures of explanations; matplotlib is imported when one is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import to_numpy
from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.drawing.axes import BLUE, GREY, RED, axes_or_new, class_colours, tidy


def plot_local(
    explanation: Any, row: int = 0, output: Any = None, *, most: int = 10, ax: Any = None
) -> Any:
    """What the features add to an output of one row: bars, the largest at the top.

    Each bar begins where the one below has ended, from the base value on to the output.

    Parameters
    ----------
    explanation : an `Explanation`
    row : which row
    output : number or class of the output; None: the only one, of two the second
    most : bars; the features beyond are one bar together
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    if not 0 <= row < len(explanation):
        raise ValueError(f"row must be from 0 to {len(explanation) - 1}; got {row!r}.")
    k = explanation.output(output)
    phi = to_numpy(explanation.values)[row, :, k]
    base = float(to_numpy(explanation.base_values)[k])
    data = explanation.data[[row]].toarray()[0] if is_sparse(explanation.data) else None
    x = to_numpy(explanation.data)[row] if data is None else data
    order = np.argsort(-np.abs(phi), kind="stable")
    shown, rest = order[:most], order[most:]
    labels = [f"{explanation.feature_names[f]} = {x[f]:.4g}" for f in shown.tolist()]
    sizes = phi[shown].tolist()
    if len(rest):
        labels.append(f"{len(rest)} other features")
        sizes.append(float(phi[rest].sum()))
    ax, at = axes_or_new(ax), base
    for place, size in enumerate(reversed(sizes)):
        ax.barh(place, size, left=at, color=RED if size > 0.0 else BLUE, height=0.7)
        at += size
    ax.set_yticks(range(len(labels)), labels[::-1])
    ax.axvline(base, color=GREY, linestyle=":", linewidth=0.9, label=f"base value: {base:.4g}")
    ax.axvline(at, color=GREY, linewidth=0.9, label=f"output: {at:.4g}")
    ax.set_xlabel("output")
    ax.set_title(f"Row {row}")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_importances(
    names: list[str], importances: np.ndarray, label: str, *, most: int = 20, ax: Any = None
) -> Any:
    """Importances [features] as bars, the largest at the top; `label` says what they are."""
    order = np.argsort(-importances, kind="stable")[:most]
    ax = axes_or_new(ax)
    ax.barh(range(len(order)), importances[order][::-1], color=BLUE, height=0.7)
    ax.set_yticks(range(len(order)), [names[f] for f in order[::-1].tolist()])
    ax.set_xlabel(label)
    ax.set_title("Importance of the features")
    tidy(ax)
    return ax


def plot_dependence(dependence: Any, *, ax: Any = None) -> Any:
    """The mean output by the value of a feature, a line an output."""
    ax = axes_or_new(ax)
    colours = class_colours(dependence.values.shape[1])
    names = dependence.output_names or [None] * len(colours)
    for column, colour, name in zip(dependence.values.T, colours, names, strict=True):
        ax.step(dependence.grid, column, where="pre", color=colour, label=name)
    ax.set_xlabel(dependence.name)
    ax.set_ylabel("mean output")
    ax.set_title("Partial dependence")
    if dependence.output_names:
        ax.legend(frameon=False)
    tidy(ax)
    return ax


def plot_shape(shape: Any, *, ax: Any = None) -> Any:
    """What a feature adds by its value, a line an output, over bars of the training weight."""
    ax, finite = axes_or_new(ax), shape.thresholds[np.isfinite(shape.thresholds)]
    width = float(np.ptp(finite)) or 1.0 if len(finite) else 1.0
    first, last = (finite[0], finite[-1]) if len(finite) else (0.0, 0.0)
    edges = np.concatenate([[first - 0.05 * width], finite, [last + 0.05 * width]])
    values = shape.values[: len(edges) - 1]
    for column, colour in zip(values.T, class_colours(values.shape[1]), strict=True):
        ax.stairs(column, edges, baseline=None, color=colour, linewidth=1.5)
    rows = ax.twinx()
    rows.bar(
        edges[:-1], shape.weight[: len(edges) - 1], np.diff(edges), align="edge", color=GREY,
        alpha=0.2,
    )  # fmt: skip
    rows.set_ylabel("weight of the training rows")
    ax.set_xlabel(shape.name)
    ax.set_ylabel("Shapley value")
    tidy(ax)
    return ax
