"""While kernels are compiled: no garbage collection, and a word where the user has to wait.

Kernels are compiled on first use and cached on disk. A first fit on a fresh install therefore takes
some seconds longer than any later one; after two seconds of compiling this prints one line.

numba makes many small objects that live until a function is compiled: Python's collector walks
through all of them again and again, a seventh of the time, and finds nothing.
"""

from __future__ import annotations

import gc
import sys
import threading
import time

from numba.core import event

from ensemble_gpu.kernels.jit import cache_is_missing, temporary_cache

PATIENCE_SECONDS = 2.0
MESSAGE = (
    "ensemble_gpu: compiling kernels for this machine, once for each kind of model; later runs "
    "load them from the cache."
)
MESSAGE_TEMPORARY = (
    "ensemble_gpu: compiling kernels for this machine, once for each kind of model. Neither the "
    "package's folder nor the home directory can be written, so they are kept in {folder}; set "
    "NUMBA_CACHE_DIR to keep them elsewhere."
)
MESSAGE_WITHOUT_CACHE = (
    "ensemble_gpu: compiling kernels for this machine, and each process will do it again: there is "
    "no directory to keep them in. Set NUMBA_CACHE_DIR to one that can be written."
)


class Announcer(event.Listener):
    """Adds up the time that our kernels take to compile; speaks once, on standard error.

    numba compiles under a lock of its own, and tells of functions within functions.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.collects = False
        self.spent = 0.0
        self.announced = False
        self.started = 0.0
        self.timer: threading.Timer | None = None

    def on_start(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        self.depth += 1
        if self.depth > 1:
            return
        self.collects = gc.isenabled()
        gc.disable()
        if not self.announced:
            self.started = time.monotonic()
            self.timer = threading.Timer(max(0.0, PATIENCE_SECONDS - self.spent), self._speak)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: event.Event) -> None:
        if not _is_ours(event):
            return
        self.depth -= 1
        if self.depth > 0:
            return
        if self.collects:
            gc.enable()
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.spent += time.monotonic() - self.started

    def _speak(self) -> None:
        if not self.announced:
            self.announced = True
            print(_message(), file=sys.stderr, flush=True)


def _message() -> str:
    if cache_is_missing():
        return MESSAGE_WITHOUT_CACHE
    folder = temporary_cache()
    return MESSAGE if folder is None else MESSAGE_TEMPORARY.format(folder=folder)


def _is_ours(event: event.Event) -> bool:
    module = event.data["dispatcher"].py_func.__module__
    return module.split(".")[0] == __name__.split(".")[0]


ANNOUNCER = Announcer()


def announce_compilation() -> None:
    """Listen from now on; called when the compiled engine is first loaded."""
    event.register("numba:compile", ANNOUNCER)
