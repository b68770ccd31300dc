"""Workers of a Dask cluster killed in the middle of fits.

    python -m bench.dask_kills [--repeats 2]

Three processes of one thread each; SIGKILL of the first rank or of another, at random rounds. A
table of which was killed when, how long it took until the next round was found, and whether the
model has the fingerprint of the local fit.
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from bench.markdown import table
from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, RandomForestClassifier
from ensemble_gpu.dask import (
    DaskAdaBoostClassifier,
    DaskBoostingClassifier,
    DaskRandomForestClassifier,
)

ROWS, FEATURES = 60_000, 28
WORKS: list[tuple[str, Any, Any, dict[str, Any]]] = [
    ("AdaBoost", DaskAdaBoostClassifier, AdaBoostClassifier,
     {"n_estimators": 400, "calibrate": False}),
    ("AdaBoost, early stopping", DaskAdaBoostClassifier, AdaBoostClassifier,
     {"n_estimators": 300, "early_stopping": True, "random_state": 0, "calibrate": False}),
    ("logistic stumps", DaskBoostingClassifier, BoostingClassifier,
     {"n_estimators": 300, "max_depth": 1, "early_stopping": False}),
    ("trees", DaskBoostingClassifier, BoostingClassifier,
     {"n_estimators": 60, "early_stopping": False}),
    ("forest", DaskRandomForestClassifier, RandomForestClassifier,
     {"n_estimators": 30, "random_state": 0}),
]  # fmt: skip


class Told:
    """A callback that writes round and process, and waits a little so that kills hit a round."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, info: Any) -> None:
        new = self.path.with_suffix(".new")
        new.write_text(f"{info.round} {os.getpid()}")
        new.replace(self.path)
        time.sleep(0.003)

    def read(self) -> tuple[int, int]:
        if not self.path.exists():
            return 0, 0
        number, process = map(int, self.path.read_text().split())
        return number, process


def killed(
    client: Client, work: Any, given: Any, rng: np.random.Generator, first: bool
) -> list[str]:
    """One fit: a line of the table."""
    name, shared, _, parameters = work
    X, y, fingerprint = given
    with tempfile.TemporaryDirectory() as folder:
        told = Told(Path(folder) / "round")
        fit = shared(client=client, callbacks=[told], **parameters)
        thread = threading.Thread(target=lambda: fit.fit(X, y))
        thread.start()
        at = int(rng.integers(2, parameters["n_estimators"] * 4 // 5))
        while told.read()[0] < at and thread.is_alive():
            time.sleep(0.0005)
        number, process = told.read()
        others = [pid for pid in client.run(os.getpid).values() if pid != process]
        start = time.perf_counter()
        os.kill(process if first else others[0], signal.SIGKILL)
        number = told.read()[0]
        while told.read()[0] <= number and thread.is_alive():
            time.sleep(0.0005)
        waited = time.perf_counter() - start
        thread.join()
        same = fit.model_.fingerprint() == fingerprint
        victim = "first rank" if first else "another"
        return [name, victim, str(number), f"{waited:.2f}", str(len(fit.events_)),
                "equal" if same else "OTHER"]  # fmt: skip


def wait_for_workers(client: Client, n: int) -> None:
    """Until Dask has replaced what was killed, five seconds; two workers are needed at least.

    (A nanny sometimes takes minutes to start a worker anew.)
    """
    for turn in range(1200):
        here = len(client.scheduler_info(n_workers=-1)["workers"])
        if here >= n or (here >= 2 and turn > 50):
            return
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=2)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, FEATURES)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(ROWS) > 0).astype(np.int64)
    dX, dy = da.from_array(X, chunks=(9_000, FEATURES)), da.from_array(y, chunks=9_000)
    lines = []
    with (
        LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None)
        as cluster, Client(cluster) as client,
    ):  # fmt: skip
        for work in WORKS:
            expected = work[2](**work[3]).fit(X, y).model_.fingerprint()
            work[1](client=client, **work[3]).fit(dX, dy)  # compiled
            for _ in range(given.repeats):
                for first in (True, False):
                    lines.append(killed(client, work, (dX, dy, expected), rng, first))
                    wait_for_workers(client, 3)
    head = ["fit", "killed", "at round", "seconds until the next", "losses", "fingerprint"]
    print(table(head, lines))


if __name__ == "__main__":
    main()
