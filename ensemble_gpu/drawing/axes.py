"""Axes, colours and the import of matplotlib, which happens when something is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np

# Okabe & Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, RED, PURPLE, GREY = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#666666",
)  # fmt: skip


def pyplot() -> Any:
    """matplotlib.pyplot, or an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "The pictures need matplotlib: pip install 'ensemble_gpu[plot]'."
        ) from error
    return plt


def axes_or_new(ax: Any | None) -> Any:
    """The axes given, or those of a new figure."""
    if ax is not None:
        return ax
    return pyplot().subplots(figsize=(6.4, 4.2), layout="constrained")[1]


def tidy(ax: Any) -> None:
    """Two spines and a faint grid."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, linewidth=0.6)


def class_colours(n: int) -> list[Any]:
    """A colour for each of n classes, or for the one output of two classes."""
    if n == 1:
        return [BLUE]
    named = [BLUE, RED, GREEN, ORANGE, PURPLE]
    return named[:n] if n <= len(named) else list(pyplot().cm.tab20(np.linspace(0, 1, n)))
