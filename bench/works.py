"""The rows of the table: what is timed, who takes part, and the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from bench.data import SHIPPED, Shape, Split, generated, shipped
from bench.measure import Effort, Timing, auc, interleave
from bench.peers import (
    CONTESTANTS,
    EVERYBODY,
    FAST,
    OURS,
    OURS_DISCRETE,
    OURS_LONGER,
    Job,
    Probabilities,
    warm_up,
)
from bench.rates import rate_for

BINNERS = tuple(name for name in FAST if CONTESTANTS[name].bin is not None)


@dataclass(frozen=True)
class Race:
    """How hard to measure, and which peers take part."""

    effort: Effort
    peers: tuple[str, ...] = EVERYBODY

    def those_of(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Ours, and the peers that were asked for."""
        return tuple(n for n in names if n in self.peers or n.startswith(OURS))


@dataclass(frozen=True)
class Outcome:
    """Timings by contestant and, where a model was fitted, its held-out AUC."""

    timings: dict[str, Timing]
    aucs: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Work:
    """One row: `at_least` and `aim` are ratios to the fastest peer, or our own milliseconds."""

    key: str
    title: str
    run: Callable[[Race], Outcome]
    at_least: float | None = None
    aim: float | None = None
    unit: str = "ratio"
    ours: str = OURS


def job_for(name: str, split: Split, rounds: int, threads: int) -> Job:
    """The same work for everybody, each with its own rate."""
    classes = int(split.y.max()) + 1
    rate = rate_for(name, split.X.shape[1], classes, rounds)
    return Job(split.X, split.y, rounds, rate, threads)


def fits(split: Split, rounds: int, names: tuple[str, ...], race: Race) -> Outcome:
    """From raw float32 to a fitted model."""
    calls = {}
    for name in race.those_of(names):
        warm_up(name, split.X, split.y, race.effort.threads)
        job = job_for(name, split, rounds, race.effort.threads)
        calls[name] = partial(CONTESTANTS[name].fit, job)
    timings = interleave(calls, race.effort)
    aucs = {name: auc(split.y_test, t.result(split.X_test)) for name, t in timings.items()}
    return Outcome(timings, aucs)


def _fit(shape: Shape, rounds: int, names: tuple[str, ...], race: Race) -> Outcome:
    return fits(generated(shape), rounds, names, race)


def _binning(shape: Shape, race: Race) -> Outcome:
    split = generated(shape)
    calls: dict[str, Callable[[], Any]] = {}
    for name in race.those_of(BINNERS):
        bin_rows = CONTESTANTS[name].bin
        assert bin_rows is not None
        bin_rows(split.X[:10_000], split.y[:10_000], race.effort.threads)
        calls[name] = partial(bin_rows, split.X, split.y, race.effort.threads)
    return Outcome(interleave(calls, race.effort))


@lru_cache(maxsize=1)
def _models(shape: Shape, rounds: int, race: Race) -> dict[str, Probabilities]:
    split = generated(shape)
    return {
        name: CONTESTANTS[name].fit(job_for(name, split, rounds, race.effort.threads))
        for name in race.those_of(FAST)
    }


def _predict(shape: Shape, rounds: int, rows: int, calls_a_run: int, race: Race) -> Outcome:
    """Probabilities of `rows` raw float32 rows; seconds a call."""
    X = generated(shape).X[:rows]
    models = _models(shape, rounds, race)
    calls = {n: partial(_repeat, predict, X, calls_a_run) for n, predict in models.items()}
    timings = interleave(calls, race.effort)
    return Outcome({name: timing.shared_by(calls_a_run) for name, timing in timings.items()})


def _repeat(predict: Probabilities, X: np.ndarray, times: int) -> None:
    for _ in range(times):
        predict(X)


def _small(race: Race) -> Outcome:
    """All of scikit-learn's breast cancer set, 100 rounds, warm; AUC on the training rows."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    return fits(Split(X, y, X, y), 100, FAST, race)


def _shipped(name: str, race: Race) -> Outcome:
    return fits(shipped(name), 100, EVERYBODY, race)


def works(*, quick: bool) -> list[Work]:
    """The table of targets; `quick` has the same rows on smaller sets (sizes in the titles)."""
    million = Shape(100_000 if quick else 1_000_000, 28)
    hundred = Shape(50_000 if quick else 100_000, 28)
    million_rounds, hundred_rounds = (200, 200) if quick else (1_000, 1_000)
    exact, exact_rounds = (Shape(20_000, 28), 20) if quick else (Shape(100_000, 28), 100)
    wide, wide_rounds = (Shape(2_000, 1_000), 50) if quick else (Shape(10_000, 2_000), 500)
    many, many_rounds = (Shape(10_000, 28, 10), 50) if quick else (Shape(100_000, 28, 10), 300)
    model, model_rounds = (Shape(20_000, 28), 1_000) if quick else (Shape(100_000, 28), 1_000)
    rows = model.rows
    against_exact = (OURS_DISCRETE, OURS, "sklearn AdaBoost")
    return [
        Work(
            "million", f"fit, {million}, {million_rounds:,} rounds",
            partial(_fit, million, million_rounds, FAST), 6, 10,
        ),
        Work(
            "hundred-thousand", f"fit, {hundred}, {hundred_rounds:,} rounds",
            partial(_fit, hundred, hundred_rounds, FAST), 6, 10,
        ),
        Work(
            "adaboost", f"fit, {exact}, {exact_rounds} rounds, against scikit-learn's AdaBoost",
            partial(_fit, exact, exact_rounds, against_exact), 300, 1_000, ours=OURS_DISCRETE,
        ),
        Work(
            "wide", f"fit, {wide}, {wide_rounds} rounds",
            partial(_fit, wide, wide_rounds, FAST), 3, 10,
        ),
        Work(
            "classes", f"fit, {many}, {many_rounds} rounds",
            partial(_fit, many, many_rounds, (*FAST, OURS_LONGER)), 3, 10,
        ),
        Work("binning", f"binning, {million}", partial(_binning, million), 3, 6),
        Work(
            "predict", f"predict {rows:,} rows, {model_rounds:,} rounds",
            partial(_predict, model, model_rounds, rows, 1), 3, 10,
        ),
        Work(
            "one-row", f"predict one row, {model_rounds:,} rounds",
            partial(_predict, model, model_rounds, 1, 200), 1, 3,
        ),
        Work("small", "fit, 569 x 30, 100 rounds, warm", _small, 5, 1, unit="ms"),
        Work(
            "thousand", "fit, 1,000 x 30, 300 rounds",
            partial(_fit, Shape(1_000, 30), 300, EVERYBODY),
        ),
        *(
            Work(
                name.replace(" ", "-"), f"fit, {name} (ships with scikit-learn), 100 rounds",
                partial(_shipped, name),
            )
            for name in SHIPPED
        ),
    ]  # fmt: skip
