"""Everybody's defaults on real tables: `python -m bench.quality`.

Five folds (stratified, shuffled, the same for everybody), everybody's defaults (quality_peers.py),
the sets that packages ship (sets.py). Error in percent, AUC (several classes: one against the
rest, averaged) and log-loss; root mean squared error for real targets. A summary takes the means of
error and AUC over the sets, and the geometric mean of log-loss or RMSE divided by LightGBM's. A
fit's time is the median of the folds, summed over the sets: by the clock, with one thread
processor time.

Results of peers are kept in a JSON file by set, contestant and version, so that a run of ours takes
only its own time:

    python -m bench.quality --contestant Boosting --param max_depth=4 learning_rate=0.05

and in Python, a line for each: `search("Boosting", [{"max_depth": d} for d in (3, 4, 5)])`.
Defaults are searched for on the tuning sets only; `--write` reports on the others.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import statistics
import sys
import time
import warnings
from ast import literal_eval
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from bench.markdown import table
from bench.measure import auc, log_loss, machine
from bench.quality_peers import CONTESTANTS, LIGHTGBM, OURS, PEERS, SEED, Params
from bench.sets import CLASSIFICATION, LISTS, REGRESSION, TASKS, DataSet, Table

FOLDS, THREADS = 5, 2
REPORT = Path(__file__).parent / "results" / "quality.md"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"), "ensemble_gpu_quality.json")

MEASURES = {CLASSIFICATION: ("error", "AUC", "log-loss"), REGRESSION: ("RMSE",)}
DECISIVE = {CLASSIFICATION: "log-loss", REGRESSION: "RMSE"}  # divided by LightGBM's
FORMATS = {"error": "{:.2f}", "AUC": "{:.4f}", "log-loss": "{:.4f}", "RMSE": "{:.4g}"}

Scores = dict[str, list[float]]  # by measure (and "seconds", "rows"): a value a fold
Board = dict[str, dict[str, Scores]]  # by line of the table, then by set


# One contestant on one set


def run(
    data: Table, contestant: str, params: Params, folds: int = FOLDS, threads: int = THREADS
) -> Scores:
    """Fit and judge in each of the first `folds` folds."""
    scores: Scores = {name: [] for name in (*MEASURES[data.task], "seconds", "rows")}
    who, clock = CONTESTANTS[contestant], time.process_time if threads == 1 else time.perf_counter
    X = who.view(data.X)
    for train, test in _splits(data)[:folds]:
        model = who.estimator(data.task, data.X, params, threads)
        # HistGradientBoosting has no argument for its threads
        with warnings.catch_warnings(), threadpool_limits(threads):
            warnings.simplefilter("ignore")
            start = clock()
            model.fit(X.iloc[train], data.y[train])
            scores["seconds"].append(clock() - start)
            answer = model.predict_proba if data.task == CLASSIFICATION else model.predict
            judged = _judge(data.task, data.y[test], np.asarray(answer(X.iloc[test])))
        for name, value in judged.items():
            scores[name].append(value)
        scores["rows"].append(len(test))
    return scores


def _splits(data: Table) -> list[tuple[np.ndarray, np.ndarray]]:
    kind = StratifiedKFold if data.task == CLASSIFICATION else KFold
    return list(kind(FOLDS, shuffle=True, random_state=SEED).split(data.X, data.y))


def _judge(task: str, y: np.ndarray, answer: np.ndarray) -> dict[str, float]:
    if task == REGRESSION:
        return {"RMSE": sqrt(np.mean((answer - y) ** 2))}
    error = 100.0 * float(np.mean(np.argmax(answer, axis=1) != y))
    return {"error": error, "AUC": auc(y, answer), "log-loss": log_loss(y, answer)}


def figure(scores: Scores, measure: str, folds: int = FOLDS) -> float:
    """Over the first `folds` folds: of all their rows, the AUC the mean of the folds."""
    values, rows = np.asarray(scores[measure][:folds]), np.asarray(scores["rows"][:folds])
    if measure == "seconds":
        return statistics.median(values)
    if measure == "RMSE":
        return sqrt(np.average(values**2, weights=rows))
    return float(np.average(values, weights=None if measure == "AUC" else rows))


class Cache:
    """Scores of peers in a JSON file; what other runs have added meanwhile is kept."""

    def __init__(self, path: Path, threads: int = THREADS) -> None:
        self.path, self.threads = path, threads

    def _read(self) -> dict[str, Scores]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def scores(self, data: Table, contestant: str) -> Scores:
        """As kept for this table and the installed version, or else measured now, and kept."""
        key = f"{data.name} {data.digest} | {contestant} | {CONTESTANTS[contestant].release}"
        known = self._read()
        if key not in known:
            known = self._add(key, _told(data, contestant, {}, FOLDS, self.threads))
        return known[key]

    def _add(self, key: str, scores: Scores) -> dict[str, Scores]:
        with open(f"{self.path}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = {**self._read(), key: scores}
            draft = Path(f"{self.path}.new")
            draft.write_text(json.dumps(known, indent=0) + "\n")
            draft.replace(self.path)
        return known


def _told(data: Table, contestant: str, params: Params, folds: int, threads: int) -> Scores:
    scores = run(data, contestant, params, folds, threads)
    figures = ", ".join(
        f"{m} {FORMATS[m].format(figure(scores, m, folds))}" for m in MEASURES[data.task]
    )
    spent = figure(scores, "seconds", folds)
    print(
        f"  {data.name}, {contestant}: {figures}, {spent:.3g} s a fit", file=sys.stderr, flush=True
    )
    return scores


def compete(sets: Sequence[DataSet], names: Sequence[str], params: Params, cache: Cache) -> Board:
    """Everybody of these on all sets of one task; `params` are set in ours that have them."""
    board: Board = {}
    for declared in sets:
        data = declared.load()
        for name in names:
            who = CONTESTANTS[name]
            if declared.task not in who.estimators or not who.fits_in_time(data):
                continue
            own = {k: v for k, v in params.items() if who.ours and who.takes(declared.task, k)}
            if who.ours:
                scores = _told(data, name, own, FOLDS, cache.threads)
            else:
                scores = cache.scores(data, name)
            board.setdefault(label(name, own), {})[declared.name] = scores
    return board


def label(name: str, params: Params) -> str:
    """Contestant and what was set."""
    told = ", ".join(f"{key}={value!r}" for key, value in params.items())
    return f"{name}({told})" if name in OURS else name


# Summaries


@dataclass(frozen=True)
class Summary:
    """Over the sets: means of error and AUC (classification), the geometric mean of the decisive
    measure divided by LightGBM's, the largest such ratio and its set, seconds of one fit of each.
    """

    error: float | None
    auc: float | None
    ratio: float
    worst: float
    worst_set: str
    seconds: float

    def cells(self) -> list[str]:
        """As in the table; error and AUC only where there are classes."""
        first = [] if self.error is None else [f"{self.error:.2f}", f"{self.auc:.4f}"]
        worst = f"{self.worst:.2f} ({self.worst_set})"
        return [*first, f"{self.ratio:.3f}", worst, f"{self.seconds:.1f}"]


def ratios(
    task: str, scores: dict[str, Scores], base: dict[str, Scores], folds: int
) -> dict[str, float]:
    """The decisive measure divided by LightGBM's, by set."""
    measure = DECISIVE[task]
    return {s: figure(scores[s], measure, folds) / figure(base[s], measure, folds) for s in scores}


