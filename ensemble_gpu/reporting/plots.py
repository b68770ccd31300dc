"""A plot: two scales, a frame with ticks, and marks inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ensemble_gpu.reporting import svg
from ensemble_gpu.reporting.scales import Scale
from ensemble_gpu.reporting.text import percent, short

WIDTH, HEIGHT = 440.0, 290.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 22.0, 26.0, 42.0
# Colours of the page, in order.
COLOURS = 8

Format = Callable[[float], str]
Pair = tuple[float, float]


def shares(value: float) -> str:
    """A share beside an axis, as a percentage."""
    return f"{100.0 * value:.4g} %"


@dataclass(frozen=True)
class Plot:
    """x and y are ranges; names of the axes stand below and above the frame.

    A zero on a logarithmic axis is drawn at its low end, which `zero` names so.
    """

    x: Pair
    y: Pair
    x_name: str
    y_name: str
    x_format: Format = short
    y_format: Format = short
    x_log: bool = False
    y_log: bool = False
    height: float = HEIGHT
    bottom: float = BOTTOM
    zero: bool = False

    @cached_property
    def across(self) -> Scale:
        return Scale(*self.x, LEFT, WIDTH - RIGHT, self.x_log)

    @cached_property
    def up(self) -> Scale:
        return Scale(*self.y, self.height - self.bottom, TOP, self.y_log)

    def frame(self, x_ticks: Sequence[float] | None = None) -> str:
        """Grid, ticks, numbers and the names of the axes."""
        floor, marks = self.height - self.bottom, []
        for v in self.up.ticks(5):
            at = float(self.up(v))
            if self.zero and at > floor - 14.0:
                continue
            marks.append(svg.line(LEFT, at, WIDTH - RIGHT, at, "rule"))
            marks.append(svg.label(LEFT - 6, at + 4, self.y_format(v), "tick", "end"))
        if self.zero:
            marks.append(svg.label(LEFT - 6, floor + 4, "0", "tick", "end"))
        for v in self.across.ticks(6) if x_ticks is None else x_ticks:
            at = float(self.across(v))
            marks.append(svg.line(at, floor, at, floor + 4, "axis"))
            marks.append(svg.label(at, floor + 17, self.x_format(v), "tick", "middle"))
        marks.append(svg.line(LEFT, floor, WIDTH - RIGHT, floor, "axis"))
        middle = (LEFT + WIDTH - RIGHT) / 2.0
        marks.append(svg.label(middle, self.height - 6, self.x_name, "label", "middle"))
        marks.append(svg.label(4, 14, self.y_name, "label"))
        return "".join(marks)

    def curve(self, x: Any, y: Any, style: str) -> str:
        return svg.path(self.across(x), self.up(y), f"line {style}")

    def steps(self, edges: Any, values: Any, style: str) -> str:
        """values[i] between edges i and i + 1."""
        x, y = np.repeat(self.across(edges), 2)[1:-1], np.repeat(self.up(values), 2)
        return svg.path(x, y, f"line {style}")

    def points(self, x: Any, y: Any, style: str, radius: float = 3.0) -> str:
        pairs = zip(self.across(x).tolist(), self.up(y).tolist(), strict=True)
        return "".join(svg.circle(a, b, radius, f"dot {style}") for a, b in pairs)

    def columns(self, edges: Any, heights: Any, style: str) -> str:
        """A histogram that stands on the floor."""
        x, y, floor = self.across(edges), self.up(heights), float(self.up(self.y[0]))
        parts = zip(x[:-1].tolist(), x[1:].tolist(), y.tolist(), strict=True)
        return "".join(
            svg.rect(a, b, max(0.6, c - a - 1.0), floor - b, style)
            for a, c, b in parts
            if floor > b
        )

    def level(self, y: float, style: str) -> str:
        at = float(self.up(y))
        return svg.line(LEFT, at, WIDTH - RIGHT, at, style)

    def upright(self, x: float, style: str) -> str:
        at = float(self.across(x))
        return svg.line(at, TOP, at, self.height - self.bottom, style)

    def diagonal(self, style: str = "line reference") -> str:
        low, high = max(self.x[0], self.y[0]), min(self.x[1], self.y[1])
        return self.curve(np.array([low, high]), np.array([low, high]), style)

    def drawn(self, key: str, title: str, description: str, *marks: str, **frame: Any) -> str:
        """The whole picture: the frame below the marks."""
        inside = [self.frame(**frame), *marks]
        return svg.picture(key, WIDTH, self.height, title, description, inside)


def unit_plot(x_name: str, y_name: str, height: float = 330.0) -> Plot:
    """Both axes from 0 to 100 %."""
    return Plot((0.0, 1.0), (0.0, 1.0), x_name, y_name, shares, shares, height=height)


def bars(
    key: str, title: str, description: str, rows: Sequence[tuple[str, float, str]], *,
    signed: bool = False, width: float = WIDTH, name_width: float = 180.0,
) -> str:  # fmt: skip
    """A horizontal bar a row of (name, length, text); signed ones go both ways from the middle."""
    step, text_width = 24.0, 64.0
    most = max((abs(length) for _, length, _ in rows), default=0.0) or 1.0
    low = min([0.0, *(length for _, length, _ in rows)]) if signed else 0.0
    high = max([0.0, *(length for _, length, _ in rows)])
    high = high if high > low else low + most
    scale = Scale(low, high, name_width, width - text_width)
    zero, marks = float(scale(0.0)), []
    for k, (name, length, words) in enumerate(rows):
        top, end = k * step + 3.0, float(scale(length))
        style = "fill down" if length < 0.0 else "fill up"
        left, right = min(zero, end), max(zero, end)
        marks.append(
            svg.label(name_width - 8, top + 13, name, "label", "end", int(name_width / 7.8))
        )
        marks.append(svg.rect(left, top, max(0.8, right - left), step - 7.0, style))
        marks.append(svg.label(right + 5, top + 13, words, "tick"))
    marks.append(svg.line(zero, 0.0, zero, step * len(rows), "axis"))
    return svg.picture(key, width, step * len(rows) + 2.0, title, description, marks)


def grid(
    key: str, title: str, description: str, table: np.ndarray, names: Sequence[str]
) -> str:  # fmt: skip
    """A table of counts, true labels down, predicted ones across; colours are shares of a row."""
    n = len(names)
    left, top = 92.0, 44.0
    side = min(150.0, (WIDTH - left - RIGHT) / n)
    tall = min(90.0, max(26.0, side))
    total = np.maximum(1, table.sum(axis=1, keepdims=True))
    share = table / total
    most = max(3, int(side / 7.5))
    marks = [
        svg.label(left + n * side / 2, 14, "predicted", "label strong", "middle"),
        svg.label(left - 8, top - 8, "true", "label strong", "end"),
    ]
    for j, name in enumerate(names):
        marks.append(svg.label(left + (j + 0.5) * side, top - 8, name, "tick", "middle", most))
        marks.append(svg.label(left - 8, top + (j + 0.5) * tall + 4, name, "tick", "end", 12))
    for (j, k), cell in np.ndenumerate(table):
        x, y, s = left + k * side, top + j * tall, float(share[j, k])
        style = "fill c2" if j == k else "fill c1"
        marks.append(svg.rect(x, y, side - 2, tall - 2, "cell"))
        if s > 0.0:
            marks.append(svg.rect(x, y, side - 2, tall - 2, style, 0.08 + 0.5 * s))
        middle, two = x + side / 2 - 1, side >= 50.0
        marks.append(svg.label(middle, y + tall / 2 + (-1 if two else 4), f"{int(cell):,}",
                               "tick strong", "middle"))  # fmt: skip
        if two:
            marks.append(svg.label(middle, y + tall / 2 + 15, percent(s), "small", "middle"))
    return svg.picture(key, WIDTH, top + n * tall + 6, title, description, marks)
