"""Held-out AUC against rounds for several learning rates: which settings reach the same AUC first.

python -m bench.curves wide|classes [--contestant NAME ...] [--rounds T] [--rates R ...]

One fit a (contestant, rate); the model of fewer rounds is a part of it, so a line shows the AUC
after a tenth, a fifth, ... of the rounds beside the processor time of the whole fit. The sets have
another seed than the timed ones.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost

from bench.data import Shape, generated
from bench.measure import auc
from bench.peers import (
    MAX_BINS,
    Job,
    catboost_settings,
    lightgbm_settings,
    xgboost_settings,
)
from ensemble_gpu import AdaBoostClassifier, BoostingClassifier

SEED = 1  # the timed sets have seed 0
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
SHAPES = {"wide": Shape(10_000, 2_000), "classes": Shape(100_000, 28, 10)}

Staged = Callable[[np.ndarray, int], np.ndarray]


def _ours(job: Job, variant: str) -> Staged:
    model = AdaBoostClassifier(
        variant=variant, n_estimators=job.rounds, learning_rate=job.rate, n_jobs=job.threads,
        calibrate=False,
    ).fit(job.X, job.y)  # fmt: skip
    return lambda X, rounds: _at(model, X, rounds)


def _ours_logistic(job: Job, **settings: Any) -> Staged:
    model = BoostingClassifier(
        n_estimators=job.rounds,
        learning_rate=job.rate,
        n_jobs=job.threads,
        max_depth=1,
        early_stopping=False,
        **settings,
    ).fit(job.X, job.y)
    return lambda X, rounds: _at(model, X, rounds)


def _at(model: Any, X: np.ndarray, rounds: int) -> np.ndarray:
    """Probabilities after so many rounds."""
    *_, last = model.staged_predict_proba(X, rounds=[min(rounds, model.n_estimators_)])
    return np.asarray(last)


def _lightgbm(job: Job) -> Staged:
    booster = lightgbm.train(lightgbm_settings(job), lightgbm.Dataset(job.X, job.y), job.rounds)
    return lambda X, rounds: np.asarray(booster.predict(X, num_iteration=rounds))


def _xgboost(job: Job) -> Staged:
    matrix = xgboost.QuantileDMatrix(job.X, job.y, max_bin=MAX_BINS, nthread=job.threads)
    booster = xgboost.train(xgboost_settings(job), matrix, job.rounds)
    return lambda X, rounds: booster.inplace_predict(X, iteration_range=(0, rounds))


def _catboost(job: Job) -> Staged:
    model = catboost.CatBoostClassifier(**catboost_settings(job)).fit(job.X, job.y)
    return lambda X, rounds: model.predict_proba(X, ntree_end=rounds)


FITS: dict[str, Callable[[Job], Staged]] = {
    "real": lambda job: _ours(job, "real"),
    "gentle": lambda job: _ours(job, "gentle"),
    "logistic": _ours_logistic,
    "logistic, a tenth of the features": lambda job: _ours_logistic(job, max_features=0.1),
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
}


def main() -> None:
    """A line a (contestant, rate)."""
    parser = argparse.ArgumentParser(prog="python -m bench.curves", description=__doc__)
    parser.add_argument("work", choices=SHAPES)
    parser.add_argument("--contestant", action="append", choices=FITS)
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--rates", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.3])
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    split = generated(SHAPES[arguments.work], SEED)
    for name in arguments.contestant or FITS:
        for rate in arguments.rates:
            job = Job(split.X, split.y, arguments.rounds, rate, arguments.threads)
            start = time.process_time()
            staged = FITS[name](job)
            spent = time.process_time() - start
            at = [max(1, round(share * job.rounds)) for share in SHARES]
            scores = [f"{t}: {auc(split.y_test, staged(split.X_test, t)):.5f}" for t in at]
            print(f"{name}, rate {rate}, {spent:.2f} s CPU: ", "  ".join(scores), flush=True)


if __name__ == "__main__":
    main()
