"""Boosted trees with the settings that people use, beside the peers: `python -m bench.trees`.

Everybody fits from raw float32 rows, in a process of its own that holds them and has fitted a few
before: threads that one library leaves waiting do not disturb the others, and the peak of its
memory is its own. They run in turn. Prints a table a setting and one of ratios, and writes both,
with JSON, to bench/results/trees.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.data import Shape, generated
from bench.markdown import seconds, table
from bench.measure import auc, machine
from bench.memory import forget_peak, peak
from bench.peers import OURS
from bench.tree_peers import BOOSTERS, Setting, Task, takes_part

RESULTS = Path(__file__).parent / "results" / "trees"
FEATURES = 28
FEW = 25_000  # rows of a first fit, enough for all kernels that more rows need
PEER = "LightGBM"  # that ratios are to, besides the fastest
COUNTS = tuple(range(3, FEATURES, 5))  # features of few values, which can be categories
MISSING = 0.05  # share of the cells

PLAIN = Setting()
LEAFY = Setting(depth=None, leaves=31, min_rows=20)


@dataclass(frozen=True)
class Row:
    """A row of the table: the setting, and what is done to the data."""

    title: str
    setting: Setting
    missing: bool = False
    weighted: bool = False


ROWS = {
    "depth": Row("depth 6", PLAIN),
    "depth-20": Row("depth 6, 20 rows a leaf", replace(PLAIN, min_rows=20)),
    "leaves": Row("31 leaves, 20 rows a leaf", LEAFY),
    "missing": Row("31 leaves, 5% missing values", LEAFY, missing=True),
    "categories": Row("31 leaves, 5 features of categories", replace(LEAFY, categories=COUNTS)),
    "monotone": Row(
        "31 leaves, 6 monotone features",
        replace(LEAFY, signs=(1, -1, 1, 0, -1, 1, -1, *[0] * (FEATURES - 7))),
    ),
    "features": Row("31 leaves, 40% of the features a node", replace(LEAFY, draws_features=True)),
    "weights": Row("31 leaves, weights", LEAFY, weighted=True),
    "subsample": Row("31 leaves, 80% of the rows a tree", replace(LEAFY, draws_rows=True)),
}


@dataclass(frozen=True)
class Run:
    """One fit: seconds by the clock and of processor time."""

    wall: float
    cpu: float


@dataclass
class Outcome:
    """A contestant's fits, by the number of threads, and what its model is like.

    `added`: bytes at the peak of its first fit of all rows, beyond the rows.
    """

    added: int
    runs: dict[int, list[Run]] = field(default_factory=dict)
    auc: float = 0.0
    leaves: float = 0.0

    def seconds(self, threads: int) -> list[float]:
        """By the clock; on one thread of processor time, which others do not disturb."""
        return [run.cpu if threads == 1 else run.wall for run in self.runs[threads]]

    def best(self, threads: int) -> float:
        return min(self.seconds(threads))

    def median(self, threads: int) -> float:
        return statistics.median(self.seconds(threads))


# --- in a contestant's process -----------------------------------------------------------------

_HELD: dict[str, Any] = {}


def _hold(name: str, folder: str, setting: Setting, weighted: bool) -> int:
    """Read the rows, fit a few, then all of them: the bytes that this adds at its peak."""
    names = ("X", "y", "X_test", "y_test", *(("weights",) if weighted else ()))
    _HELD.update({n: np.load(Path(folder, f"{n}.npy")) for n in names}, fit=BOOSTERS[name])
    weights = _HELD.setdefault("weights", None)
    few = None if weights is None else weights[:FEW]
    for threads in (1, 2):
        task = Task(_HELD["X"][:FEW], _HELD["y"][:FEW], few, 2, threads, setting)
        _HELD["fit"](task).predict(task.X[:100])
    forget_peak()
    before = psutil.Process().memory_info().rss
    model = _HELD["fit"](Task(_HELD["X"], _HELD["y"], weights, 3, threads, setting))
    added = peak() - before
    del model
    return max(0, added)


def _fit(setting: Setting, rounds: int, threads: int) -> tuple[Run, float, float]:
    """A fit: what it took, the AUC of its model on held-out rows, and the leaves of a tree."""
    task = Task(_HELD["X"], _HELD["y"], _HELD["weights"], rounds, threads, setting)
    cpu, start = time.process_time(), time.perf_counter()
    model = _HELD["fit"](task)
    wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    return Run(wall, cpu), auc(_HELD["y_test"], model.predict(_HELD["X_test"])), model.leaves()


# --- in the process that asks ------------------------------------------------------------------


def _save(row: Row, rows: int, folder: str) -> None:
    """The data of a row, in files."""
    split, rng = generated(Shape(rows, FEATURES)), np.random.default_rng(0)
    arrays = {"X": split.X.copy(), "X_test": split.X_test.copy()}
    for f in row.setting.categories:  # numbers that say nothing by their order
        number = rng.permutation(256).astype(np.float32)
        for X in arrays.values():
            X[:, f] = number[X[:, f].astype(np.int64)]
    if row.missing:
        for X in arrays.values():
            X[rng.random(X.shape, dtype=np.float32) < MISSING] = np.nan
    arrays |= {"y": split.y, "y_test": split.y_test}
    arrays["weights"] = rng.uniform(0.5, 2.0, rows)
    for name, array in arrays.items():
        np.save(Path(folder, f"{name}.npy"), array)


def measure(row: Row, options: argparse.Namespace) -> dict[str, Outcome]:
    """Everybody who has the setting, in turn, on one thread as well where a gain is asked for."""
    names = [n for n in options.peer or BOOSTERS if takes_part(n, row.setting)]
    outcomes: dict[str, Outcome] = {}
    counts = [options.threads, *([1] if options.gain and options.threads > 1 else [])]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        _save(row, options.rows, folder)
        pools = {}
        for name in names:
            pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            pools[name] = stack.enter_context(pool)
            added = pool.submit(_hold, name, folder, row.setting, row.weighted).result()
            outcomes[name] = Outcome(added)
        for _ in range(options.repeats):
            for threads in counts:
                for name, pool in pools.items():
                    asked = row.setting, options.rounds, threads
                    run, score, leaves = pool.submit(_fit, *asked).result()
                    one = outcomes[name]
                    one.runs.setdefault(threads, []).append(run)
                    one.auc, one.leaves = score, leaves
    return outcomes


def detail(row: Row, outcomes: dict[str, Outcome], options: argparse.Namespace) -> str:
    """Everybody's figures in one setting."""
    threads, lines = options.threads, []
    for name, one in sorted(outcomes.items(), key=lambda item: item[1].best(threads)):
        gain = f"{one.best(1) / one.best(threads):.2f}" if 1 in one.runs and threads > 1 else ""
        cpu = min(run.cpu for run in one.runs[threads])
        ratio = one.best(threads) / outcomes[OURS].best(threads)
        lines.append([
            name, seconds(one.best(threads)), seconds(one.median(threads)), seconds(cpu),
            f"{ratio:.2f}", gain, f"{one.auc:.5f}", f"{one.leaves:.0f}",
            f"{one.added / 2**20:,.0f} MiB",
        ])  # fmt: skip
    head = ["", "best", "median", "CPU time", "time / ours", "gain of the threads", "AUC",
            "leaves a tree", "peak beyond X"]  # fmt: skip
    return f"### {row.title}\n\n" + table(head, lines)


