"""Where the time and the memory of a fit go, and what the first fit costs.

python -m bench.fit_cost [--quick] [--threads K] prints Markdown:

- the share of each step (bench/profile.py) of AdaBoost, L2Boost and logistic boosting, from raw
  rows to the fitted model, and of a prediction of 100,000 rows;
- peak memory beyond X in bytes a cell and a row, beside the bound of 3 bytes a cell and 32 a row;
- the first fit in a new process, with an empty cache of compiled kernels and with a full one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.data import Shape, Split, generated, regression
from bench.markdown import seconds, table
from bench.measure import peak_memory
from bench.peers import CONTESTANTS, OURS, OURS_LOGISTIC, OURS_SQUARED, Job
from bench.profile import Profile, clock_for
from bench.rates import L2_RATE
from bench.works import job_for

FEATURES = 28
PREDICT_ROWS = 100_000
BYTES_A_CELL, BYTES_A_ROW = 3, 32

FIRST_FIT = """
import time
started = time.perf_counter()
import numpy as np
from ensemble_gpu import AdaBoostClassifier
imported = time.perf_counter()
rng = np.random.default_rng(0)
X = rng.standard_normal((20_000, 28), dtype=np.float32)
AdaBoostClassifier(n_estimators=10, calibrate=False).fit(X, X[:, 0] > 0.3)
print(imported - started, time.perf_counter() - imported, time.process_time())
"""


def _steps(title: str, profile: Profile) -> str:
    total = sum(profile.seconds.values())
    lines = [
        [label, seconds(spent), f"{spent / total:.1%}", str(profile.calls[label]),
         seconds(spent / profile.calls[label])]
        for label, spent in sorted(profile.seconds.items(), key=lambda item: -item[1])
        if spent > 0.0
    ]  # fmt: skip
    lines.append(["all", seconds(total), "100%", "1", seconds(total)])
    return f"### {title}\n\n" + table(["step", "time", "share", "calls", "a call"], lines)


def profile_table(name: str, split: Split, job: Job) -> Iterator[str]:
    """Steps of one warm fit, and of a prediction with its model."""
    few = Job(job.X[:50_000], job.y[:50_000], 300, job.rate, job.threads)
    CONTESTANTS[name].fit(few)(few.X[:1])
    fit = Profile(clock_for(job.threads))
    with fit.watching():
        predict = fit.watch("host: checks, the loop, the model", CONTESTANTS[name].fit)(job)
    setting = f"{Shape(*job.X.shape)}, {job.rounds:,} rounds, {job.threads} thread(s)"
    yield _steps(f"Profile, {name}, {setting}", fit)
    rows = split.X[:PREDICT_ROWS]
    later = Profile(clock_for(job.threads))
    predict(rows)
    with later.watching():
        later.watch("host: checks, the link", predict)(rows)
    yield _steps(f"Profile, {name}, predict {len(rows):,} rows", later)


def profile_tables(threads: int, *, quick: bool) -> Iterator[str]:
    """AdaBoost (rescale), L2Boost (gram) and logistic boosting (rebuild)."""
    shape = Shape(100_000 if quick else 1_000_000, FEATURES)
    rounds = 200 if quick else 1_000
    split = generated(shape)
    yield from profile_table(OURS, split, job_for(OURS, split, rounds, threads))
    job = job_for(OURS_LOGISTIC, split, rounds // 5, threads)
    yield from profile_table(OURS_LOGISTIC, split, job)
    numbers = regression(shape)
    job = Job(numbers.X, numbers.y, 10 * rounds, L2_RATE, threads)
    yield from profile_table(OURS_SQUARED, numbers, job)


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
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "ENSEMBLE_GPU_COMPILE": ""}
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
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.fit_cost", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 rows instead of 1,000,000")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    for text in profile_tables(arguments.threads, quick=arguments.quick):
        print(text, flush=True)
    rows, rounds = (100_000, 200) if arguments.quick else (1_000_000, 1_000)
    print(memory_table(rows, rounds, arguments.threads), flush=True)
    print(first_fit_table(), flush=True)


if __name__ == "__main__":
    main()
