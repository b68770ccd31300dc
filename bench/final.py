"""The whole measurement in one go: `python -m bench.final`.

Every part is a process of its own (`python -m bench --only ...`, trees: `python -m bench.forests`)
with a time limit, most important first: a crash or a slow part loses that part only, and a run that
is cut short has the rows that matter. results.md is written anew after each part, from the JSON
files of all parts in the folder that this program knows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.report import combined

RESULTS = Path(__file__).parent / "results"
FORESTS = "bench.forests"


@dataclass(frozen=True)
class Part:
    """What to run, seconds after which a contestant is not run again, minutes before giving up."""

    key: str
    budget: float
    limit: float
    only: tuple[str, ...] = ()
    module: str = "bench"


PARTS = (
    Part("l2", 40.0, 4.0),
    Part("logistic", 25.0, 4.0),
    Part("million", 45.0, 6.0),
    Part("hundred-thousand", 12.0, 3.0),
    Part("classes", 20.0, 5.0),
    Part("wide", 25.0, 6.0),
    Part("small", 5.0, 2.0, ("small", "thousand")),
    Part("predict", 8.0, 3.0),
    Part("binning", 10.0, 2.0),
    Part("adaboost", 30.0, 3.0),
    Part("losses", 4.0, 5.0),
    Part("classes-rounds", 20.0, 5.0),
    Part("memory", 0.0, 4.0),
    Part("boosted-trees", 40.0, 8.0, ("boosting", "boosting-million"), FORESTS),
    Part("forests", 60.0, 8.0, ("forest", "predict"), FORESTS),
    Part("forest-million", 60.0, 20.0, module=FORESTS),
    Part("few-leaves", 10.0, 10.0, module=FORESTS),
    Part("many-leaves", 10.0, 15.0, module=FORESTS),
    Part("forest-kinds", 30.0, 6.0, ("forest-classes", "forest-regression"), FORESTS),
    Part("one-tree", 10.0, 3.0, ("tree", "tree-exact"), FORESTS),
    Part("profile", 0.0, 3.0),
    Part("shipped", 2.0, 2.0),
    Part("sweep-threads", 0.0, 2.0),
    Part("sweep-rounds", 0.0, 3.0),
    Part("sweep-rows", 0.0, 4.0),
    Part("sweep-features", 0.0, 4.0),
    Part("first-fit", 0.0, 4.0),
)


def _run(part: Part, folder: Path, options: argparse.Namespace) -> str:
    """Run a part; says how it went."""
    command = [
        sys.executable, "-m", part.module, "--json", str(folder / f"{part.key}.json"),
        "--threads", str(options.threads), "--patience", str(options.patience),
        "--budget", str(0.6 if options.quick else part.budget),
        *(["--quick"] if options.quick else []),
    ]  # fmt: skip
    for key in part.only or (part.key,):
        command += ["--only", key]
    start = time.perf_counter()
    try:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=60.0 * part.limit)
        how = "done" if done.returncode == 0 else f"failed with {done.returncode}"
    except subprocess.TimeoutExpired:
        how = f"stopped after {part.limit} minutes"
    return f"{part.key}: {how}, {time.perf_counter() - start:.0f} s"


def _write_report(folder: Path) -> None:
    paths = [folder / f"{part.key}.json" for part in PARTS]
    runs = [json.loads(path.read_text()) for path in paths if path.exists()]
    if runs:
        (folder / "results.md").write_text(combined(runs))


def main() -> None:
    """Run the parts that were asked for, all by default."""
    parser = argparse.ArgumentParser(prog="python -m bench.final", description=__doc__)
    keys = [part.key for part in PARTS]
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", default="final", help="under bench/results")
    parser.add_argument("--part", action="append", choices=keys, help="may be repeated")
    parser.add_argument("--patience", type=float, default=0.0, help="as in python -m bench")
    parser.add_argument("--minutes", type=float, default=60.0, help="start no part after these")
    parser.add_argument("--quick", action="store_true", help="small sizes, to try the program")
    options = parser.parse_args()
    folder = RESULTS / options.folder
    folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    for part in PARTS:
        if part.key in (options.part or keys):
            if time.perf_counter() - start > 60.0 * options.minutes:
                print(f"{part.key}: no time left", flush=True)
                continue
            (folder / f"{part.key}.json").unlink(missing_ok=True)
            print(_run(part, folder, options), flush=True)
            _write_report(folder)


if __name__ == "__main__":
    main()
