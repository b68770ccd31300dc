"""The same fit on every array library that is installed: fingerprints side by side."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, RandomForestClassifier
from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.kernels.cpu.threads import Run

# What is fitted: its name, and how it is made with so many rounds and threads.
ESTIMATORS: dict[str, Callable[[int, int | None], Any]] = {
    "AdaBoost": lambda n, jobs: AdaBoostClassifier(n_estimators=n, n_jobs=jobs),
    "boosted trees": lambda n, jobs: BoostingClassifier(n_estimators=n, n_jobs=jobs),
    "forest": lambda n, jobs: RandomForestClassifier(
        n_estimators=n, max_depth=6, n_jobs=jobs, random_state=0
    ),
}


@dataclass(frozen=True)
class Place:
    """One way to fit: arrays made by `put`, threads of the CPU engine."""

    name: str
    put: Callable[[np.ndarray], Any]
    n_jobs: int | None = None


def places() -> Iterator[Place]:
    """NumPy, and what else is installed."""
    yield Place("NumPy, 1 thread", np.asarray, 1)
    yield Place(f"NumPy, all threads ({Run.of(None).threads})", np.asarray, -1)

    def installed(name: str) -> bool:
        return importlib.util.find_spec(name) is not None

    if installed("array_api_strict"):
        import array_api_strict as strict

        device = strict.Device("device1")
        yield Place("array-api-strict, device1", lambda a: strict.asarray(a, device=device))
    if installed("torch"):
        import torch

        yield Place("torch, CPU", lambda a: torch.from_numpy(a.copy()))
    if installed("jax"):
        import jax

        yield Place("JAX, CPU", lambda a: jax.device_put(a, jax.devices("cpu")[0]))
    if gpu.available():
        yield Place("CuPy", gpu.to_gpu)


def fingerprints(X: np.ndarray, y: np.ndarray, n: int) -> Iterator[list[str]]:
    """For every place its name, the engine, and the fingerprint of every estimator."""
    X, y = X.astype(np.float32), y.astype(np.int32)  # which every library has
    for place in places():
        rows, labels = place.put(X), place.put(y)
        fits = [make(n, place.n_jobs).fit(rows, labels) for make in ESTIMATORS.values()]
        engine = getattr(fits[0], "engine_", "")
        yield [place.name, engine, *(fit.model_.fingerprint()[:16] for fit in fits)]