def summarise(
    task: str, scores: dict[str, Scores], base: dict[str, Scores], folds: int = FOLDS
) -> Summary:
    """Of one contestant beside LightGBM's scores on the same sets."""
    apart = ratios(task, scores, base, folds)
    worst = max(apart, key=lambda name: apart[name])
    means = [
        statistics.fmean(figure(s, m, folds) for s in scores.values())
        for m in MEASURES[task]
        if m != DECISIVE[task]
    ] or [None, None]
    return Summary(
        *means,
        ratio=exp(statistics.fmean(log(r) for r in apart.values())),
        worst=apart[worst],
        worst_set=worst,
        seconds=sum(figure(s, "seconds", folds) for s in scores.values()),
    )


def summary_table(task: str, board: Board, n_sets: int) -> str:
    """A line a contestant."""
    first = ["error %", "AUC"] if task == CLASSIFICATION else []
    head = [f"{n_sets} sets, {task}", *first, f"{DECISIVE[task]} / {LIGHTGBM}", "worst set",
            "seconds to fit all"]  # fmt: skip
    base = board[LIGHTGBM]
    rows = []
    for name, scores in board.items():
        some = f" (on {len(scores)} of them)" if len(scores) < n_sets else ""
        rows.append([name + some, *summarise(task, scores, base).cells()])
    return table(head, rows)


def measure_table(measure: str, board: Board, sets: Sequence[DataSet]) -> str:
    """A line a set, a column a contestant (empty: not fitted); the best is bold."""
    rows = []
    for declared in sets:
        values = [
            figure(scores[declared.name], measure) if declared.name in scores else None
            for scores in board.values()
        ]
        known = [value for value in values if value is not None]
        best = FORMATS[measure].format(max(known) if measure == "AUC" else min(known))
        cells = ["" if value is None else FORMATS[measure].format(value) for value in values]
        rows.append([declared.name, *(f"**{c}**" if c == best else c for c in cells)])
    return table([measure + (" %" if measure == "error" else ""), *board], rows)


# The search for our defaults


