"""Measuring: interleaved runs, peak memory of a child process, and the machine."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from sklearn.metrics import roc_auc_score

PACKAGES = (
    "numpy", "numba", "scikit-learn", "lightgbm", "xgboost-cpu", "catboost", "interpret-core",
)  # fmt: skip

# Share of the cores that others may use while a machine counts as quiet.
QUIET = 0.1

# Seconds for which short work is repeated when its turn comes. Threads of OpenMP wait for more work
# in a loop, on the cores, for up to 0.2 s: else whoever comes next would pay for them.
TURN = 0.3


@dataclass
class Timing:
    """Each run of one contestant, and what its last run returned.

    `wall` and `cpu` are seconds by the clock and of processor time, summed over threads. With one
    thread the two agree on a quiet machine, and on a busy one only `cpu` means anything, so `best`
    and `median` are taken from it. `disturbed` is the share of the machine that others took.
    """

    threads: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    disturbed: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def seconds(self) -> list[float]:
        return self.cpu if self.threads == 1 else self.wall

    @property
    def best(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def times(self, factor: float) -> Timing:
        """The same for so many times the work, or for a part of it."""
        wall, cpu = ([factor * s for s in spent] for spent in (self.wall, self.cpu))
        return replace(self, wall=wall, cpu=cpu)

    def multiplied(self, factor: float, once: Timing) -> Timing:
        """The same for so many times the work, of which a part is done only once."""
        many, extra = self.times(factor), once.times(factor - 1.0)
        wall = [s - min(extra.wall) for s in many.wall]
        return replace(many, wall=wall, cpu=[s - min(extra.cpu) for s in many.cpu])


@dataclass(frozen=True)
class Effort:
    """Threads of everybody, how often to repeat, after how many seconds a contestant is not run
    again, and how many to wait before each run for other processes to leave the cores alone.
    """

    threads: int
    repeats: int
    budget: float
    patience: float = 0.0


def interleave(calls: Mapping[str, Callable[[], Any]], effort: Effort) -> dict[str, Timing]:
    """Run A, B, C, A, B, C, ...: a slow minute of the machine falls on everybody.

    Short work is done several times in its turn.

    Everybody runs once; then again while it has not used up its budget, so that the slow ones do
    not make the whole wait.
    """
    timings = {name: Timing(effort.threads) for name in calls}
    for _ in range(effort.repeats):
        for name, call in calls.items():
            timing = timings[name]
            if timing.wall and sum(timing.wall) + min(timing.wall) > effort.budget:
                continue
            _wait_until_quiet(effort.patience)
            _take_turn(timing, call)
            print(f"  {name}: {timing.wall[-1]:.4g} s, CPU {timing.cpu[-1]:.4g} s", file=sys.stderr)
    return timings


def _take_turn(timing: Timing, call: Callable[[], Any]) -> None:
    stop, again = time.perf_counter() + TURN, True
    while again:
        timing.result = None  # free the last model before the next is made
        others, cpu, start = _busy_elsewhere(), time.process_time(), time.perf_counter()
        timing.result = call()
        now = time.perf_counter()
        timing.wall.append(now - start)
        timing.cpu.append(time.process_time() - cpu)
        taken = (_busy_elsewhere() - others) / ((now - start) * (os.cpu_count() or 1))
        timing.disturbed.append(min(1.0, max(0.0, taken)))
        again = now < stop


def _wait_until_quiet(patience: float) -> None:
    """Return when others have used less than QUIET of the machine for a moment."""
    stop = time.perf_counter() + patience
    while time.perf_counter() < stop:
        others, start = _busy_elsewhere(), time.perf_counter()
        time.sleep(0.3)
        seconds = (time.perf_counter() - start) * (os.cpu_count() or 1)
        if _busy_elsewhere() - others < QUIET * seconds:
            return


def _busy_elsewhere() -> float:
    """Seconds that the machine's cores have worked for others than this process."""
    times, own = psutil.cpu_times(), psutil.Process().cpu_times()
    busy = sum(times) - times.idle - getattr(times, "iowait", 0.0)
    return float(busy - own.user - own.system)


def auc(y: np.ndarray, probabilities: np.ndarray) -> float:
    """Area under the ROC curve; with several classes one against the rest, averaged."""
    if probabilities.ndim == 1:
        return float(roc_auc_score(y, probabilities))
    if probabilities.shape[1] == 2:
        return float(roc_auc_score(y, probabilities[:, 1]))
    total = probabilities.sum(axis=1, keepdims=True, dtype=np.float64)
    return float(roc_auc_score(y, probabilities / total, multi_class="ovr"))


def log_loss(y: np.ndarray, probabilities: np.ndarray) -> float:
    """Mean of -ln of the probability of the true class."""
    return float(-np.mean(np.log(np.clip(_of_truth(y, probabilities), 1e-15, 1.0))))


def exponential_loss(y: np.ndarray, probabilities: np.ndarray) -> float:
    """Mean of exp(-y F) with F half the log-odds: sqrt((1 - p) / p), p of the true class."""
    p = np.clip(_of_truth(y, probabilities), 1e-15, 1.0 - 1e-15)
    return float(np.mean(np.sqrt((1.0 - p) / p)))


def _of_truth(y: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    if probabilities.ndim == 1:
        probabilities = np.stack([1.0 - probabilities, probabilities], axis=1)
    return np.asarray(probabilities[np.arange(len(y)), y], dtype=np.float64)


def peak_memory(name: str, X: np.ndarray, y: np.ndarray, rounds: int, threads: int) -> int:
    """Bytes that a fit adds at its peak: highest minus present size of a child that holds X.

    The child has imported the library and has fitted a few rows before.
    """
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), X)
        np.save(Path(folder, "y.npy"), y)
        command = [sys.executable, "-m", "bench.child", name, folder, str(rounds), str(threads)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def machine(threads: int) -> dict[str, Any]:
    """What the figures depend on."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "threads used": threads,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "load before the run": None if load is None else round(load, 2),
    }
