"""What the scripts of the gallery share: an experiment is a table, claims and a picture.

A script has `run(small=False) -> Experiment`; `small` is the reduced version that the tests run.
`report(run)` is its main program: it prints the table and the claims, and draws a picture where the
command line names one (needs matplotlib).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Claim:
    """What the lecture says, what was measured, and whether the two agree."""

    says: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Experiment:
    """`draw` gets a matplotlib figure."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    claims: Sequence[Claim]
    draw: Callable[[Any], None]

    def __str__(self) -> str:
        cells = [list(self.columns), *([_text(cell) for cell in row] for row in self.rows)]
        widths = [max(len(line[j]) for line in cells) for j in range(len(self.columns))]
        table = "\n".join(
            line[0].ljust(widths[0])
            + "".join("  " + cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))
            for line in cells
        )
        claims = "\n".join(
            f"{'agrees' if claim.holds else 'DISAGREES'}: {claim.says}\n"
            f"    measured: {claim.measured}"
            for claim in self.claims
        )
        return f"{self.title}\n\n{table}\n\n{claims}"

    def save(self, path: Any) -> None:
        """Draw into a file."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11.0, 4.2), layout="constrained")
        FigureCanvasAgg(figure)
        self.draw(figure)
        figure.suptitle(self.title)
        figure.savefig(path, dpi=110)


def _text(cell: Any) -> str:
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)


def percent(share: float) -> str:
    """A share as text."""
    return f"{100.0 * share:.1f} %"


def report(run: Callable[..., Experiment]) -> None:
    """The main program of a script."""
    found = run()
    print(found)
    for path in sys.argv[1:2]:
        found.save(path)
