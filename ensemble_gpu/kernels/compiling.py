"""Say so when compilation keeps the user waiting.

Kernels are compiled on first use and cached on disk. A first fit on a fresh install therefore takes
some seconds longer than any later one; after two seconds of compiling this prints one line.
"""

from __future__ import annotations

import sys
import threading
import time

from numba.core import event

PATIENCE_SECONDS = 2.0
MESSAGE = (
    "ensemble_gpu: compiling kernels for this machine; this happens once, later runs load them "
    "from the cache."
)


class Announcer(event.Listener):
    """Adds up the time that our kernels take to compile; speaks once, on standard error."""

    def __init__(self) -> None:
        self.depth = 0
        self.spent = 0.0
        self.announced = False
        self.started = 0.0
        self.timer: threading.Timer | None = None

    def on_start(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        self.depth += 1
        if self.depth == 1 and not self.announced:
            self.started = time.monotonic()
            self.timer = threading.Timer(max(0.0, PATIENCE_SECONDS - self.spent), self._speak)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        self.depth -= 1
        if self.depth == 0 and self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.spent += time.monotonic() - self.started

    def _speak(self) -> None:
        if not self.announced:
            self.announced = True
            print(MESSAGE, file=sys.stderr, flush=True)


def _is_ours(event: event.Event) -> bool:
    module = event.data["dispatcher"].py_func.__module__
    return module.split(".")[0] == __name__.split(".")[0]


def announce_compilation() -> None:
    """Listen from now on; called when the compiled engine is first loaded."""
    event.register("numba:compile", Announcer())
