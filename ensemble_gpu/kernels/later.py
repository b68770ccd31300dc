"""Kernels that another process compiles while a fit goes on without them.

The kernel that grows whole trees takes ten seconds to compile. Until it is there, trees grow step
by step in smaller kernels, at two to four times the cost and to the same bits: a first fit need not
wait. `Later(kernel).is_at_hand(...)` says whether a kernel can be called at once; where it cannot,
another process compiles it into the cache. A fit asks again every now and then, and goes on faster
once it is there. What was asked for is finished also where the process that asked has ended.

    ENSEMBLE_GPU_COMPILE=now    kernels are compiled by the fit that needs them

This is also what happens where there is one core, no folder to keep kernels in, or no Python that
could be started a second time.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from numba import config

try:
    import fcntl
except ImportError:  # Windows: two processes may compile the same kernel
    fcntl = None  # type: ignore[assignment]

WHEN, NOW = "ENSEMBLE_GPU_COMPILE", "now"
# How often the cache is looked into, and after how long a fit compiles what nobody else has.
SECONDS, PATIENCE_SECONDS = 0.05, 120.0
# What the other process runs: it finds modules where this one does. Before that it imports nothing.
PROGRAM = (
    f"import sys; sys.path[:] = {{path!r}}; from {__name__} import compile_asked; compile_asked()"
)
# When something was first missed; who compiles it, by who asked.
_MISSED: dict[tuple[Any, Any], float] = {}
_PROCESSES: dict[tuple[int, str, Any], subprocess.Popen[bytes]] = {}
_LOOKING = threading.Lock()


class Later:
    """A kernel that its callers can do without for a while; one object a fit.

    Who misses it first goes on compiling what it needs instead; the process is started for who asks
    next, so that the two do not disturb each other.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.here = False
        self.looked = float("-inf")

    @property
    def is_awaited(self) -> bool:
        """Whether it is not worth asking again already."""
        return not self.here and time.monotonic() - self.looked < SECONDS

    def is_at_hand(self, *arguments: Any) -> bool:
        """Whether the kernel need not be compiled for these arguments, or has to be by the caller.

        All arguments that a fit asks about have the same types.
        """
        if self.here:
            return True
        if self.is_awaited or not _LOOKING.acquire(blocking=False):
            return False
        try:
            self.here = not _can_wait(self.kernel) or self._is_compiled(arguments)
            self.looked = time.monotonic()
        finally:
            _LOOKING.release()
        return self.here

    def _is_compiled(self, arguments: tuple[Any, ...]) -> bool:
        kernel = self.kernel
        signature = tuple(kernel.typeof_pyval(argument) for argument in arguments)
        if signature in kernel.overloads or kernel._cache.holds(signature, kernel.targetctx):
            return True
        missed, now = (kernel.py_func, signature), time.monotonic()
        if missed not in _MISSED:
            _MISSED[missed] = now
            return False
        return now - _MISSED[missed] > PATIENCE_SECONDS or not _is_compiling(kernel, signature)


def compile_now() -> None:
    """From here on nothing is left to another process: what is timed has all its kernels."""
    os.environ[WHEN] = NOW


def _can_wait(kernel: Any) -> bool:
    """Whether another process could compile, and where this one would find the result."""
    if os.environ.get(WHEN) == NOW or int(vars(config)["NUMBA_NUM_THREADS"]) < 2:
        return False
    # of an embedded or frozen Python this would be a program of its own
    is_python = Path(sys.executable or "").name.lower().startswith("python")
    return is_python and not hasattr(sys, "frozen") and hasattr(kernel._cache, "holds")


def _is_compiling(kernel: Any, signature: Any) -> bool:
    """Whether a process compiles kernels of this folder; one is started for this kernel, once."""
    function = kernel.py_func
    key = os.getpid(), function.__qualname__, signature
    if key in _PROCESSES:
        return _PROCESSES[key].poll() is None
    environment = {**os.environ, WHEN: NOW}
    if vars(config)["CACHE_DIR"]:
        environment["NUMBA_CACHE_DIR"] = vars(config)["CACHE_DIR"]
    program = PROGRAM.format(path=[str(path) for path in sys.path])
    isolated = ["-I"] if sys.flags.isolated else []
    try:
        with _locked(kernel._cache.cache_path, waits=False) as free:
            if not free:
                return True
        process = _PROCESSES[key] = subprocess.Popen(
            [sys.executable, *isolated, "-c", program], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
            start_new_session=True, creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(pickle.dumps((function.__module__, function.__name__, signature)))
    except OSError:  # no further process is allowed here, or it did not live to read
        return False
    return True


@atexit.register
def _let_go() -> None:
    """Processes that still compile go on: Python need not warn of them."""
    for process in _PROCESSES.values():
        if process.poll() is None:
            process.returncode = 0


def _look_afresh() -> None:
    """A forked process has none of its parent's threads: nobody would release their lock."""
    global _LOOKING
    _LOOKING = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_look_afresh)


def compile_asked() -> None:
    """What the other process does: compile what it is asked for, into the cache."""
    module, name, signature = pickle.load(sys.stdin.buffer)
    kernel = getattr(import_module(module), name)
    with _locked(kernel._cache.cache_path, waits=True):
        kernel.compile(signature)


@contextmanager
def _locked(folder: str, waits: bool) -> Iterator[bool]:
    """Processes that compile take turns: who comes second finds what the first has compiled.

    Whether the lock is held; where there are no locks it always is.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    held, got = os.open(folder, os.O_RDONLY) if fcntl else -1, True
    try:
        if fcntl:
            fcntl.flock(held, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        got = False
    except OSError:  # a file system without locks
        pass
    try:
        yield got
    finally:
        if held >= 0:
            os.close(held)
