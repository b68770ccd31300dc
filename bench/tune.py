"""How the learning rates of rates.py and the settings of peers.py were found.

python -m bench.tune rates: the held-out AUC of every (work, contestant, rate), and the best rates
as they stand in rates.py. On fewer rows than the timed sets: a coarse grid does not need more.
python -m bench.tune losses: the held-out loss of every (loss, contestant, rate) of losses.py.
python -m bench.tune settings: the time of the settings that LightGBM and XGBoost leave open.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightgbm
import xgboost

from bench.data import Shape, Split, generated
from bench.losses import LOSSES, LossRow
from bench.measure import Effort, auc, interleave
from bench.peers import (
    CONTESTANTS,
    EVERYBODY,
    FAST,
    MAX_BINS,
    OURS_LOGISTIC,
    Job,
    lightgbm_settings,
    xgboost_settings,
)
from bench.rates import GRID

SEED = 1  # the timed sets have seed 0
LOSS_ROWS, LOSS_ROUNDS = 20_000, 200


@dataclass(frozen=True)
class Tuning:
    """One work, and who takes part."""

    shape: Shape
    rounds: int
    names: tuple[str, ...] = FAST


WORKS = (
    Tuning(Shape(1_000, 30), 300, EVERYBODY),
    Tuning(Shape(30_000, 28), 100),
    Tuning(Shape(30_000, 28), 200, (OURS_LOGISTIC, "LightGBM", "XGBoost", "CatBoost")),
    Tuning(Shape(30_000, 28), 1_000),
    Tuning(Shape(10_000, 28, 10), 300),
    Tuning(Shape(5_000, 2_000), 500),
)


def _best_rates(work: Tuning, split: Split) -> dict[str, float]:
    best = {}
    for name in work.names:
        scores = {}
        for rate in GRID:
            job = Job(split.X, split.y, work.rounds, rate, 1)
            scores[rate] = auc(split.y_test, CONTESTANTS[name].fit(job)(split.X_test))
        best[name] = max(scores, key=lambda rate: scores[rate])
        row = "  ".join(f"{rate}: {score:.5f}" for rate, score in scores.items())
        print(f"{work.shape}, {work.rounds} rounds, {name:18}{row}", flush=True)
    return best


def _loss_rates(key: str, row: LossRow) -> dict[str, float]:
    split, best = row.data(LOSS_ROWS, SEED), {}
    for name, fit in row.fits.items():
        losses = {
            rate: row.value(
                split.y_test, fit(Job(split.X, split.y, LOSS_ROUNDS, rate, 1))(split.X_test)
            )
            for rate in GRID
        }
        best[name] = min(losses, key=lambda rate: losses[rate])
        line = "  ".join(f"{rate}: {loss:.5f}" for rate, loss in losses.items())
        print(f"{key}, {name:18}{line}", flush=True)
    return best


def _settings(job: Job) -> None:
    """Times of the settings that could be faster than those in peers.py."""
    base = lightgbm_settings(job)
    free = {k: v for k, v in base.items() if k != "force_col_wise"}
    calls: dict[str, Callable[[], Any]] = {}
    for name, settings in {
        "column-wise": base,
        "row-wise": {**free, "force_row_wise": True},
        "automatic": free,
        "column-wise, quantised gradients": {**base, "use_quantized_grad": True},
    }.items():
        calls[f"LightGBM, {name}"] = partial(_lightgbm, settings, job)
    matrix = xgboost.QuantileDMatrix(job.X, job.y, max_bin=MAX_BINS, nthread=job.threads)
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        settings = {**xgboost_settings(job), "multi_strategy": strategy}
        calls[f"XGBoost, {strategy}"] = partial(xgboost.train, settings, matrix, job.rounds)
    for name, timing in interleave(calls, Effort(job.threads, 3, 60.0)).items():
        print(f"{job.classes} classes, {name}: {timing.best:.2f} s", flush=True)


def _lightgbm(settings: dict[str, Any], job: Job) -> Any:
    return lightgbm.train(settings, lightgbm.Dataset(job.X, job.y), job.rounds)


def main() -> None:
    """One of the three, by name."""
    if sys.argv[1:] == ["settings"]:
        for classes in (2, 10):
            split = generated(Shape(100_000, 28, classes), SEED)
            _settings(Job(split.X, split.y, 100, 0.3, 2))
    elif sys.argv[1:] == ["rates"]:
        for work in WORKS:
            best = _best_rates(work, generated(work.shape, SEED))
            print((work.shape.features, work.shape.classes, work.rounds), best, flush=True)
    elif sys.argv[1:] == ["losses"]:
        for key, row in LOSSES.items():
            print(key, _loss_rates(key, row), flush=True)
    else:
        sys.exit("usage: python -m bench.tune rates|losses|settings")


if __name__ == "__main__":
    main()
