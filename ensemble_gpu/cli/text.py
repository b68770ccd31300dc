"""Plain-text headings and tables for a terminal of 80 to 100 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

WIDTH = 88
# A number, its unit perhaps behind it; a fingerprint that begins with a digit is none.
NUMBER = re.compile(r"[\d.,]+(?![\w.,])")


def heading(title: str) -> str:
    return f"\n{title}\n{'-' * len(title)}"


def paragraph(text: str, indent: str = "") -> str:
    """Lines broken at blanks only: paths and commands stay whole."""
    return textwrap.fill(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False,
        break_long_words=False,
    )  # fmt: skip


def table(header: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Columns two blanks apart; the first is set left, the others right where they are numbers."""
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numeric = [any(NUMBER.match(cell) for cell in column[1:]) for column in columns]

    def line(cells: Sequence[str]) -> str:
        parts = [
            cell.rjust(width) if right and at else cell.ljust(width)
            for at, (cell, width, right) in enumerate(zip(cells, widths, numeric, strict=True))
        ]
        return (indent + "  ".join(parts)).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def seconds(value: float) -> str:
    """A time with three digits that count."""
    if value < 0.1:
        return f"{1000 * value:.1f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"
