"""Numbers: predictions beside the truth, residuals; quantiles: how much lies below each."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.reporting.page import Section, figure, grid, table
from ensemble_gpu.reporting.plots import Plot, unit_plot
from ensemble_gpu.reporting.scales import bounds
from ensemble_gpu.reporting.subject import Subject
from ensemble_gpu.reporting.text import number, percent

MOST_POINTS = 400
N_BINS, N_GROUPS = 30, 10
PLACES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


def residuals(subject: Subject) -> Section:
    """Predicted against true, residuals against predicted, and how residuals are spread."""
    y, prediction = subject.y, subject.prediction
    if prediction.ndim > 1:
        return _quantiles(subject)
    about = "A residual is y - prediction: above zero where the prediction was too low."
    if len(y) > MOST_POINTS:
        about += f" Of {len(y):,} rows {MOST_POINTS} are drawn, evenly by their rank."
    parts = [_beside(y, prediction), _by_prediction(y, prediction), _spread(y - prediction)]
    return Section("residuals", "Residuals", about, grid(parts))


def _chosen(values: np.ndarray) -> np.ndarray:
    """Rows that are drawn: all, or some, evenly by rank."""
    order = np.argsort(values, kind="stable")
    if len(values) <= MOST_POINTS:
        return order
    return order[np.rint(np.linspace(0, len(values) - 1, MOST_POINTS)).astype(int)]


def _groups(by: np.ndarray) -> list[np.ndarray]:
    """Rows in groups of equal size, by rank."""
    order = np.argsort(by, kind="stable")
    return [part for part in np.array_split(order, min(N_GROUPS, len(by))) if len(part)]


def _beside(y: np.ndarray, prediction: np.ndarray) -> str:
    at, both = _chosen(y), bounds(np.concatenate([y, prediction]))
    plot = Plot(both, both, "predicted", "true", height=330.0)
    marks = [plot.diagonal(), plot.points(prediction[at], y[at], "c0 faint", 2.6)]
    groups = _groups(prediction)
    rows = [[number(float(prediction[g].mean())), number(float(y[g].mean())), f"{len(g):,}"]
            for g in groups]  # fmt: skip
    text = (
        f"Predictions run from {number(float(prediction.min()))} to "
        f"{number(float(prediction.max()))}, the truth from {number(float(y.min()))} to "
        f"{number(float(y.max()))}."
    )
    drawn = plot.drawn("beside", "True and predicted", text, *marks)
    numbers = table(("mean prediction", "mean of y", "rows"), rows, numeric=(0, 1, 2))
    return figure("True and predicted", drawn, text, [("reference", "equal")], numbers)


def _by_prediction(y: np.ndarray, prediction: np.ndarray) -> str:
    r, at = y - prediction, _chosen(prediction)
    plot = Plot(bounds(prediction), bounds(r), "predicted", "residual", height=330.0)
    groups = _groups(prediction)
    x = np.array([prediction[g].mean() for g in groups])
    mean = np.array([r[g].mean() for g in groups])
    marks = [
        plot.level(0.0, "line reference"), plot.points(prediction[at], r[at], "c0 faint", 2.6),
        plot.curve(x, mean, "c1"), plot.points(x, mean, "c1"),
    ]  # fmt: skip
    rows = [[number(float(a)), number(float(b), 3), number(float(r[g].std()), 3)]
            for a, b, g in zip(x, mean, groups, strict=True)]  # fmt: skip
    text = f"Residuals over predictions, and their mean in {len(groups)} groups of equal size."
    drawn = plot.drawn("residuals-by", "Residuals by prediction", text, *marks)
    numbers = table(("mean prediction", "mean residual", "deviation"), rows, numeric=(0, 1, 2))
    return figure("Residuals by prediction", drawn, text, [("c1", "mean of a group")], numbers)


def _spread(r: np.ndarray) -> str:
    low, high = bounds(np.quantile(r, (0.002, 0.998)))
    heights, edges = np.histogram(r, bins=N_BINS, range=(low, high))
    plot = Plot((low, high), (0.0, 1.06 * max(1, int(heights.max()))), "residual", "rows",
                height=330.0)  # fmt: skip
    marks = [plot.columns(edges, heights, "fill c0"), plot.upright(0.0, "line reference")]
    found = np.quantile(r, PLACES)
    rows = [[f"{100 * q:g} %", number(float(v))] for q, v in zip(PLACES, found, strict=True)]
    text = f"Nine of ten residuals are between {number(found[1])} and {number(found[-2])}."
    drawn = plot.drawn("spread", "Spread of the residuals", text, *marks)
    return figure("Spread of the residuals", drawn, text, (),
                  table(("quantile", "residual"), rows, numeric=(0, 1)))  # fmt: skip


def _quantiles(subject: Subject) -> Section:
    """How many rows lie below each predicted quantile."""
    wanted = np.array([float(q) for q in subject.estimator.quantile])
    below = (subject.y[:, None] <= subject.prediction).mean(axis=0)
    plot = unit_plot("quantile that was asked for", "share of y below the prediction")
    marks = [plot.diagonal(), plot.curve(wanted, below, "c0"), plot.points(wanted, below, "c0", 4)]
    rows = [[f"{q:g}", percent(float(b))] for q, b in zip(wanted, below, strict=True)]
    text = "; ".join(f"{b} of y are below quantile {q}" for q, b in rows) + "."
    drawn = plot.drawn("coverage", "Quantiles", text, *marks)
    numbers = table(("quantile", "share below"), rows, numeric=(0, 1))
    width = float(np.mean(subject.prediction[:, -1] - subject.prediction[:, 0]))
    inside = float(below[-1] - below[0])
    caption = (
        f"{percent(inside)} of the test rows are between the outermost quantiles "
        f"({percent(float(wanted[-1] - wanted[0]))} should be), which are {number(width)} apart "
        "in the mean."
    )
    part = figure("Quantiles", drawn, caption, [("reference", "calibrated")], numbers)
    return Section("residuals", "Quantiles", "", grid([part]))
