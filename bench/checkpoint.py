"""What checkpoints cost: fits with and without, one after the other, at 1,000,000 x 28.

    python -m bench.checkpoint [--rows N] [--repeats K] [--only WORD]

One thread, `Checkpoint(path)` as it is by default. `without` and `with` are processor time, the
least of the repeats; their difference drowns in the noise of a busy machine, so the work that a
checkpoint adds is clocked by itself: digests of the data, and writing (`disk`: by the clock, with
the time that the disk takes). `resumed` goes on from the finished fit: it reads the file, knows
the data again and replays all rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sklearn.base import clone

from bench.data import Shape, generated, regression
from bench.markdown import table
from ensemble_gpu import (
    AdaBoostClassifier,
    BoostingClassifier,
    BoostingRegressor,
    Checkpoint,
    RandomForestClassifier,
)
from ensemble_gpu.bagging import forest
from ensemble_gpu.boosting import warm_start
from ensemble_gpu.estimators import checkpoint

FEATURES = 28
TREES = {
    "learning_rate": 0.1, "early_stopping": False, "subsample": 1.0, "max_features": None,
}  # fmt: skip
FITS: dict[str, tuple[Any, bool]] = {
    "AdaBoost, 1,000 rounds": (AdaBoostClassifier(n_estimators=1000, calibrate=False), True),
    "logistic stumps, 200 rounds": (
        BoostingClassifier(n_estimators=200, max_depth=1, early_stopping=False), True,
    ),
    "trees of depth 6, 100 rounds": (BoostingClassifier(n_estimators=100, **TREES), True),
    "L2Boost, 10,000 rounds": (
        BoostingRegressor(
            n_estimators=10_000, max_depth=1, early_stopping=False, learning_rate=0.03
        ), False,
    ),
    "forest, 20 trees of 1,024 leaves": (
        RandomForestClassifier(n_estimators=20, max_leaf_nodes=1024, random_state=0), True,
    ),
    "forest, 20 trees": (RandomForestClassifier(n_estimators=20, random_state=0), True),
}  # fmt: skip


def clocked(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of processor time, and by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


@contextmanager
def added() -> Iterator[dict[str, list[float]]]:
    """Seconds of processor time, and by the clock, of what checkpoints add to the fits inside."""
    spent = {"digests": [0.0, 0.0], "writing": [0.0, 0.0]}
    places = [
        (warm_start, "contents_of", "digests"), (forest, "contents_of", "digests"),
        (checkpoint._Schedule, "run", "writing"),
    ]  # fmt: skip
    kept = [getattr(place, name) for place, name, _ in places]

    def clocking(work: Any, label: str) -> Any:
        def run(*arguments: Any) -> Any:
            results = []
            seconds = clocked(lambda: results.append(work(*arguments)))
            spent[label] = [a + b for a, b in zip(spent[label], seconds, strict=True)]
            return results[0]

        return run

    for (place, name, label), work in zip(places, kept, strict=True):
        setattr(place, name, clocking(work, label))
    try:
        yield spent
    finally:
        for (place, name, _), work in zip(places, kept, strict=True):
            setattr(place, name, work)


def line_of(name: str, rows: int, repeats: int) -> list[str]:
    estimator, classes = FITS[name]
    data = (generated if classes else regression)(Shape(rows, FEATURES))
    times: dict[str, list[float]] = {"without": [], "with": [], "resumed": []}
    parts: dict[str, list[float]] = {"digests": [], "writing": [], "disk": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        fits = {
            "without": (None, {}), "with": ([Checkpoint(path)], {}),
            "resumed": (None, {"resume": path}),
        }  # fmt: skip
        for _ in range(repeats):
            for kind, (callbacks, more) in fits.items():
                fit = clone(estimator).set_params(n_jobs=1, callbacks=callbacks)
                with added() as spent:
                    cpu, _ = clocked(lambda fit=fit, more=more: fit.fit(data.X, data.y, **more))
                times[kind].append(cpu)
                if kind == "with":
                    parts["digests"].append(spent["digests"][0])
                    parts["writing"].append(spent["writing"][0])
                    parts["disk"].append(spent["writing"][1])
        size = path.stat().st_size / 1e6
    best, work = ({k: min(v) for k, v in found.items()} for found in (times, parts))
    cost = (work["digests"] + work["writing"]) / best["without"]
    return [
        name, *(f"{best[kind]:.2f} s" for kind in ("without", "with")),
        *(f"{1e3 * work[part]:.0f} ms" for part in work), f"{cost:.2%}", f"{size:.1f} MB",
        f"{best['resumed']:.2f} s",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    lines = []
    for name in FITS:
        if options.only in name:
            lines.append(line_of(name, options.rows, options.repeats))
    head = ["fit", "without", "with", "digests", "writing", "disk", "cost", "size", "resumed"]
    print(table(head, lines))


if __name__ == "__main__":
    main()
