"""The rows of the table: what is timed, who takes part, and the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

from bench.data import SHIPPED, Shape, Split, generated, regression, shipped
from bench.losses import LOSSES, lightgbm_fit, squared_error
from bench.measure import Effort, Timing, auc, interleave
from bench.peers import (
    CONTESTANTS,
    EVERYBODY,
    FAST,
    OURS,
    OURS_DISCRETE,
    OURS_GENTLE,
    OURS_LOGISTIC,
    OURS_SINGLE,
    OURS_SQUARED,
    WARM_ROWS,
    Job,
    Probabilities,
    warm_up,
)
from bench.rates import CLASSES_ROUNDS, L2_RATE, loss_rate_for, rate_for

AUC = "AUC"
# What losses with kinks are to reach beside the fastest peer: at least, and aimed at.
LOSS_TARGETS = dict.fromkeys(("absolute", "quantile", "huber"), (1.2, 3.0))
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
    """Timings by contestant and, where a model was fitted, its score on held-out rows."""

    timings: dict[str, Timing]
    scores: dict[str, float] = field(default_factory=dict)
    measure: str = AUC
    rounds: dict[str, int] = field(default_factory=dict)

    @property
    def sign(self) -> int:
        """+1 where a higher score is better, -1 for losses."""
        return 1 if self.measure == AUC else -1


@dataclass(frozen=True)
class Work:
    """One row: `at_least` and `aim` are ratios to the fastest peer, or our own milliseconds.

    The times count as those of equal models when our score is not worse by more than `tolerance`.
    """

    key: str
    title: str
    run: Callable[[Race], Outcome]
    at_least: float | None = None
    aim: float | None = None
    unit: str = "ratio"
    ours: str = OURS
    tolerance: float = 0.0005
    group: str = ""


def job_for(name: str, split: Split, rounds: int, threads: int) -> Job:
    """The same work for everybody, each with its own rate."""
    rate = rate_for(name, split.X.shape[1], int(split.y.max()) + 1, rounds)
    return Job(split.X, split.y, rounds, rate, threads)


def fits(split: Split, rounds: int | dict[str, int], names: tuple[str, ...], race: Race) -> Outcome:
    """From raw float32 to a fitted model; everybody's rounds, or those of each."""
    calls, own_rounds = {}, {}
    for name in race.those_of(names):
        warm_up(name, split.X, split.y, race.effort.threads)
        own = own_rounds[name] = rounds[name] if isinstance(rounds, dict) else rounds
        job = job_for(name, split, own, race.effort.threads)
        calls[name] = partial(CONTESTANTS[name].fit, job)
    timings = interleave(calls, race.effort)
    aucs = {name: auc(split.y_test, t.result(split.X_test)) for name, t in timings.items()}
    return Outcome(timings, aucs, AUC, own_rounds)


def _fit(shape: Shape, rounds: int | dict[str, int], names: tuple[str, ...], race: Race) -> Outcome:
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


def _predict(shape: Shape, rounds: int, rows: int, race: Race) -> Outcome:
    """Probabilities of `rows` raw float32 rows."""
    X = generated(shape).X[:rows]
    models = _models(shape, rounds, race)
    return Outcome(interleave({n: partial(ask, X) for n, ask in models.items()}, race.effort))


