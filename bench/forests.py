"""Trees and forests beside scikit-learn, LightGBM, XGBoost and CatBoost: `python -m bench.forests`.

Everybody fits from raw float32 rows, with as many trees and threads (forest_peers.py). Prints a
table of ratios and one for each work, and writes both, with JSON, to bench/results/forests.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.data import Shape, Split, generated, regression
from bench.forest_peers import DEPTH, FITS, LEAVES, RATE, Predict, warm_up
from bench.losses import squared_error
from bench.markdown import seconds, table
from bench.measure import Effort, Timing, auc, interleave, log_loss, machine
from bench.memory import forget_peak, peak
from bench.peers import MAX_BINS, OURS, Job
from bench.report import TARGET_THREADS

RESULTS = Path(__file__).parent / "results"
FEATURES = 28
ONE_ROW_CALLS = 200


@dataclass(frozen=True)
class Contest:
    """Who fits what: a kind of FITS, the trees of everybody, the measures on held-out rows.

    `also` adds a line of ours with another number of trees.
    """

    kind: str
    shape: Shape
    trees: int
    measures: tuple[str, ...] = ("AUC",)
    memory: bool = False
    also: int = 0

    @property
    def split(self) -> Split:
        return regression(self.shape) if "MSE" in self.measures else generated(self.shape)

    def jobs(self, threads: int) -> dict[str, tuple[str, Job]]:
        """{line of the table: contestant, and what it is asked to do}."""
        split = self.split
        job = Job(split.X, split.y, self.trees, RATE, threads)
        jobs = {name: (name, job) for name in FITS[self.kind]}
        if self.also:
            jobs[f"{OURS}, {self.also} trees"] = OURS, replace(job, rounds=self.also)
        return jobs


@dataclass(frozen=True)
class Outcome:
    """By contestant: times, leaves a tree, bytes at the peak, and scores by measure."""

    timings: dict[str, Timing]
    leaves: dict[str, float]
    peaks: dict[str, int] = field(default_factory=dict)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """One row: the ratio is to the fastest peer, of medians.

    Our first score may be worse by `tolerance`; beside `at_least` our memory must be below theirs.
    """

    key: str
    title: str
    run: Callable[[Effort], Outcome]
    at_least: float | None = None
    aim: float | None = None
    tolerance: float = 0.002


MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "AUC": auc,
    "log loss": log_loss,
    "MSE": squared_error,
}


@lru_cache(maxsize=1)
def _fit(contest: Contest, effort: Effort) -> Outcome:
    """From raw rows to fitted models, which the timings keep."""
    split, calls = contest.split, {}
    for line, (name, job) in contest.jobs(effort.threads).items():
        fit = FITS[contest.kind][name]
        warm_up(fit, job)
        calls[line] = partial(fit, job)
    timings = interleave(calls, effort)
    answers = {name: timing.result.predict(split.X_test) for name, timing in timings.items()}
    scores = {
        measure: {name: MEASURES[measure](split.y_test, a) for name, a in answers.items()}
        for measure in contest.measures
    }
    leaves = {name: timing.result.leaves() for name, timing in timings.items()}
    peaks = _peaks(contest, effort.threads) if contest.memory else {}
    return Outcome(timings, leaves, peaks, scores)


def _peaks(contest: Contest, threads: int) -> dict[str, int]:
    """Bytes that each fit adds at its peak to a process of its own that holds X."""
    peaks, split = {}, contest.split
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "X.npy"), split.X)
        np.save(Path(folder, "y.npy"), split.y)
        for line, (name, job) in contest.jobs(threads).items():
            call = partial(_added_bytes, contest.kind, name, folder, job.rounds, threads)
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                peaks[line] = pool.submit(call).result()
    return peaks


def _added_bytes(kind: str, name: str, folder: str, trees: int, threads: int) -> int:
    """As bench/child.py does it: highest minus present size, after a small fit."""
    X, y = np.load(Path(folder, "X.npy")), np.load(Path(folder, "y.npy"))
    fit, job = FITS[kind][name], Job(X, y, trees, RATE, threads)
    warm_up(fit, job)
    forget_peak()
    before = psutil.Process().memory_info().rss
    model = fit(job)
    added = peak() - before
    del model
    return max(0, added)


def _predict(contest: Contest, calls: int, effort: Effort) -> Outcome:
    """Of all training rows, or of one row `calls` times: seconds a call."""
    fitted = _fit(contest, effort)
    X = contest.split.X if calls == 1 else contest.split.X[:1]
    repeated = {n: partial(_repeat, t.result.predict, X, calls) for n, t in fitted.timings.items()}
    timings = interleave(repeated, replace(effort, repeats=2 * effort.repeats + 1))
    return Outcome({n: t.times(1.0 / calls) for n, t in timings.items()}, fitted.leaves)


def _repeat(predict: Predict, X: np.ndarray, times: int) -> None:
    for _ in range(times):
        predict(X)


def works(rows: int, million: int, trees: int, few: int, leaves: tuple[int, int]) -> list[Work]:
    """The rows of the table; scikit-learn's slow ones have `few` trees, and so have ours there."""
    hundred, large = Shape(rows, FEATURES), Shape(million, FEATURES)
    classes = Shape(rows, FEATURES, 10)
    forest = Contest("forest", hundred, trees, memory=True)
    predict, losses = f"predict {rows:,} rows, {trees} trees", ("AUC", "log loss")

    def fit(*settings: Any, **more: Any) -> Callable[[Effort], Outcome]:
        return partial(_fit, Contest(*settings, **more))

    return [
        Work("forest", f"forest, {hundred}, {trees} trees", partial(_fit, forest), 6, 8),
        Work("predict", f"{predict}, fully grown", partial(_predict, forest, 1), 1),
        *_bounded("few-leaves", leaves[0], hundred, trees, predict),
        *_bounded("many-leaves", leaves[1], hundred, trees, predict),
        Work("forest-million", f"forest, {large}, {few} trees (time is linear in them)",
             fit("forest", large, few, memory=million > rows, also=trees), 5),
        Work("forest-leaf", f"forest, {hundred}, {few} trees, 5 rows a leaf",
             fit("forest, 5 rows a leaf", hundred, few), 6, 8),
        Work("forest-entropy", f"forest, {hundred}, {few} trees, entropy",
             fit("forest, entropy", hundred, few), 6, 8),
        Work("forest-classes", f"forest, {classes}, {few} trees",
             fit("forest", classes, few), 3, 5),
        Work("forest-regression", f"forest, regression, {hundred}, {few} trees",
             fit("regression", hundred, few, ("MSE",))),
        Work("boosting", f"boosted trees of depth {DEPTH}, {hundred}, {trees} rounds",
             fit("boosting", hundred, trees, losses), aim=1),
        Work("boosting-million", f"boosted trees of depth {DEPTH}, {large}, {trees} rounds",
             fit("boosting", large, trees, losses, memory=million > rows), aim=1),
        Work("tree", f"one tree on {MAX_BINS} bins, {hundred}", fit("tree", hundred, 1)),
        Work("tree-exact", f"one exact tree, {hundred}", fit("exact tree", hundred, 1)),
    ]  # fmt: skip


