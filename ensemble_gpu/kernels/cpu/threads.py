"""How many threads, and who may use numba's pool.

numba's simplest threading layer must not be entered by two threads at once, and the others gain
nothing from it, because a kernel already uses all the threads that it was given. So parallel
kernels run under one lock; serial ones (n_jobs=1, small data) never take it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
from numba import config

_POOL = threading.Lock()


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

    def call(self, serial: Any, parallel: Any, *args: Any) -> Any:
        """The serial kernel for one thread, the parallel one under the lock for more."""
        if self.threads == 1:
            return serial(*args)
        with self.pool():
            return parallel(*args)

    def share(self, function: Any, n: int) -> int:
        """function(worker, start, stop) over contiguous shares of n items; how many workers."""
        workers = max(1, min(self.threads, n, _available()))
        bounds = [n * w // workers for w in range(workers + 1)]
        if workers == 1:
            function(0, 0, n)
            return 1
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(function, range(workers), bounds[:-1], bounds[1:]))
        return workers

    @contextmanager
    def pool(self) -> Iterator[None]:
        with _POOL:
            before, wanted = numba.get_num_threads(), min(self.threads, _available())
            if before == wanted:
                yield
                return
            numba.set_num_threads(wanted)
            try:
                yield
            finally:
                numba.set_num_threads(before)


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
