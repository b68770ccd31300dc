"""Elements of SVG as strings; colours and fonts are classes of the page (style.py)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ensemble_gpu.reporting.text import escaped

# Points of a curve at most: the eye sees no more in a picture of this width.
MOST_POINTS = 220


def pixel(value: float) -> str:
    """A coordinate to a tenth of a pixel, as short as it can be."""
    text = f"{value:.1f}"
    text = text.removesuffix(".0")
    return "0" if text == "-0" else text


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return (
        f'<line class="{style}" x1="{pixel(x1)}" y1="{pixel(y1)}" x2="{pixel(x2)}" '
        f'y2="{pixel(y2)}"/>'
    )


def rect(x: float, y: float, width: float, height: float, style: str, opacity: float = 1.0) -> str:
    faint = "" if opacity == 1.0 else f' fill-opacity="{opacity:.3f}"'
    return (
        f'<rect class="{style}" x="{pixel(x)}" y="{pixel(y)}" width="{pixel(max(0.0, width))}" '
        f'height="{pixel(max(0.0, height))}"{faint}/>'
    )


def circle(x: float, y: float, radius: float, style: str) -> str:
    return f'<circle class="{style}" cx="{pixel(x)}" cy="{pixel(y)}" r="{pixel(radius)}"/>'


def label(
    x: float, y: float, words: str, style: str = "label", anchor: str = "start",
    most: int | None = None,
) -> str:  # fmt: skip
    """Text whose baseline is at y; the full text is its tooltip where it was cut."""
    inside = escaped(words, most)
    if inside != escaped(words):
        inside += f"<title>{escaped(words)}</title>"
    at = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{style}" x="{pixel(x)}" y="{pixel(y)}"{at}>{inside}</text>'


def path(x: np.ndarray, y: np.ndarray, style: str) -> str:
    """A line through points; a gap where a coordinate is no number."""
    pieces, open_ = [], False
    for a, b in _thinned(x, y):
        if not (np.isfinite(a) and np.isfinite(b)):
            open_ = False
            continue
        pieces.append(f"{'L' if open_ else 'M'}{pixel(a)} {pixel(b)}")
        open_ = True
    return f'<path class="{style}" d="{"".join(pieces)}"/>'


def area(x: np.ndarray, y: np.ndarray, base: float, style: str) -> str:
    """What is between a line and a height."""
    points = "".join(f"L{pixel(a)} {pixel(b)}" for a, b in zip(x, y, strict=True))
    ends = f"M{pixel(x[0])} {pixel(base)}", f"L{pixel(x[-1])} {pixel(base)}Z"
    return f'<path class="{style}" d="{ends[0]}{points}{ends[1]}"/>'


def _thinned(x: np.ndarray, y: np.ndarray) -> Iterable[tuple[float, float]]:
    """Points at equal distances along the line, the first and the last among them."""
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) > MOST_POINTS:
        steps = np.nan_to_num(np.abs(np.diff(x)) + np.abs(np.diff(y)))
        along = np.concatenate([[0.0], np.cumsum(steps)])
        at = np.searchsorted(along, np.linspace(0.0, along[-1], MOST_POINTS))
        at = np.unique(np.concatenate([[0], np.minimum(at, len(x) - 1), [len(x) - 1]]))
        x, y = x[at], y[at]
    return zip(x.tolist(), y.tolist(), strict=True)


def picture(
    key: str, width: float, height: float, title: str, description: str, marks: Iterable[str]
) -> str:
    """A picture that scales with the page; title and description are for those who cannot see it.

    `key` is unique in the page.
    """
    return (
        f'<svg role="img" viewBox="0 0 {pixel(width)} {pixel(height)}" '
        f'aria-labelledby="{key}-title {key}-text">'
        f'<title id="{key}-title">{escaped(title)}</title>'
        f'<desc id="{key}-text">{escaped(description)}</desc>{"".join(marks)}</svg>'
    )
