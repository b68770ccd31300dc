"""How many threads, and the helpers that take part in kernels.

A kernel shares its work among the workers of a crew (kernels/cpu/sharing.py): `Run.call` hands it
one. Helpers belong to the process and serve one kernel at a time: a second fit at the same time
runs on its own thread alone. Between kernels they wait for work in compiled code, for a fraction of
a millisecond, then they sleep.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import config
from numba.core import event

from ensemble_gpu.kernels.cpu.sharing import ALONE, OPEN, WORKERS, new_crew, serve

# Turns of a helper's waiting loop before it sleeps.
PATIENCE = 100_000


def _available() -> int:
    return int(vars(config)["NUMBA_NUM_THREADS"])


@dataclass(frozen=True)
class Run:
    """`threads` workers; more than the machine has is allowed and changes nothing."""

    threads: int

    @classmethod
    def of(cls, n_jobs: int | None) -> Run:
        available = _available()
        if n_jobs is None:
            return cls(available)
        return cls(n_jobs if n_jobs > 0 else max(1, available + 1 + n_jobs))

    def limited_to(self, work: int, per_thread: int) -> Run:
        """One thread where the work would not repay handing it out."""
        return self if self.threads > 1 and work >= 2 * per_thread else ONE

    def call(self, kernel: Any, *arguments: Any) -> Any:
        """kernel(crew, *arguments), with a crew of at most so many threads.

        The crew has one worker where its helpers serve another call.
        """
        team = _TEAM
        if self.threads == 1 or not team.free.acquire(blocking=False):
            return kernel(ALONE, *arguments)
        try:
            team.gather(self.threads)
            return kernel(team.crew, *arguments)
        finally:
            team.crew[OPEN] = 0
            team.free.release()


ONE = Run(1)


class _Helper:
    """A thread that serves a crew. A lock is the cheapest way to wake it."""

    def __init__(self, crew: Any, worker: int) -> None:
        self.crew, self.worker = crew, worker
        self.asleep = False
        self.go = threading.Lock()
        self.go.acquire()
        threading.Thread(target=self._work, name="ensemble_gpu helper", daemon=True).start()

    def wake(self) -> None:
        if self.asleep:
            self.asleep = False
            self.go.release()

    def _work(self) -> None:
        while True:
            serve(self.crew, self.worker, PATIENCE)
            self.asleep = True
            self.go.acquire()


class _Team:
    """A crew with its helpers: at most one less than there are threads."""

    def __init__(self) -> None:
        self.crew = new_crew(_available())
        self.helpers: list[_Helper] = []
        self.free = threading.Lock()

    def gather(self, workers: int) -> None:
        """Have so many workers for the next kernel; they need not all be there when it starts."""
        workers = min(workers, _available())
        while len(self.helpers) < workers - 1:
            try:
                self.helpers.append(_Helper(self.crew, len(self.helpers) + 1))
            except RuntimeError:  # the system has no more threads, or Python is about to end
                break
        self.crew[WORKERS], self.crew[OPEN] = workers, 1
        for helper in self.helpers[: workers - 1]:
            helper.wake()


_TEAM = _Team()


def _forget_helpers() -> None:
    """A forked process has none of its parent's threads."""
    global _TEAM
    _TEAM = _Team()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


class _WhileCompiling(event.Listener):
    """Helpers that wait for work would take a core from the compiler: they sleep meanwhile."""

    def on_start(self, event: Any) -> None:
        _TEAM.crew[OPEN] = 0

    def on_end(self, event: Any) -> None:
        """The next call wakes them."""


event.register("numba:compile", _WhileCompiling())


class Pace:
    """One thread or all of them for a kernel that runs every round: by what each cost lately.

    On a quiet machine all threads win. Where other processes want the cores, a parallel section
    waits for the thread that was put to sleep: a fit of 1e5 x 28 took 2.5 s instead of 0.4 s. The
    result does not depend on the choice, so both are tried: the other one now and then, ever more
    rarely while it loses. All threads are given up only for a clear gain: rounds differ.
    """

    SHORTEST, LONGEST = 8, 512
    CLEAR = 1.25

    def __init__(self) -> None:
        self.together = True
        self.cost = 0.0
        self.interval = self.until_probe = self.SHORTEST

    def call(self, run: Run, work: Callable[[], float], kernel: Any, *arguments: Any) -> Any:
        """`run.call` with all threads or with one; `work` says afterwards how much it was."""
        if run.threads == 1:
            return run.call(kernel, *arguments)
        together, start = self.choose(), time.perf_counter()
        found = (run if together else ONE).call(kernel, *arguments)
        self.note(together, (time.perf_counter() - start) / work())
        return found

    def choose(self) -> bool:
        """Whether the next call should use all threads."""
        self.until_probe -= 1
        return self.together if self.until_probe > 0 else not self.together

    def note(self, together: bool, cost: float) -> None:
        """What a call cost per unit of work."""
        if together == self.together:
            self.cost = 0.5 * (self.cost + cost)
            return
        wins = cost < self.cost if together else cost * self.CLEAR < self.cost
        if wins:
            self.together, self.cost = together, cost
        self.interval = self.SHORTEST if wins else min(2 * self.interval, self.LONGEST)
        self.until_probe = self.interval
