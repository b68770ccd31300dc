"""Learners that are given or drawn, beside what a user would write: `python -m bench.learners`.

pool         1,000 given classifiers on 100,000 rows, 200 rounds: a NumPy loop with a float32 matrix
             product a round. Memory: what a fit adds to a process that holds the int8 answers.
half-spaces  1,000 directions on 100,000 x 28, 300 rounds: LightGBM with two leaves on the same
             projections, which it is given as float32. Both times include projecting and binning.
redraw       the directions drawn anew in every round on 10,000 rows, to those drawn once.

Contestants take turns; the best of the repeats counts, by the clock with so many threads for
everybody, with one thread by processor time, which other processes disturb less. Prints a table and
writes it to bench/results/learners.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "learners.md"
FEATURES = 28


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.learners", description=__doc__)
    add = parser.add_argument
    add("--only", action="append", choices=PARTS, help="one part; may be repeated")
    add("--threads", type=int, default=2, help="threads of everybody (default: 2)")
    add("--repeats", type=int, default=3, help="fits of each contestant (default: 3)")
    add("--quick", action="store_true", help="a tenth of the rows and rounds")
    return parser.parse_args(given)


def _rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, FEATURES)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + X[:, 2] - 0.5 * X[:, 3] ** 2 + 0.5
    return X, (score + rng.normal(size=n) > 0).astype(np.int64)


def _answers(n: int, members: int, y: np.ndarray) -> np.ndarray:
    """int8 [row, member], each right with a probability of its own."""
    rng = np.random.default_rng(1)
    s = (2 * y - 1).astype(np.int8)
    G = np.empty((n, members), dtype=np.int8)
    for member in range(members):
        right = rng.random(n, dtype=np.float32) < rng.uniform(0.5, 0.6)
        G[:, member] = np.where(right, s, -s)
    return G


def by_hand(G: np.ndarray, y: np.ndarray, rounds: int) -> np.ndarray:
    """What a user would write: AdaBoost on a matrix of answers, float32."""
    s = (2 * y - 1).astype(np.float32)
    D = np.full(len(y), 1.0 / len(y), dtype=np.float32)
    c = np.zeros(G.shape[1])
    for _ in range(rounds):
        r = (D * s) @ G
        best = int(np.argmax(np.abs(r)))
        alpha = 0.5 * np.log((1.0 + r[best]) / (1.0 - r[best]))
        D *= np.exp(-alpha * s * G[:, best])
        D /= D.sum()
        c[best] += alpha
    return c


def _fitted(learner: Any, rounds: int, threads: int) -> Any:
    from ensemble_gpu import AdaBoostClassifier

    return AdaBoostClassifier(
        learner, variant="discrete", n_estimators=rounds, n_jobs=threads, random_state=0
    )


def pool(options: argparse.Namespace) -> list[list[str]]:
    import psutil

    from bench.memory import forget_peak, peak
    from ensemble_gpu.learners import Pool

    n, members, rounds = (10_000, 1000, 50) if options.quick else (100_000, 1000, 200)
    _, y = _rows(n)
    G = _answers(n, members, y)
    X = np.zeros((n, 1), dtype=np.float32)
    _fitted(Pool(G[:1000], signed=True), 2, options.threads).fit(X[:1000], y[:1000])
    fit = _fitted(Pool(G, signed=True), rounds, options.threads)
    forget_peak()
    before = psutil.Process().memory_info().rss
    fit.fit(X, y)
    added = max(0, peak() - before)
    floats = G.astype(np.float32)
    times = timed(options, lambda: fit.fit(X, y), lambda: by_hand(floats, y, rounds))
    work = f"{n:,} rows x {members:,} members, {rounds} rounds"
    memory = f"{added / G.size + 1.0:.2f} bytes a cell, the answers included"
    return [[*line("pool", work, times, "NumPy", 3.0), memory]]


def half_spaces(options: argparse.Namespace) -> list[list[str]]:
    import lightgbm

    from ensemble_gpu.learners import HalfSpaces

    n, rounds = (10_000, 50) if options.quick else (100_000, 300)
    X, y = _rows(n)
    w = np.random.default_rng(2).standard_normal((FEATURES, 1000)).astype(np.float32)
    fit = _fitted(HalfSpaces(1000), rounds, options.threads)
    fit.set_params(n_estimators=2).fit(X[:5000], y[:5000])
    fit.set_params(n_estimators=rounds)
    parameters = {
        "objective": "binary", "num_leaves": 2, "max_bin": 255, "num_threads": options.threads,
        "verbosity": -1, "learning_rate": 0.1, "min_data_in_leaf": 1, "feature_pre_filter": False,
    }  # fmt: skip

    def theirs() -> Any:
        return lightgbm.train(parameters, lightgbm.Dataset(X @ w, y), rounds)

    times = timed(options, lambda: fit.fit(X, y), theirs)
    shape = f"1,000 directions, {n:,} x {FEATURES}, {rounds} rounds"
    return [[*line("half-spaces", shape, times, "LightGBM", 3.0), ""]]


def redraw(options: argparse.Namespace) -> list[list[str]]:
    from ensemble_gpu.learners import HalfSpaces

    n, rounds = (2_000, 30) if options.quick else (10_000, 300)
    X, y = _rows(n)
    once, anew = (
        _fitted(HalfSpaces(1000, redraw=how), rounds, options.threads) for how in ("once", "round")
    )
    for fit in (once, anew):
        fit.set_params(n_estimators=2).fit(X, y)
        fit.set_params(n_estimators=rounds)
    times = timed(options, lambda: once.fit(X, y), lambda: anew.fit(X, y))
    shape = f"1,000 directions, {n:,} x {FEATURES}, {rounds} rounds"
    return [[*line("redraw", shape, times, 'redraw="round"', -10.0), ""]]


def timed(options: argparse.Namespace, *contestants: Callable[[], Any]) -> list[float]:
    """The least seconds of each, which take turns; on one thread of processor time."""
    clock = time.process_time if options.threads == 1 else time.perf_counter
    best = [float("inf")] * len(contestants)
    for _ in range(options.repeats):
        for k, contestant in enumerate(contestants):
            start = clock()
            contestant()
            best[k] = min(best[k], clock() - start)
    return best


def line(name: str, shape: str, times: list[float], rival: str, target: float) -> list[str]:
    """A row of the table; a target below 0 is the most that the ratio may be."""
    from bench.markdown import seconds

    ours, theirs = times
    asked = f"at least {target:g}" if target > 0.0 else f"at most {-target:g}"
    return [name, shape, seconds(ours), rival, seconds(theirs), f"{theirs / ours:.2f}", asked]


PARTS: dict[str, Callable[[argparse.Namespace], list[list[str]]]] = {
    "pool": pool,
    "half-spaces": half_spaces,
    "redraw": redraw,
}


def main(given: Sequence[str] | None = None) -> None:
    """Run what was asked for, print and write."""
    options = _arguments(given)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, str(options.threads))
    from bench.markdown import table
    from bench.measure import machine

    head = ["part", "work", "ours", "beside", "theirs", "theirs / ours", "target", "memory"]
    rows = []
    for name, part in PARTS.items():
        if name in (options.only or PARTS):
            rows += part(options)
            print(table(head, rows[-1:]), flush=True)
    about = machine(options.threads)
    text = "# Learners\n\n" + table(head, rows)
    text += "\n" + table(["machine", ""], [[key, str(value)] for key, value in about.items()])
    if not options.quick and options.only is None:
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
