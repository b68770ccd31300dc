"""How many threads, and who may use numba's pool.

numba's simplest threading layer must not be entered by two threads at once, and the others gain
nothing from it, because a kernel already uses all the threads that it was given. So parallel
kernels run under one lock; serial ones (n_jobs=1, small data) never take it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
from numba import config

_POOL = threading.Lock()

# Turns that a waiting thread of GNU OpenMP spins before it sleeps. Its default, some 300,000, lets
# a fit on a busy machine take eight times as long as with one thread (1e5 x 28, 300 rounds,
# two cores with five other processes: 2.5 s against 0.4 s; with 100 turns 0.4 s).
SPIN = "100"


@cache
def _start_pool() -> None:
    """Start numba's threads; OpenMP reads its environment once, while it is being loaded."""
    if {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ):
        numba.get_num_threads()
        return
    os.environ["GOMP_SPINCOUNT"] = SPIN
    try:
        numba.get_num_threads()
    finally:
        del os.environ["GOMP_SPINCOUNT"]


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

    @contextmanager
    def pool(self) -> Iterator[None]:
        with _POOL:
            _start_pool()
            before = numba.get_num_threads()
            numba.set_num_threads(min(self.threads, _available()))
            try:
                yield
            finally:
                numba.set_num_threads(before)
