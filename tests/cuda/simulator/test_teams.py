"""Workers whose rows are on GPUs: the same model, from sums of the CUDA engine."""

from __future__ import annotations

import multiprocessing
import secrets
from typing import Any

import numpy as np
import pytest

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, use_engine
from ensemble_gpu.distributed import Door, Keys, SocketReduce, fit

MADE: dict[str, Any] = {
    "adaboost": lambda: AdaBoostClassifier(n_estimators=3, max_bins=8, calibrate=False),
    "trees": lambda: BoostingClassifier(n_estimators=2, max_depth=2, max_bins=8),
}


def rows() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, (np.nan_to_num(X[:, 0]) + X[:, 1] ** 2 > 0.5).astype(int), rng.random(60) + 0.5


def run(rank: int, token: bytes, doors: Any, told: Any, found: Any) -> None:
    door = Door("127.0.0.1")
    doors.put((rank, door.address))
    X, y, w = (a[:35] if rank == 0 else a[35:] for a in rows())
    reduce = SocketReduce(rank, door, told.get(), Keys(token))
    with use_engine("cuda"):
        for name, make in MADE.items():
            fitted = fit(make(), X, y, w, reduce=reduce)
            found.put((name, fitted.engine_, fitted.model_.fingerprint()))
    reduce.close()


@pytest.mark.long
def test_workers_with_the_cuda_engine_have_the_model_of_the_cpu():
    context = multiprocessing.get_context("spawn")
    doors, found, token = context.Queue(), context.Queue(), secrets.token_bytes(32)
    told = [context.Queue() for _ in range(2)]
    workers = [
        context.Process(target=run, args=(r, token, doors, told[r], found)) for r in range(2)
    ]
    for worker in workers:
        worker.start()
    addresses = dict(doors.get(timeout=60) for _ in workers)
    for queue in told:
        queue.put([addresses[0], addresses[1]])
    answers = [found.get(timeout=120) for _ in range(2 * len(MADE))]
    for worker in workers:
        worker.join()
    X, y, w = rows()
    with use_engine("cpu"):
        local = {name: make().fit(X, y, w).model_.fingerprint() for name, make in MADE.items()}
    for name, engine, fingerprint in answers:
        assert (engine, fingerprint) == ("cuda", local[name])
