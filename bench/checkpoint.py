"""What checkpoints cost: fits with and without, one after the other, at 1,000,000 x 28.

    python -m bench.checkpoint [--rows N] [--repeats K] [--only WORD]

One thread; processor time, the least of the repeats, of a fit without a checkpoint and with
`Checkpoint(path)` as it is by default; `by the clock` is what it costs with the disk's time.
`resumed` is a fit that goes on from the finished one: it reads the file, knows the data again and
replays all rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
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


def line_of(name: str, rows: int, repeats: int) -> list[str]:
    estimator, classes = FITS[name]
    make = generated if classes else regression
    data = make(Shape(rows, FEATURES))
    X, y = data.X, data.y
    alone, checked, again = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.safetensors"
        for _ in range(repeats):
            fit = clone(estimator).set_params(n_jobs=1)
            alone.append(clocked(lambda fit=fit: fit.fit(X, y)))
            fit = clone(estimator).set_params(n_jobs=1, callbacks=[Checkpoint(path)])
            checked.append(clocked(lambda fit=fit: fit.fit(X, y)))
            fit = clone(estimator).set_params(n_jobs=1)
            again.append(clocked(lambda fit=fit: fit.fit(X, y, resume=path)))
        size = path.stat().st_size / 1e6
    best = [min(cpu for cpu, _ in times) for times in (alone, checked, again)]
    wall = [min(wall for _, wall in times) for times in (alone, checked)]
    return [
        name, f"{best[0]:.2f} s", f"{best[1]:.2f} s", f"{best[1] / best[0] - 1.0:+.1%}",
         f"{wall[1] / wall[0] - 1.0:+.1%}", f"{size:.1f} MB",
        f"{best[2]:.2f} s",
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
    head = ["fit", "without", "with", "cost", "by the clock", "size", "resumed"]
    print(table(head, lines))


if __name__ == "__main__":
    main()
