"""What a classifier or regressor answers over the plane of two features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import is_array, locate, to_numpy
from ensemble_gpu.drawing.axes import axes_or_new, class_colours, pyplot

WHAT = ("class", "score", "probability")
# Areas of points in square points: all equal, and the mean where they are weights.
AREA = 18.0
# Rows of the grid that are predicted at a time.
BLOCK = 65_536


def plot_decision_regions(
    estimator: Any,
    X: Any,
    y: Any = None,
    what: str = "class",
    *,
    features: tuple[int, int] = (0, 1),
    sample_weight: Any = None,
    resolution: int = 201,
    feature_names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """What an estimator answers at every point of two features, and the rows given.

    Parameters
    ----------
    estimator : any fitted classifier or regressor
    X : rows [n, p], of a library that the estimator takes; they set the range. With more than two
        features the others are held at their medians
    y : labels or values, by which the rows are coloured; None draws no rows
    what : {"class", "score", "probability"}
        "class": `predict`, of a classifier. "score": `decision_function` of two classes, with the
        boundary at 0, or what a regressor predicts. "probability": `predict_proba`, of two classes
        that of classes_[1], with the boundary at 1/2; of more a mixture of the classes' colours
    features : columns of the axes
    sample_weight : weights of the rows, drawn as areas of the points
    resolution : points of the grid on each axis
    feature_names : names of all columns; None: feature_names_in_ or "feature 3"
    ax : matplotlib Axes to draw on; None makes one

    Returns
    -------
    matplotlib Axes
    """
    if what not in WHAT:
        raise ValueError(f"what must be one of {WHAT!r}; got {what!r}.")
    if isinstance(resolution, bool) or not isinstance(resolution, int) or resolution < 2:
        raise ValueError(f"resolution must be an integer >= 2; got {resolution!r}.")
    rows = _host(X)
    first, second = _checked(features, rows.shape[1])
    across, up = (_axis(rows[:, f], resolution) for f in (first, second))
    grid = _grid(rows, first, second, across, up)
    found = _asked(estimator, what, X, grid).reshape(len(up), len(across), -1)
    ax = axes_or_new(ax)
    classes = getattr(estimator, "classes_", None)
    _draw_answers(ax, what, found, across, up, classes)
    if y is not None:
        _draw_rows(ax, rows[:, [first, second]], y, classes, sample_weight)
    names = feature_names if feature_names is not None else _names(estimator, rows.shape[1])
    ax.set_xlabel(str(names[first]))
    ax.set_ylabel(str(names[second]))
    ax.set_xlim(across[0], across[-1])
    ax.set_ylim(up[0], up[-1])
    ax.set_title(f"{type(estimator).__name__}: {what}")
    if ax.get_legend_handles_labels()[1]:
        ax.legend(loc="upper right", framealpha=0.8)
    return ax


def _host(X: Any) -> np.ndarray:
    rows = np.asarray(to_numpy(X) if is_array(X) else X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise ValueError(f"X must have two features at least; got shape {rows.shape}.")
    return rows


def _checked(features: Any, p: int) -> tuple[int, int]:
    found = tuple(features) if isinstance(features, Sequence) else ()
    whole = all(isinstance(f, int | np.integer) and 0 <= f < p for f in found)
    if len(found) != 2 or not whole or found[0] == found[1]:
        raise ValueError(
            f"features must be two different columns from 0 to {p - 1}; got {features!r}."
        )
    return int(found[0]), int(found[1])


def _axis(x: np.ndarray, resolution: int) -> np.ndarray:
    present = x[np.isfinite(x)]
    low, high = (present.min(), present.max()) if len(present) else (0.0, 0.0)
    margin = 0.05 * (high - low) or 0.5
    return np.linspace(low - margin, high + margin, resolution)


def _grid(
    rows: np.ndarray, first: int, second: int, across: np.ndarray, up: np.ndarray
) -> np.ndarray:
    """All points of the grid, the other features at their medians (0 where all are missing)."""
    middle = [np.median(x[np.isfinite(x)]) if np.isfinite(x).any() else 0.0 for x in rows.T]
    grid = np.tile(np.array(middle), (len(up) * len(across), 1))
    grid[:, first] = np.tile(across, len(up))
    grid[:, second] = np.repeat(up, len(across))
    return grid


def _asked(estimator: Any, what: str, X: Any, grid: np.ndarray) -> np.ndarray:
    """Answers at the grid, whose rows are given as X was: [points] or [points, classes]."""
    classes = getattr(estimator, "classes_", None)
    name = {"class": "predict", "score": "decision_function", "probability": "predict_proba"}[what]
    if what == "score" and classes is None:
        name = "predict"
    if (what != "score" and classes is None) or not hasattr(estimator, name):
        raise TypeError(
            f"what={what!r} needs a fitted estimator with classes_ and {name}; got "
            f"{type(estimator).__name__}."
        )
    if what == "score" and classes is not None and len(classes) > 2:
        raise ValueError(
            f"what='score' is for two classes or a regressor; got {len(classes)} classes: take "
            "'class' or 'probability'."
        )
    parts = [
        _answer(getattr(estimator, name), X, grid[at : at + BLOCK])
        for at in range(0, len(grid), BLOCK)
    ]
    found = np.concatenate(parts)
    return np.searchsorted(np.asarray(classes), found) if what == "class" else found


def _answer(method: Any, X: Any, points: np.ndarray) -> np.ndarray:
    if hasattr(X, "iloc"):
        given: Any = type(X)(points, columns=X.columns)
    elif is_array(X):
        given = locate(X).hand_over(points.astype(to_numpy(X[:1, :1]).dtype))
    else:
        given = points
    answer = method(given)
    return np.asarray(to_numpy(answer) if is_array(answer) else answer)


def _draw_answers(
    ax: Any, what: str, found: np.ndarray, across: np.ndarray, up: np.ndarray, classes: Any
) -> None:
    n_classes = 1 if classes is None else len(classes)
    if what == "class" or (what == "probability" and n_classes > 2):
        shares = np.eye(n_classes)[found[:, :, 0]] if what == "class" else found
        _draw_image(ax, _mixed(shares, n_classes), across, up)
        return
    values = found[:, :, -1]
    middle, name = (0.5, f"P({classes[1]})") if what == "probability" else (0.0, "score")
    if classes is None:
        image = ax.pcolormesh(across, up, values, cmap="viridis", rasterized=True)
        name = "prediction"
    else:
        most = 0.5 if what == "probability" else float(np.abs(values).max()) or 1.0
        image = ax.pcolormesh(
            across, up, values, cmap="RdBu_r", vmin=middle - most, vmax=middle + most, alpha=0.8,
            rasterized=True,
        )  # fmt: skip
        if values.min() < middle < values.max():
            ax.contour(across, up, values, levels=[middle], colors="black", linewidths=1.0)
    ax.figure.colorbar(image, ax=ax, label=name)


def _mixed(shares: np.ndarray, n_classes: int) -> np.ndarray:
    """Pale colours of the classes, mixed by their shares."""
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(colour) for colour in class_colours(max(2, n_classes))][:n_classes])
    return 1.0 - 0.45 * (1.0 - shares @ colours)


def _draw_image(ax: Any, colours: np.ndarray, across: np.ndarray, up: np.ndarray) -> None:
    half = 0.5 * (across[1] - across[0]), 0.5 * (up[1] - up[0])
    extent = (across[0] - half[0], across[-1] + half[0], up[0] - half[1], up[-1] + half[1])
    ax.imshow(colours, origin="lower", extent=extent, aspect="auto", interpolation="nearest")


def _draw_rows(ax: Any, at: np.ndarray, y: Any, classes: Any, sample_weight: Any) -> None:
    y = np.asarray(to_numpy(y) if is_array(y) else y).ravel()
    if len(y) != len(at):
        raise ValueError(f"X has {len(at)} rows, y has {len(y)}; they must be as many.")
    area = np.full(len(y), AREA)
    if sample_weight is not None:
        w = np.asarray(to_numpy(sample_weight) if is_array(sample_weight) else sample_weight)
        w = w.astype(np.float64)
        if w.shape != y.shape or not (w >= 0.0).all() or not w.any():
            raise ValueError(
                "sample_weight must hold a number >= 0 a row, not all of them 0; got shape "
                f"{w.shape} for {len(y)} rows."
            )
        area = AREA * w / w.mean()
    edge = {"linewidths": 0.4, "edgecolors": "white"}
    if classes is None:
        ax.scatter(*at.T, s=area, c=y, cmap=pyplot().cm.viridis, **edge)
        return
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y holds labels that the estimator has not seen: {unknown.tolist()!r}; it knows "
            f"{np.asarray(classes).tolist()!r}."
        )
    for label, colour in zip(classes, class_colours(max(2, len(classes))), strict=False):
        own = y == label
        ax.scatter(*at[own].T, s=area[own], color=colour, label=str(label), **edge)


def _names(estimator: Any, p: int) -> list[str]:
    names = getattr(estimator, "feature_names_in_", None)
    return [f"feature {f}" for f in range(p)] if names is None else [str(name) for name in names]