def headline(
    row: Row, outcomes: dict[str, Outcome], plain: dict[str, Outcome] | None, threads: int
) -> list[str]:
    """Our time, the peers' over ours, and what the setting costs us beyond the plain one."""
    ours = outcomes[OURS]
    rivals = {name: one for name, one in outcomes.items() if name != OURS}
    fastest = min(rivals, key=lambda name: rivals[name].best(threads), default="")
    ratios = [
        f"{rivals[name].best(threads) / ours.best(threads):.2f}" if name in rivals else ""
        for name in (PEER, fastest)
    ]
    apart = f"{ours.auc - rivals[fastest].auc:+.4f}" if fastest else ""
    cost = "" if plain is None else f"{ours.best(threads) / plain[OURS].best(threads):.2f}"
    gain = f"{ours.best(1) / ours.best(threads):.2f}" if 1 in ours.runs and threads > 1 else ""
    return [row.title, seconds(ours.best(threads)), ratios[0], f"{ratios[1]} ({fastest})", apart,
            cost, gain]  # fmt: skip


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.trees", description=__doc__)
    add = parser.add_argument
    add("--rows", type=int, default=100_000, help="to train on (default: 100,000)")
    add("--million", dest="rows", action="store_const", const=1_000_000, help="1,000,000 rows")
    add("--rounds", type=int, default=100)
    add("--only", action="append", choices=ROWS, help="one setting; may be repeated")
    add("--peer", action="append", choices=BOOSTERS, help="one contestant; may be repeated")
    add("--threads", type=int, default=2, help="threads of everybody (default: 2)")
    add("--repeats", type=int, default=3, help="fits of each contestant (default: 3)")
    add("--gain", action="store_true", help="fit on one thread as well")
    add("--json", type=Path, metavar="PATH", help="where to write the JSON, and the text beside it")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> None:
    """Run what was asked for, print and write."""
    options = _arguments(given)
    if options.peer is not None and OURS not in options.peer:
        options.peer.insert(0, OURS)
    path = options.json or RESULTS / f"{options.rows}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {"machine": machine(options.threads), "rows": {}}
    lines, details, found = [], [], {}
    for key, row in ROWS.items():
        if key in (options.only or ROWS):
            outcomes = found[key] = measure(row, options)
            plain = None if row.setting is LEAFY and key == "leaves" else found.get("leaves")
            lines.append(headline(row, outcomes, plain, options.threads))
            details.append(detail(row, outcomes, options))
            data["rows"][row.title] = {name: asdict(one) for name, one in outcomes.items()}
            print(details[-1], flush=True)
    head = ["setting", "ours", f"{PEER} / ours", "fastest peer / ours", "AUC difference to it",
            "ours / plain 31 leaves", "gain of the threads"]  # fmt: skip
    shape = f"{options.rows:,} x {FEATURES}, {options.rounds} rounds, {options.threads} thread(s)"
    first = f"## Boosted trees, {shape}\n\n" + table(head, lines)
    print(first)
    path.write_text(json.dumps(data, indent=1) + "\n")
    about = table(["machine", ""], [[key, str(value)] for key, value in data["machine"].items()])
    path.with_suffix(".md").write_text("\n".join([first, *details, about]))


if __name__ == "__main__":
    main()
