"""Importances, and what the most important features do to the prediction."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.metrics import CLASSIFICATION
from ensemble_gpu.reporting import svg
from ensemble_gpu.reporting.dependence import Dependence, dependence
from ensemble_gpu.reporting.page import Section, figure, grid, table
from ensemble_gpu.reporting.plots import COLOURS, LEFT, RIGHT, WIDTH, Plot, bars
from ensemble_gpu.reporting.scales import Scale, bounds
from ensemble_gpu.reporting.subject import Column, Subject
from ensemble_gpu.reporting.text import number, percent

MOST_BARS, MOST_SHAPES = 15, 6
STRIP = 40.0
N_BINS = 40
MOST_LINES = 12


def importances(subject: Subject) -> Section | None:
    """A bar for each of the most important features."""
    found = subject.importances
    if found is None:
        return None
    top = subject.top(MOST_BARS)
    rows = [(subject.names[f], float(found[f]), percent(float(found[f]))) for f in top]
    used = int((found > 0.0).sum())
    about = f"{used:,} of {subject.n_features:,} features are used."
    text = ", ".join(f"{name} {share}" for name, _, share in rows[:5])
    drawn = bars("importances", "Importances", f"The most important: {text}.", rows)
    order = np.argsort(-found, kind="stable")[:40]
    lines = [[subject.names[f], percent(float(found[f]), 2)] for f in order]
    numbers = table(("feature", "importance"), lines, numeric=(1,))
    part = figure("Importances", drawn, "Shares of what all features did in training.", (), numbers)
    return Section("importances", "Importances", about, grid([part]))


def shapes(subject: Subject) -> Section | None:
    """A panel for each of the top features; grey below: where the test rows are."""
    found: list[tuple[int, Column, Dependence]] = []
    for feature in subject.top(MOST_SHAPES):
        column = subject.column(feature)
        one = dependence(subject, feature, column)
        if one is not None:
            found.append((feature, column, one))
    if not found:
        return None
    outputs = _outputs(subject, found[0][2])
    every = np.concatenate([one.values[:, outputs].reshape(-1) for _, _, one in found])
    parts = [_panel(subject, *one, bounds(every, 0.06), outputs) for one in found]
    what = found[0][2].what
    about = (
        "What a feature adds to the score, whatever the others are: the model is the sum of these."
        if what == "adds to F"
        else "The mean prediction for test rows if all of them had this value of the feature."
    )
    about += " Grey: where the test rows are. All panels have the same height of the axis."
    if subject.task == CLASSIFICATION and len(subject.classes) == 2:
        about += f" Up means {subject.class_names[1]}."
    return Section("shapes", "What features do", about, grid(parts))


def _outputs(subject: Subject, one: Dependence) -> list[int]:
    """Outputs that have a line: the most frequent classes."""
    n = one.values.shape[1]
    if n <= COLOURS or subject.task != CLASSIFICATION:
        return list(range(min(n, COLOURS)))
    counts = np.bincount(subject.own, minlength=n)
    return sorted(np.argsort(-counts, kind="stable")[:COLOURS].tolist())


def _names(subject: Subject, one: Dependence) -> list[str]:
    n = one.values.shape[1]
    if n == 1:
        return [one.what]
    if subject.task == CLASSIFICATION:
        return subject.class_names
    return [f"quantile {q:g}" for q in getattr(subject.estimator, "quantile", range(n))]


def _panel(
    subject: Subject, feature: int, column: Column, one: Dependence, y: tuple[float, float],
    outputs: list[int],
) -> str:  # fmt: skip
    name, names = subject.names[feature], _names(subject, one)
    categories = one.categories
    x = (float(one.places[0]), float(one.places[-1]))
    if categories is not None or x[0] == x[1]:
        x = (float(one.places[0]) - 0.5, float(one.places[-1]) + 0.5)
    plot = Plot(x, y, "", one.what, height=240.0 + STRIP, bottom=26.0 + STRIP)
    marks = [plot.level(0.0, "axis")] if y[0] < 0.0 < y[1] else []
    for j, k in enumerate(outputs):
        marks.append(_drawn(plot, one, one.values[:, k], f"c{j}"))
    entries = [(f"c{j}", names[k]) for j, k in enumerate(outputs)] if len(outputs) > 1 else []
    marks.append(_rows(plot, column, one))
    share = ""
    if subject.importances is not None:
        share = f" ({percent(float(subject.importances[feature]))})"
    ticks: list[float] | None = None
    if categories is not None:
        marks += _category_names(plot, categories)
        ticks = []
    values = one.values[:, outputs]
    text = f"From {number(float(values.min()), 3)} to {number(float(values.max()), 3)}."
    if one.missing is not None and len(outputs) == 1:
        text += f" Missing: {number(float(one.missing[0]), 3)}."
    title = f"{name}{share}"
    drawn = plot.drawn(f"shape-{feature}", title, f"{one.what}. {text}", *marks, x_ticks=ticks)
    return figure(title, drawn, text, entries, _numbers(one, names, outputs))


def _drawn(plot: Plot, one: Dependence, values: np.ndarray, style: str) -> str:
    if one.categories is not None:
        return plot.points(one.places, values, style, 4.5)
    if one.steps:
        return plot.steps(one.places, values, style)
    return plot.curve(one.places, values, style)


def _category_names(plot: Plot, names: list[str]) -> list[str]:
    room = (WIDTH - LEFT - RIGHT) / len(names)
    most = max(2, int(room / 7.0))
    floor = plot.height - plot.bottom
    return [
        svg.label(float(plot.across(k)), floor + 17, name, "tick", "middle", most)
        for k, name in enumerate(names)
    ]


def _rows(plot: Plot, column: Column, one: Dependence) -> str:
    """A histogram of the test rows below the axis."""
    if one.categories is None:
        heights, edges = np.histogram(column.present, bins=N_BINS, range=plot.x)
    else:
        assert column.categories is not None
        place = {name: k for k, name in enumerate(one.categories)}
        codes = [place.get(column.categories[int(v)], -1) for v in column.present]
        heights = np.bincount([c for c in codes if c >= 0], minlength=len(place))
        edges = np.arange(len(place) + 1) - 0.5
    up = Scale(0.0, float(max(1, heights.max())), 0.0, STRIP - 4.0)
    bottom, x = plot.height - 4.0, plot.across(edges)
    return "".join(
        svg.rect(a, bottom - h, max(0.6, b - a - 0.8), h, "rows")
        for a, b, h in zip(x[:-1].tolist(), x[1:].tolist(), up(heights).tolist(), strict=True)
        if h > 0.0
    )


def _numbers(one: Dependence, names: list[str], outputs: list[int]) -> str:
    n = len(one.values)
    at = np.unique(np.rint(np.linspace(0, n - 1, min(n, MOST_LINES))).astype(int))
    if one.categories is not None:
        first = [one.categories[i] for i in at]
    elif one.steps:
        first = [f"{number(one.places[i])} to {number(one.places[i + 1])}" for i in at]
    else:
        first = [number(float(one.places[i])) for i in at]
    rows = [[name, *(number(float(one.values[i, k]), 3) for k in outputs)]
            for name, i in zip(first, at, strict=True)]  # fmt: skip
    header = ("value", *(names[k] for k in outputs))
    return table(header, rows, numeric=range(1, len(header)))
