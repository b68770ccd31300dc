"""How far a piece of work has come, as a line of text."""

from __future__ import annotations

import sys
from typing import Any


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
