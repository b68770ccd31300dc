"""Seconds by step of a fit: public methods of the engine and the strategies, timed from outside.

A step's time excludes the steps inside it; what no step accounts for is the host's. With one thread
the clock is processor time, so that other processes do not show. With several, a strategy hands
blocks of rows to a pool of threads: the wall time of such a call is shared out between the steps
that ran in the pool, in proportion to the time they took there.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from ensemble_gpu.boosting import gradients, gram, integers, rebuild
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.cpu.weights import CpuHistograms
from ensemble_gpu.learners import stump

# What the tables call the steps; an unlisted public method goes by its name.
LABELS = {
    "edges": "binning: edges",
    "encode": "binning: codes",
    "histograms": "update: first histograms",
    "requantise": "update: requantise",
    "rescale": "update: select, rescale, add",
    "split": "score",
    "evaluate": "predict: look up tables",
    "pair_sums": "sums of gradients",
    "sums": "sums of integers",
    "pack": "pack",
    "gradient_pass": "gradients: move F, the loss, pack",
    "drawn": "draw rows",
    "move": "gradients: move F",
    "exp": "gradients: exp",
    "pair_counts": "tables: pair counts",
    "by_block": "pool",
}
# (owner, attribute, label) of the steps that are not methods of the engine.
STEPS = (
    (stump.StumpSearch, "best", "score"),
    (gram, "accumulate", "tables: cumulate"),
    (gram, "subtract", "subtract"),
    (gradients.Gradients, "_differentiate", "gradients: the loss"),
    (rebuild.Rebuild, "_search", "line search"),
    (integers.Packed, "pack", "pack"),
    (integers.Fine, "pack", "pack"),
)
POOL = LABELS["by_block"]


def clock_for(threads: int) -> Callable[[], float]:
    """Processor time of one thread, wall time of several."""
    return time.process_time if threads == 1 else time.perf_counter


class Profile:
    """Seconds and calls by step."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._pool: defaultdict[str, float] = defaultdict(float)
        self._main = threading.get_ident()
        self._local = threading.local()
        self._lock = threading.Lock()

    def watch(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            inner = self._inner()
            inner.append(0.0)
            start = self.clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent = self.clock() - start
                self._add(label, spent - inner.pop())
                inner[-1] += spent
                if label == POOL:
                    self._share_out()

        return timed

    def _inner(self) -> list[float]:
        """Time spent in the steps inside each open step of this thread."""
        if not hasattr(self._local, "inner"):
            self._local.inner = [0.0]
        return self._local.inner

    def _add(self, label: str, spent: float) -> None:
        with self._lock:
            self.calls[label] += 1
            into = self.seconds if threading.get_ident() == self._main else self._pool
            into[label] += spent

    def _share_out(self) -> None:
        """Give the pool's wall time to the steps that ran in it."""
        total = sum(self._pool.values())
        if total > 0.0:
            wall = self.seconds.pop(POOL)
            for label, spent in self._pool.items():
                self.seconds[label] += wall * spent / total
            self._pool.clear()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the CPU engine, its histograms, and STEPS."""
        steps = [
            (owner, name, LABELS.get(name, name))
            for owner in (CpuEngine, CpuHistograms)
            for name, value in vars(owner).items()
            if callable(value) and not name.startswith("_")
        ]
        steps += [step for step in STEPS if hasattr(step[0], step[1])]
        with ExitStack() as stack:
            for owner, name, label in steps:
                watched = self.watch(label, getattr(owner, name))
                stack.enter_context(patch.object(owner, name, watched))
            yield
