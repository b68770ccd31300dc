"""Where the time and the memory of a fit go, and what the first fit costs.

python -m bench.fit_cost [--rows N ...] [--rounds T] [--threads K] prints Markdown:

- the share of each step: every public method of the CPU engine and its histograms is timed, less
  what it calls itself; "host" is the rest (validation, the sort by class, the loop, the model).
  With one thread the times are processor time, so that other processes do not show;
- peak memory beyond X in bytes a cell and a row, beside the bound of 3 bytes a cell and 32 a row;
- the first fit in a new process, with an empty cache of compiled kernels and with a full one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any
from unittest.mock import patch

from bench.data import Shape, generated
from bench.measure import peak_memory
from bench.peers import CONTESTANTS, OURS, warm_up
from bench.report import seconds, table
from bench.works import job_for
from ensemble_gpu.kernels.cpu.engine import CpuEngine, CpuHistograms

FEATURES = 28
BYTES_A_CELL, BYTES_A_ROW = 3, 32

FIRST_FIT = """
import time
started = time.perf_counter()
import numpy as np
from ensemble_gpu import AdaBoostClassifier
imported = time.perf_counter()
rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 28), dtype=np.float32)
AdaBoostClassifier(n_estimators=10).fit(X, X[:, 0] > 0.3)
print(imported - started, time.perf_counter() - imported, time.process_time())
"""


def clock_for(threads: int) -> Callable[[], float]:
    """Processor time of one thread, wall time of several."""
    return time.process_time if threads == 1 else time.perf_counter


class Profile:
    """Seconds and calls by step; a step's time excludes the steps inside it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self._inner = [0.0]

    def watch(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            start = self.clock()
            try:
                return function(*args, **kwargs)
            finally:
                spent = self.clock() - start
                self.seconds[label] += spent - self._inner.pop()
                self.calls[label] += 1
                self._inner[-1] += spent

        return timed

    @contextmanager
    def of_engine(self) -> Iterator[None]:
        """Watch the CPU engine and its histograms."""
        patches = [
            patch.object(owner, name, self.watch(name, value))
            for owner in (CpuEngine, CpuHistograms)
            for name, value in vars(owner).items()
            if callable(value) and not name.startswith("_")
        ]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()


def profile_table(rows: int, rounds: int, threads: int) -> str:
    """Steps of one warm fit."""
    split = generated(Shape(rows, FEATURES))
    warm_up(OURS, split.X, split.y, threads)
    profile = Profile(clock_for(threads))
    with profile.of_engine():
        profile.watch("host", CONTESTANTS[OURS].fit)(job_for(OURS, split, rounds, threads))
    total = sum(profile.seconds.values())
    lines = [
        [label, seconds(spent), f"{spent / total:.1%}", str(profile.calls[label]),
         seconds(spent / profile.calls[label])]
        for label, spent in sorted(profile.seconds.items(), key=lambda item: -item[1])
    ]  # fmt: skip
    lines.append(["all", seconds(total), "100%", "1", seconds(total)])
    title = f"### Profile, {Shape(rows, FEATURES)}, {rounds:,} rounds, {threads} thread(s)\n\n"
    return title + table(["step", "time", "share", "calls", "a call"], lines)


def memory_table(rows: int, rounds: int, threads: int) -> str:
    """Peak beyond X beside the bound."""
    split = generated(Shape(rows, FEATURES))
    peak = peak_memory(OURS, split.X, split.y, rounds, threads)
    bound = rows * (BYTES_A_CELL * FEATURES + BYTES_A_ROW)
    lines = [
        ["peak beyond X", f"{peak / 2**20:,.0f} MiB", f"{bound / 2**20:,.0f} MiB"],
        ["a row", f"{peak / rows:.1f} bytes", f"{bound / rows:.0f} bytes"],
        ["a cell", f"{peak / rows / FEATURES:.2f} bytes", f"{bound / rows / FEATURES:.2f} bytes"],
    ]
    title = f"### Memory, {Shape(rows, FEATURES)}, {rounds:,} rounds, {threads} thread(s)\n\n"
    return title + table(["", "measured", "bound"], lines)


def first_fit_table() -> str:
    """Import and first fit (20,000 x 28, 10 rounds), kernels compiled and from the cache."""
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for label in ("empty cache (compiles)", "full cache"):
            done = subprocess.run(
                [sys.executable, "-c", FIRST_FIT],
                check=True, capture_output=True, text=True, env=environment,
            )  # fmt: skip
            spent = map(float, done.stdout.split()[-3:])
            lines.append([label, *map(seconds, spent)])
    title = "### First fit in a new process, 20,000 x 28, 10 rounds\n\n"
    return title + table(["", "import", "first fit", "CPU time of both"], lines)


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.fit_cost", description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    for rows in arguments.rows:
        print(profile_table(rows, arguments.rounds, arguments.threads), flush=True)
    print(memory_table(max(arguments.rows), arguments.rounds, arguments.threads), flush=True)
    print(first_fit_table(), flush=True)


if __name__ == "__main__":
    main()