def _bounded(key: str, leaves: int, shape: Shape, trees: int, predict: str) -> list[Work]:
    """Forests of trees with equally many leaves, with everybody."""
    contest, bound = Contest(f"{leaves:,} leaves", shape, trees), f"of {leaves:,} leaves"
    return [
        Work(key, f"forest, {shape}, {trees} trees {bound}", partial(_fit, contest)),
        Work(key, f"{predict} {bound}", partial(_predict, contest, 1), 1),
        Work(key, f"predict one row, {trees} trees {bound}",
             partial(_predict, contest, ONE_ROW_CALLS), 1),
    ]  # fmt: skip


def headline(work: Work, outcome: Outcome) -> list[str]:
    """work, ratio, ours, fastest peer, quality difference, at least / aim, met."""
    timings, peaks = outcome.timings, outcome.peaks
    peers = [name for name in timings if not name.startswith(OURS)]
    rival = min(peers, key=lambda name: timings[name].median)
    ratio = timings[rival].median / timings[OURS].median
    short = [] if ratio >= (work.at_least or work.aim or 0.0) else ["time"]
    quality = []
    for i, (measure, scores) in enumerate(outcome.scores.items()):
        apart = scores[OURS] - scores[rival]
        quality.append(f"{measure} {apart:+.4f}")
        if i == 0 and (apart if measure == "AUC" else -apart) < -work.tolerance:
            short.append(measure)
    if peaks:
        ours, theirs = (f"{peaks[name] / 2**20:,.0f}" for name in (OURS, rival))
        quality.append(f"memory {ours} / {theirs} MiB")
        if work.at_least and peaks[OURS] >= peaks[rival]:
            short.append("memory")
    if not outcome.scores:
        quality.append(f"leaves {outcome.leaves[OURS]:,.0f} / {outcome.leaves[rival]:,.0f}")
    goals = " / ".join("-" if goal is None else f"{goal}x" for goal in (work.at_least, work.aim))
    if work.at_least is None and work.aim is None:
        goals = verdict = ""
    else:
        verdict = f"missed: {', '.join(short)}" if short else "met"
    if verdict and timings[OURS].threads != TARGET_THREADS:
        verdict += f" ({timings[OURS].threads} thread(s); the target is for {TARGET_THREADS})"
    ours, theirs = seconds(timings[OURS].median), seconds(timings[rival].median)
    return [work.title, f"**{ratio:.2f}x**", ours, f"{theirs} ({rival})", ", ".join(quality),
            goals, verdict]  # fmt: skip


