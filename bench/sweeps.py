"""Time against rows, features, rounds and threads, and AUC against time."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from bench.data import Shape, generated
from bench.peers import FAST
from bench.works import Race, fits


@dataclass(frozen=True)
class Point:
    """One fit of one contestant in a sweep."""

    name: str
    x: int
    seconds: float
    auc: float


@dataclass(frozen=True)
class Sweep:
    """A curve for each contestant."""

    key: str
    label: str
    setting: str
    points: list[Point]


def _run(key: str, label: str, setting: str, works: list[tuple[int, Shape, int, Race]]) -> Sweep:
    points = []
    for x, shape, rounds, race in works:
        outcome = fits(generated(shape), rounds, FAST, race)
        points += [
            Point(name, x, timing.best, outcome.scores[name])
            for name, timing in outcome.timings.items()
        ]
    return Sweep(key, label, setting, points)


def _with_threads(race: Race, threads: int) -> Race:
    return replace(race, effort=replace(race.effort, threads=threads))


SWEEPS = ("rows", "features", "rounds", "threads")


def sweep(key: str, race: Race, *, quick: bool) -> Sweep:
    """One of SWEEPS; `quick` has fewer and smaller points."""
    base, base_rounds = (20_000, 30) if quick else (100_000, 100)
    if key == "rows":
        rows = [1_000, 10_000, 100_000] if quick else [1_000, 10_000, 100_000, 1_000_000]
        points = [(n, Shape(n, 28), base_rounds, race) for n in rows]
        return _run("rows", "rows", f"28 features, {base_rounds} rounds", points)
    if key == "features":
        tall = 2_000 if quick else 10_000
        features = [10, 30, 100] if quick else [10, 30, 100, 300, 1_000]
        points = [(p, Shape(tall, p), base_rounds, race) for p in features]
        return _run("features", "features", f"{tall:,} rows, {base_rounds} rounds", points)
    if key == "rounds":
        rounds = [10, 30, 100] if quick else [10, 30, 100, 300, 1_000]
        points = [(t, Shape(base, 28), t, race) for t in rounds]
        return _run("rounds", "rounds", f"{base:,} x 28", points)
    cores = os.cpu_count() or 1
    threads = sorted({1, *(2**k for k in range(1, cores.bit_length())), cores})
    points = [(k, Shape(base, 28), base_rounds, _with_threads(race, k)) for k in threads]
    return _run("threads", "threads", f"{base:,} x 28, {base_rounds} rounds", points)
