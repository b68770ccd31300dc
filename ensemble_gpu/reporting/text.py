"""Strings of users and numbers as text that is safe in HTML and SVG, and the same each time."""

from __future__ import annotations

import html
import math
import numbers
from typing import Any

UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
REPLACEMENT = "\ufffd"


def plain(value: Any, most: int | None = None) -> str:
    """The text of a value without characters that cannot be seen; cut to `most` of them.

    Control characters, lone surrogates and marks that turn the direction of writing become a
    replacement character.
    """
    shown = "".join(c if c.isprintable() else REPLACEMENT for c in str(value))
    return shown if most is None or len(shown) <= most else f"{shown[: most - 1]}…"


def escaped(value: Any, most: int | None = None) -> str:
    """The text of a value with &, <, > and quotes written as entities."""
    return html.escape(plain(value, most), quote=True)


def number(value: float, digits: int = 4) -> str:
    """A number with so many digits that count; integers whole, thousands apart."""
    value = float(value)
    if math.isnan(value):
        return "missing"
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if 1000.0 <= abs(value) < 1e15:
        return f"{value:,.1f}"
    return f"{value:.{digits}g}"


def percent(share: float, digits: int = 1) -> str:
    return "-" if math.isnan(share) else f"{100.0 * share:.{digits}f} %"


def short(value: float) -> str:
    """A number beside an axis: 0.25, 12k, 3M."""
    for unit, letter in UNITS:
        if abs(value) >= unit and (abs(value) >= 10_000 or letter != "k"):
            return f"{value / unit:.4g}{letter}"
    return f"{value:.6g}" if value else "0"


def count(n: int, noun: str, plural: str | None = None) -> str:
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def value_text(value: Any) -> str:
    """A value of a row: a number in short, anything else as it is."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return number(float(value))
    return str(value)