def _small(race: Race) -> Outcome:
    """All of scikit-learn's breast cancer set, 100 rounds, warm; AUC on the training rows."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X.astype(np.float32)
    return fits(Split(X, y, X, y), 100, FAST, race)


def _shipped(name: str, race: Race) -> Outcome:
    return fits(shipped(name), 100, EVERYBODY, race)


def _l2(shape: Shape, rounds: int, peer_rounds: int, race: Race) -> Outcome:
    """L2Boost; LightGBM's fewer rounds are multiplied, but for its binning.

    Ours also runs as few rounds, for the error.
    """
    split, threads, times = regression(shape), race.effort.threads, rounds // peer_rounds
    ours, peer = CONTESTANTS[OURS_SQUARED].fit, lightgbm_fit("regression")
    few = f"{OURS_SQUARED}, {peer_rounds:,} rounds"
    multiplied = f"LightGBM, {peer_rounds:,} rounds x {times}"
    entries = {
        OURS_SQUARED: (ours, rounds),
        few: (ours, peer_rounds),
        multiplied: (peer, peer_rounds),
    }
    calls = {}
    for name, (fit, own_rounds) in entries.items():
        fit(Job(split.X[:WARM_ROWS], split.y[:WARM_ROWS], 300, L2_RATE, threads))(split.X[:1])
        calls[name] = partial(fit, Job(split.X, split.y, own_rounds, L2_RATE, threads))
    bin_rows = CONTESTANTS["LightGBM"].bin
    assert bin_rows is not None
    calls["binning"] = partial(bin_rows, split.X, split.y, threads)
    timings = interleave(calls, race.effort)
    binning = timings.pop("binning")
    errors = {n: squared_error(split.y_test, t.result(split.X_test)) for n, t in timings.items()}
    timings[multiplied] = timings[multiplied].multiplied(times, binning)
    return Outcome(timings, errors, "MSE", {n: own for n, (_, own) in entries.items()})


def _loss(key: str, rows: int, rounds: int, race: Race) -> Outcome:
    row, threads = LOSSES[key], race.effort.threads
    split = row.data(rows)
    calls = {}
    for name in race.those_of(tuple(row.fits)):
        fit, rate = row.fits[name], loss_rate_for(key, name)
        fit(Job(split.X[:WARM_ROWS], split.y[:WARM_ROWS], 3, rate, threads))(split.X[:1])
        calls[name] = partial(fit, Job(split.X, split.y, rounds, rate, threads))
    timings = interleave(calls, race.effort)
    losses = {n: row.value(split.y_test, t.result(split.X_test)) for n, t in timings.items()}
    return Outcome(timings, losses, "loss", dict.fromkeys(timings, rounds))


def works(*, quick: bool) -> list[Work]:
    """The table of targets; `quick` has the same rows on smaller sets, without targets."""
    if quick:
        return [replace(w, at_least=None, aim=None) for w in _works(quick=True)]
    return _works(quick=False)


def _works(*, quick: bool) -> list[Work]:
    million = Shape(100_000 if quick else 1_000_000, 28)
    hundred = Shape(50_000 if quick else 100_000, 28)
    million_rounds, hundred_rounds = (200, 200) if quick else (1_000, 1_000)
    exact, exact_rounds = (Shape(20_000, 28), 20) if quick else (Shape(100_000, 28), 100)
    wide, wide_rounds = (Shape(2_000, 1_000), 50) if quick else (Shape(10_000, 2_000), 500)
    many, many_rounds = (Shape(10_000, 28, 10), 50) if quick else (Shape(100_000, 28, 10), 300)
    equal = {n: t // 6 for n, t in CLASSES_ROUNDS.items()} if quick else CLASSES_ROUNDS
    model, model_rounds = (Shape(20_000, 28), 1_000) if quick else (Shape(100_000, 28), 1_000)
    l2_rounds, l2_few = (1_000, 100) if quick else (10_000, 1_000)
    logistic_rounds = 50 if quick else 200
    rows = model.rows
    against_exact = (OURS_DISCRETE, OURS, "sklearn AdaBoost")
    logistic = (OURS_LOGISTIC, "LightGBM", "XGBoost", "CatBoost")
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
            "l2",
            f"L2Boost, {million}, {l2_rounds:,} rounds against LightGBM's {l2_few:,} rounds x 10",
            partial(_l2, million, l2_rounds, l2_few), 50, 100, ours=OURS_SQUARED,
        ),
        Work(
            "logistic", f"logistic loss, {million}, {logistic_rounds} rounds",
            partial(_fit, million, logistic_rounds, logistic), 1.5, 1.5,
            ours=OURS_LOGISTIC, tolerance=0.001,
        ),
        Work(
            "wide", f"fit, {wide}, {wide_rounds} rounds",
            partial(_fit, wide, wide_rounds, (*FAST, OURS_GENTLE)), 3, 10, ours=OURS_GENTLE,
        ),
        Work(
            "classes", f"fit, {many}, rounds for equal AUC",
            partial(_fit, many, equal, (*FAST, OURS_SINGLE, OURS_LOGISTIC)), 3, 10,
            ours=OURS_SINGLE,
        ),
        Work(
            "classes-rounds", f"fit, {many}, {many_rounds} rounds",
            partial(_fit, many, many_rounds, (*FAST, OURS_LOGISTIC)), 1.5, 4, ours=OURS_LOGISTIC,
        ),
        Work("binning", f"binning, {million}", partial(_binning, million), 3, 6),
        Work(
            "predict", f"predict {rows:,} rows, {model_rounds:,} rounds",
            partial(_predict, model, model_rounds, rows), 3, 10,
        ),
        Work("small", "fit, 569 x 30, 100 rounds, warm", _small, 5, 1, unit="ms"),
        Work(
            "thousand", "fit, 1,000 x 30, 300 rounds",
            partial(_fit, Shape(1_000, 30), 300, EVERYBODY),
        ),
        *_loss_works(*((20_000, 50) if quick else (100_000, 200))),
        *(
            Work(
                name.replace(" ", "-"), f"fit, {name} (ships with scikit-learn), 100 rounds",
                partial(_shipped, name), group="shipped",
            )
            for name in SHIPPED
        ),
    ]  # fmt: skip


def _loss_works(rows: int, rounds: int) -> list[Work]:
    return [
        Work(
            f"loss-{key}", f"{row.title}, {rows:,} x 28, {rounds} rounds",
            partial(_loss, key, rows, rounds), *LOSS_TARGETS.get(key, ()), group="losses",
        )
        for key, row in LOSSES.items()
    ]  # fmt: skip