def detail_table(work: Work, outcome: Outcome) -> str:
    """Everybody's figures in one work."""
    ours = outcome.timings[OURS].median
    rows = [
        [
            name, seconds(t.median), seconds(t.best), str(len(t.wall)), f"{t.median / ours:.2f}",
            *(f"{scores[name]:.5f}" for scores in outcome.scores.values()),
            f"{outcome.leaves[name]:,.0f}",
            *([f"{outcome.peaks[name] / 2**20:,.0f} MiB"] if outcome.peaks else []),
            f"{min(t.disturbed):.0%}",
        ]
        for name, t in sorted(outcome.timings.items(), key=lambda item: item[1].median)
    ]  # fmt: skip
    head = ["", "median", "best", "runs", "time / ours", *outcome.scores, "leaves a tree",
            *(["peak beyond X"] if outcome.peaks else []), "others on the CPU"]  # fmt: skip
    return f"### {work.title}\n\n" + table(head, rows)


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "seconds": {name: t.wall for name, t in outcome.timings.items()},
        "cpu_seconds": {name: t.cpu for name, t in outcome.timings.items()},
        "share_of_cpu_taken_by_others": {n: t.disturbed for n, t in outcome.timings.items()},
        "scores": outcome.scores,
        "leaves": outcome.leaves,
        "peak_bytes": outcome.peaks,
    }


def _works(*, small: bool, rows: int = 0) -> list[Work]:
    if small:
        return works(rows, rows, 20, 5, LEAVES[:2])
    return works(100_000, 1_000_000, 100, 20, LEAVES[1:])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.forests", description=__doc__)
    add, keys = parser.add_argument, dict.fromkeys(work.key for work in _works(small=False))
    add("--quick", action="store_true", help="20,000 rows, 20 trees, no targets")
    add("--rows", type=int, help="of every set, to try the program; no targets")
    add("--only", action="append", choices=keys, help="one part; may be repeated")
    add("--json", type=Path, metavar="PATH", help="where to write the JSON, and the text beside it")
    add("--threads", type=int, default=2, help="threads of everybody (default: 2)")
    add("--repeats", type=int, default=3, help="runs of each contestant (default: 3)")
    add("--budget", type=float, metavar="SECONDS",
        help="no further run of a contestant beyond this (default: 60, quick: 0.6)")  # fmt: skip
    add("--patience", type=float, default=0.0, help="as in python -m bench")
    return parser.parse_args()


def main() -> None:
    """Run what was asked for, print and write."""
    options = _arguments()
    small = options.quick or options.rows is not None
    chosen = _works(small=small, rows=options.rows or 20_000)
    budget = (0.6 if small else 60.0) if options.budget is None else options.budget
    effort = Effort(options.threads, options.repeats, budget, options.patience)
    path = options.json or RESULTS / "forests" / ("quick.json" if small else "results.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    data: dict[str, Any] = {"machine": machine(effort.threads), "quick": small, "works": {}}
    lines, details = [], []
    for work in chosen:
        if work.key in (options.only or [w.key for w in chosen]):
            work = replace(work, at_least=None, aim=None) if small else work
            outcome = work.run(effort)
            data["works"][work.title] = _as_json(outcome)
            lines.append(headline(work, outcome))
            details.append(detail_table(work, outcome))
            print(details[-1], flush=True)
    head = ["work", "ratio", "ours", "fastest peer", "quality difference", "at least / aim", "met"]
    first = "## Trees and forests\n\n" + table(head, lines)
    print(first)
    data["texts"] = [first, *details]
    path.write_text(json.dumps(data, indent=1) + "\n")
    about = table(["machine", ""], [[key, str(value)] for key, value in data["machine"].items()])
    path.with_suffix(".md").write_text("\n".join([first, *details, about]))


if __name__ == "__main__":
    main()
