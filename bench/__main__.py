"""Side by side with the peers: ratios, AUC, memory, and pictures.

Prints Markdown and writes it, with JSON and pictures, to bench/results/full or bench/results/quick;
with --json PATH to PATH's folder. bench/final.py runs the parts one by one, each in its process.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import report
from bench.data import Shape, generated
from bench.fit_cost import first_fit_table, profile_tables
from bench.measure import Effort, machine, peak_memory
from bench.peers import EVERYBODY, FAST, OURS_LOGISTIC, OURS_SQUARED
from bench.plots import draw
from bench.sweeps import SWEEPS, sweep
from bench.works import Race, works

RESULTS = Path(__file__).parent / "results"
SLOW_PARTS = ("first-fit",)  # compiles everything: left out by --quick, unless asked for
OTHER_PARTS = ("profile", "first-fit", "memory", *(f"sweep-{key}" for key in SWEEPS))


def _parts() -> dict[str, list[str]]:
    """{part or group of parts: the parts in it}."""
    parts = {work.key: [work.key] for work in works(quick=True)}
    for work in works(quick=True):
        if work.group:
            parts.setdefault(work.group, []).append(work.key)
    parts |= {name: [name] for name in OTHER_PARTS}
    return parts | {"sweeps": [f"sweep-{key}" for key in SWEEPS]}


def _arguments() -> argparse.Namespace:
    parts = _parts()
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="smaller sets, under three minutes")
    add("--only", action="append", choices=parts, help="one part; may be repeated")
    add("--json", type=Path, metavar="PATH", help="where to write the JSON")
    add("--threads", type=int, default=2, help="threads of everybody (default: 2)")
    add("--repeats", type=int, default=3, help="runs of each contestant (default: 3)")
    add("--budget", type=float, metavar="SECONDS",
        help="no further run of a contestant beyond this (default: 60, quick: 0.6)")  # fmt: skip
    add("--patience", type=float, default=0.0, metavar="SECONDS",
        help="wait at most so long before each run until other processes are quiet")  # fmt: skip
    add("--peer", action="append", choices=EVERYBODY[1:], help="only this one; may be repeated")
    arguments = parser.parse_args()
    arguments.peer = tuple(arguments.peer or EVERYBODY)
    default = [name for name in parts if not (arguments.quick and name in SLOW_PARTS)]
    wanted = [key for name in arguments.only or default for key in parts[name]]
    arguments.only = list(dict.fromkeys(wanted))
    if arguments.budget is None:
        arguments.budget = 0.6 if arguments.quick else 60.0
    return arguments


class Notebook:
    """What was printed, and the same as data."""

    def __init__(self, **about: Any) -> None:
        self.data: dict[str, Any] = {**about, "texts": []}
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        """Print now, write later."""
        print(text, flush=True)
        self.lines.append(text)

    def keep(self, text: str) -> None:
        """The same, and in the JSON, where the data does not have it in another form."""
        self.say(text)
        self.data["texts"].append(text)


def _run_works(notebook: Notebook, wanted: list[str], race: Race, *, quick: bool) -> None:
    kept = notebook.data["works"] = {}
    headlines = []
    for work in works(quick=quick):
        if work.key in wanted:
            outcome = work.run(race)
            kept[work.key] = report.as_json(work, outcome)
            headlines.append(report.headline(work, outcome))
            notebook.say(report.detail_table(work, outcome))
    if headlines:
        notebook.say("## Headline\n")
        notebook.say(report.headline_table(headlines))


def _run_memory(notebook: Notebook, threads: int, *, quick: bool) -> None:
    """Each contestant in a child process.

    "squared" takes the labels for numbers, and as many rounds as make it build all its tables.
    """
    shape, rounds = Shape(100_000 if quick else 1_000_000, 28), 10 if quick else 100
    split = generated(shape)
    long = 10 * rounds
    runs = {name: (name, rounds) for name in (*FAST, OURS_LOGISTIC)}
    runs[f"{OURS_SQUARED}, {long:,} rounds"] = OURS_SQUARED, long
    peaks = {
        label: peak_memory(name, split.X, split.y, own_rounds, threads)
        for label, (name, own_rounds) in runs.items()
    }
    notebook.data["memory"] = {"shape": asdict(shape), "rounds": rounds, "bytes": peaks}
    rows = [
        [
            name,
            f"{peak / 2**20:,.0f} MiB",
            f"{peak / (shape.rows * shape.features):.2f}",
            f"{peak / shape.rows:.0f}",
        ]
        for name, peak in sorted(peaks.items(), key=lambda item: item[1])
    ]
    title = f"### Peak memory of a fit beyond X, {shape}, {rounds} rounds\n\n"
    notebook.keep(title + report.table(["", "peak beyond X", "bytes a cell", "bytes a row"], rows))


def _run_sweep(notebook: Notebook, key: str, race: Race, folder: Path, *, quick: bool) -> None:
    measured = sweep(key, race, quick=quick)
    notebook.data.setdefault("sweeps", []).append(asdict(measured))
    for path in draw(measured, folder):
        notebook.keep(f"![{path.stem}]({path.name})\n")


def main() -> None:
    """Run what was asked for, print and write."""
    arguments = _arguments()
    quick, threads, patience = arguments.quick, arguments.threads, arguments.patience
    path = arguments.json or RESULTS / ("quick" if quick else "full") / "results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    notebook = Notebook(machine=machine(threads), quick=quick)
    notebook.say(f"# Benchmark{' (quick: reduced sizes)' if quick else ''}\n")
    rows = [[key, str(value)] for key, value in notebook.data["machine"].items()]
    notebook.say(report.table(["machine", ""], rows))
    thorough = Effort(threads, arguments.repeats, arguments.budget, patience)
    brief = Effort(threads, 2, 0.1 if quick else 5.0, patience)
    wanted = arguments.only
    _run_works(notebook, wanted, Race(thorough, arguments.peer), quick=quick)
    if "profile" in wanted:
        for text in profile_tables(threads, quick=quick):
            notebook.keep(text)
    if "first-fit" in wanted:
        notebook.keep(first_fit_table())
    if "memory" in wanted:
        _run_memory(notebook, threads, quick=quick)
    for key in SWEEPS:
        if f"sweep-{key}" in wanted:
            race = Race(brief, arguments.peer)
            _run_sweep(notebook, key, race, path.parent, quick=quick)
    notebook.data["minutes"] = round((time.perf_counter() - started) / 60.0, 2)
    notebook.say(f"{notebook.data['minutes']} minutes in all.\n")
    path.with_suffix(".md").write_text("\n".join(notebook.lines))
    path.write_text(json.dumps(notebook.data, indent=1) + "\n")


if __name__ == "__main__":
    main()
