"""How far a piece of work has come: what callbacks are told, and a line of text."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class RoundInfo:
    """What a callback sees after a round.

    The stump is x[feature] <= threshold, with `values[output, leaf]` for left, right and
    abstaining rows. Of a tree they are the root's test and the values of all nodes; where it tests
    a categorical feature `threshold` is NaN and `categories` are those that go left. None where a
    round is neither. Losses are None where nobody computes them. `evals[set][metric]` are the
    metrics of all validation sets, `validation_loss` is the one that decides early stopping. A
    round of a forest is a tree.
    """

    round: int
    n_rounds: int
    feature: int | None
    threshold: float | None
    error: float
    alpha: float
    validation_loss: float | None
    training_loss: float | None = None
    values: np.ndarray | None = None
    categories: list[Any] | None = None
    evals: dict[str, dict[str, float]] = field(default_factory=dict)


def check_callbacks(callbacks: Sequence[Any] | None) -> None:
    """Raise unless the parameter is None or a list of callables."""
    given = [] if callbacks is None else callbacks
    listed = isinstance(given, list | tuple)
    for wrong in [c for c in given if not callable(c)] if listed else [given]:
        raise TypeError(f"callbacks must be None or a list of callables; got {wrong!r}.")


class TextBar:
    """A bar on standard error; a file or a pipe gets the last line only.

    Parameters
    ----------
    label : str
        Text before the bar.
    width : int
        Characters of the bar.
    stream : text stream, default standard error
    """

    def __init__(self, label: str, width: int = 30, stream: Any = None) -> None:
        self.label, self.width, self.stream = label, width, stream
        self.line = ""

    def show(self, done: int, total: int, noun: str) -> None:
        """`done` of `total` are done."""
        filled = self.width * done // total
        bar = "#" * filled + "." * (self.width - filled)
        moved = bar not in self.line
        self.line = f"{self.label} [{bar}] {noun} {done}/{total}"
        if moved and self._stream.isatty():
            self._stream.write(f"\r{self.line}")
            self._stream.flush()

    def close(self) -> None:
        """Finish the line; called when the work has ended, early or not."""
        start = "\r" if self._stream.isatty() else ""
        self._stream.write(f"{start}{self.line}\n")
        self._stream.flush()

    @property
    def _stream(self) -> Any:
        return self.stream or sys.stderr