def search(
    contestant: str,
    settings: Iterable[Params],
    *,
    task: str = CLASSIFICATION,
    sets: str = "tuning",
    only: Sequence[str] = (),
    folds: int = FOLDS,
    threads: int = THREADS,
    by_set: bool = False,
    cache: str | Path = CACHE,
) -> list[Summary]:
    """One line for each of these settings of ours, as it is ready.

    With `folds` below five only the first folds are fitted, and compared with LightGBM's same
    folds. `by_set` adds the ratio of every set.
    """
    chosen = _chosen(sets, task, only)
    base = compete(chosen, [LIGHTGBM], {}, Cache(Path(cache), threads))[LIGHTGBM]
    found = []
    for params in settings:
        unknown = [k for k in params if not CONTESTANTS[contestant].takes(task, k)]
        if unknown:
            raise ValueError(f"{contestant} has no parameter {unknown[0]!r} for {task}.")
        scores = {s.name: run(s.load(), contestant, params, folds, threads) for s in chosen}
        found.append(summarise(task, scores, base, folds))
        print(label(contestant, params), *found[-1].cells(), sep=" | ", flush=True)
        if by_set:
            apart = ratios(task, scores, base, folds)
            print("   ", ", ".join(f"{name} {r:.2f}" for name, r in apart.items()), flush=True)
    return found


def _chosen(sets: str, task: str, only: Sequence[str] = ()) -> list[DataSet]:
    return [s for s in LISTS[sets] if s.task == task and (not only or s.name in only)]


# The command line


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if not (name.isidentifier() and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    try:
        return name, literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality", description=__doc__.split("\n\n")[0]
    )
    add = parser.add_argument
    names = [s.name for sets in LISTS.values() for s in sets]
    add("--sets", choices=LISTS, default="tuning", help="which list (default: tuning)")
    add("--only", nargs="+", choices=names, metavar="NAME", help="some sets of it")
    add("--task", nargs="+", choices=TASKS, default=TASKS, help="one task (default: both)")
    add("--contestant", nargs="+", choices=CONTESTANTS, metavar="NAME",
        help=f"beside {LIGHTGBM} (default: all): {', '.join(CONTESTANTS)}")  # fmt: skip
    add("--without", nargs="+", choices=PEERS, default=[], metavar="NAME",
        help="peers that take too long; the report names them")  # fmt: skip
    add("--param", nargs="+", type=_setting, default=[], metavar="NAME=VALUE",
        help="of ours, where an estimator has it")  # fmt: skip
    add("--cache", type=Path, default=CACHE, metavar="PATH",
        help="where results of peers are kept (default: the user's cache)")  # fmt: skip
    add("--threads", type=int, default=THREADS, help=f"of everybody (default: {THREADS})")
    add("--json", type=Path, metavar="PATH", help="write the scores of all folds")
    add("--write", action="store_true",
        help=f"reporting sets, everybody, to {REPORT.parent.name}/{REPORT.name}")  # fmt: skip
    options = parser.parse_args()
    if options.write and (options.only or options.contestant or options.param):
        parser.error("--write is for all reporting sets, contestants and their defaults")
    return options


def main() -> None:
    """Run what was asked for, print and write."""
    options = _arguments()
    which = "reporting" if options.write else options.sets
    wanted = {*(options.contestant or CONTESTANTS)} - {*options.without} | {LIGHTGBM}
    names = [name for name in CONTESTANTS if name in wanted]
    summaries, details, boards = [], [], {}
    options.cache.parent.mkdir(parents=True, exist_ok=True)
    cache = Cache(options.cache, options.threads)
    for task in options.task:
        sets = _chosen(which, task, options.only or ())
        if not sets:
            continue
        board = boards[task] = compete(sets, names, dict(options.param), cache)
        summaries.append(summary_table(task, board, len(sets)))
        details += [measure_table(m, board, sets) for m in MEASURES[task]]
    text = "\n".join([f"## Quality on the {which} sets\n", *summaries, *details])
    print(text)
    if options.json:
        options.json.write_text(json.dumps(boards, indent=1) + "\n")
    if options.write:
        left_out = f"Left out: {', '.join(options.without)}.\n" if options.without else ""
        REPORT.write_text("\n".join([text, left_out, _lists(), _machine(options.threads)]))


def _lists() -> str:
    """What the sets are, and which were used for the search."""
    rows = [
        [which, s.name, s.source, s.target, *s.load().size_cells()]
        for which, sets in LISTS.items()
        for s in sets
    ]
    head = [
        "list",
        "set",
        "source",
        "target",
        "rows",
        "numbers",
        "categories",
        "missing",
        "classes",
    ]
    return "### The sets\n\n" + table(head, rows)


def _machine(threads: int) -> str:
    return table(["machine", ""], [[k, str(v)] for k, v in machine(threads).items()])


if __name__ == "__main__":
    main()
