"""How many threads, and how a kernel's work is shared among them.

A kernel is serial and lets go of the interpreter's lock; `Run.share` calls it for contiguous shares
of the work, the first on the calling thread, the others on helper threads that wait for work from
one call to the next. So one compiled function serves any number of threads.

Helpers belong to the process. A call takes those that are idle: two fits at once share them, and
where none is left a call does all of its work itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba import config

Share = Callable[[int, int, int], Any]


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
        """One thread where the work would not repay waking the others."""
        return self if self.threads > 1 and work >= 2 * per_thread else Run(1)

    def share(self, function: Share, n: int) -> int:
        """function(worker, start, stop) over contiguous shares of n items; how many workers.

        Workers are numbered from 0, the caller, and never more than `threads`.
        """
        wanted = min(self.threads, n, _available())
        if wanted <= 1:
            function(0, 0, n)
            return 1
        helpers = _CREW.take(wanted - 1)
        workers = 1 + len(helpers)
        jobs = [
            _Job(function, w, n * w // workers, n * (w + 1) // workers) for w in range(1, workers)
        ]
        for helper, job in zip(helpers, jobs, strict=True):
            helper.start(job)
        try:
            function(0, 0, n // workers)
        finally:
            for job in jobs:
                job.done.acquire()
        for job in jobs:
            if job.error is not None:
                raise job.error
        return workers


class _Job:
    """A share of the work of one call; `done` is released when it is finished."""

    __slots__ = ("arguments", "done", "error", "function")

    def __init__(self, function: Share, worker: int, start: int, stop: int) -> None:
        self.function, self.arguments = function, (worker, start, stop)
        self.done = threading.Lock()
        self.done.acquire()
        self.error: BaseException | None = None


class _Helper:
    """A thread that waits for jobs. A lock is the cheapest way to wake it."""

    def __init__(self, idle: list[_Helper]) -> None:
        self.idle = idle
        self.job: _Job | None = None
        self.go = threading.Lock()
        self.go.acquire()
        threading.Thread(target=self._work, name="ensemble_gpu helper", daemon=True).start()

    def start(self, job: _Job) -> None:
        self.job = job
        self.go.release()

    def _work(self) -> None:
        while True:
            self.go.acquire()
            job, self.job = self.job, None
            assert job is not None
            try:
                job.function(*job.arguments)
            except BaseException as error:
                job.error = error
            self.idle.append(self)  # first: the caller may have the next job at once
            job.done.release()
            del job  # its arrays must not live until the next one


class _Crew:
    """The helpers of this process: at most one less than there are threads."""

    def __init__(self) -> None:
        self.idle: list[_Helper] = []
        self.started = 0
        self.lock = threading.Lock()

    def take(self, n: int) -> list[_Helper]:
        """At most n idle helpers; new ones as long as there are few."""
        taken: list[_Helper] = []
        while len(taken) < n:
            try:
                taken.append(self.idle.pop())
            except IndexError:
                with self.lock:
                    if self.started >= _available() - 1:
                        break
                    self.started += 1
                try:
                    taken.append(_Helper(self.idle))
                except RuntimeError:  # the system has no more threads, or Python is about to end
                    break
        return taken


_CREW = _Crew()


def _forget_helpers() -> None:
    """A forked process has none of its parent's threads."""
    global _CREW
    _CREW = _Crew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


class Pace:
    """One thread or all of them for a kernel that runs every round: by what each cost lately.

    On a quiet machine all threads win. Where other processes want the cores, a parallel section
    waits for the thread that was put to sleep: a fit of 1e5 x 28 took 2.5 s instead of 0.4 s. The
    result does not depend on the choice, so both are tried: the other one now and then, ever more
    rarely while it loses. All threads are given up only for a clear gain: rounds differ.
    """

    SHORTEST, LONGEST = 8, 512
    CLEAR = 1.6

    def __init__(self) -> None:
        self.together = True
        self.cost = 0.0
        self.interval = self.until_probe = self.SHORTEST

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
