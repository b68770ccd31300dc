"""Side by side with the peers: ratios, AUC, memory, and pictures.

Prints Markdown and writes it, with JSON and pictures, to bench/results/full or bench/results/quick;
with --json PATH to PATH's folder.
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
from bench.measure import Effort, machine, peak_memory
from bench.peers import EVERYBODY, FAST
from bench.plots import draw
from bench.sweeps import sweeps
from bench.works import Race, works

RESULTS = Path(__file__).parent / "results"


def _arguments() -> argparse.Namespace:
    names = [*(work.key for work in works(quick=True)), "memory", "sweeps"]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="smaller sets, under three minutes")
    add("--only", action="append", choices=names, help="one part; may be repeated")
    add("--json", type=Path, metavar="PATH", help="where to write the JSON")
    add("--threads", type=int, default=2, help="threads of everybody (default: 2)")
    add("--patience", type=float, default=0.0, metavar="SECONDS",
        help="wait at most so long before each run until other processes are quiet")  # fmt: skip
    add("--peer", action="append", choices=EVERYBODY[1:], help="only this one; may be repeated")
    arguments = parser.parse_args()
    arguments.peer = tuple(arguments.peer or EVERYBODY)
    arguments.only = arguments.only or names
    return arguments


class Notebook:
    """What was printed, and the same as data."""

    def __init__(self, **about: Any) -> None:
        self.data: dict[str, Any] = about
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        """Print now, write later."""
        print(text, flush=True)
        self.lines.append(text)


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
    shape, rounds = Shape(200_000 if quick else 1_000_000, 28), 10 if quick else 100
    split = generated(shape)
    peaks = {name: peak_memory(name, split.X, split.y, rounds, threads) for name in FAST}
    notebook.data["memory"] = {"shape": asdict(shape), "rounds": rounds, "bytes": peaks}
    notebook.say(f"### Peak memory of a fit beyond X, {shape}, {rounds} rounds\n")
    rows = [
        [
            name,
            f"{peak / 2**20:,.0f} MiB",
            f"{peak / (shape.rows * shape.features):.2f}",
            f"{peak / shape.rows:.0f}",
        ]
        for name, peak in sorted(peaks.items(), key=lambda item: item[1])
    ]
    notebook.say(report.table(["", "peak beyond X", "bytes a cell", "bytes a row"], rows))


def _run_sweeps(notebook: Notebook, race: Race, folder: Path, *, quick: bool) -> None:
    measured = sweeps(race, quick=quick)
    notebook.data["sweeps"] = [asdict(sweep) for sweep in measured]
    for path in draw(measured, folder):
        notebook.say(f"![{path.stem}]({path.name})\n")


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
    thorough = Effort(threads, 3, 2.0 if quick else 60.0, patience)
    _run_works(notebook, arguments.only, Race(thorough, arguments.peer), quick=quick)
    if "memory" in arguments.only:
        _run_memory(notebook, threads, quick=quick)
    if "sweeps" in arguments.only:
        brief = Effort(threads, 2, 0.5 if quick else 5.0, patience)
        _run_sweeps(notebook, Race(brief, arguments.peer), path.parent, quick=quick)
    notebook.data["minutes"] = round((time.perf_counter() - started) / 60.0, 2)
    notebook.say(f"{notebook.data['minutes']} minutes in all.\n")
    path.with_suffix(".md").write_text("\n".join(notebook.lines))
    path.write_text(json.dumps(notebook.data, indent=1) + "\n")


if __name__ == "__main__":
    main()
