"""Ours and the peers, each in its best configuration for the same work.

The work: `rounds` boosted stumps (two leaves, depth 1) on at most 255 bins, from raw float32 to a
fitted model, on `threads` threads, with nothing printed, written or held out. Native interfaces are
used where they are faster than a scikit-learn wrapper (LightGBM, XGBoost).

Settings compared for speed (bench/tune.py; 100,000 x 28, two classes, one thread):
LightGBM column-wise, row-wise, automatic and with quantised gradients, XGBoost with one and with K
outputs a tree; they differ by less than a tenth. Not compared: ten classes, two threads. CatBoost's
(plain boosting, no bootstrap, no score noise, one Newton step a leaf) are those that do least work.
losses.py has the same contestants with other losses.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from interpret.glassbox import ExplainableBoostingClassifier
from sklearn.ensemble import AdaBoostClassifier as SklearnAdaBoost
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import ThreadpoolController

from ensemble_gpu import AdaBoostClassifier, BoostingClassifier, BoostingRegressor
from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.boosting.rules import rule_for
from ensemble_gpu.data.matrix import bin_matrix, sort_by_class
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.protocol import Layout

OURS = "ensemble_gpu"
OURS_DISCRETE = "ensemble_gpu, discrete"
OURS_GENTLE = "ensemble_gpu, gentle"
OURS_SINGLE = "ensemble_gpu, single"
OURS_LOGISTIC = "ensemble_gpu, logistic"
OURS_SQUARED = "ensemble_gpu, squared"
MAX_BINS = 255
WARM_ROWS = 21_000  # so many that gradients are packed in pairs, as in the timed fits
_POOLS = ThreadpoolController()  # made once, as looking for the pools takes milliseconds

Probabilities = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Job:
    """What a contestant is asked to do."""

    X: np.ndarray
    y: np.ndarray
    rounds: int
    rate: float
    threads: int

    @property
    def classes(self) -> int:
        return int(self.y.max()) + 1


@dataclass(frozen=True)
class Contestant:
    """How to fit (giving a function from rows to probabilities) and, where there is one, to bin."""

    name: str
    fit: Callable[[Job], Probabilities]
    bin: Callable[[np.ndarray, np.ndarray, int], Any] | None = None


def openmp(threads: int) -> AbstractContextManager[Any]:
    """scikit-learn has no argument for the threads of histogram boosting."""
    return _POOLS.limit(limits=threads, user_api="openmp")


def _common(job: Job) -> dict[str, Any]:
    """What all of our estimators are told."""
    return {
        "n_estimators": job.rounds,
        "learning_rate": job.rate,
        "max_bins": MAX_BINS,
        "n_jobs": job.threads,
    }


def _ours(job: Job, variant: str = "real", multiclass: str = "shared") -> Probabilities:
    model = AdaBoostClassifier(
        variant=variant, multiclass=multiclass, calibrate=False, **_common(job)
    )
    return model.fit(job.X, job.y).predict_proba


def _ours_logistic(job: Job) -> Probabilities:
    """Newton steps; with K classes a stump for each, on the multinomial loss."""
    model = BoostingClassifier(max_depth=1, early_stopping=False, **_common(job))
    return model.fit(job.X, job.y).predict_proba


def _ours_squared(job: Job) -> Probabilities:
    return (
        BoostingRegressor(max_depth=1, early_stopping=False, **_common(job))
        .fit(job.X, job.y)
        .predict
    )


def _ours_bin(X: np.ndarray, y: np.ndarray, threads: int) -> Any:
    """Edges and codes as the fit makes them: rows sorted by class, counts per class included."""
    classes = int(y.max()) + 1
    rows = sort_by_class(y, classes, None, NUMPY)
    layout = Layout(rows.starts, rule_for("real", classes).group_of)
    X = X.view()
    X.flags.writeable = False
    return bin_matrix(CpuEngine(threads), X, rows.rows, layout, MAX_BINS)


def lightgbm_settings(job: Job, objective: str | None = None) -> dict[str, Any]:
    """LightGBM's parameters for this work; without an objective: logistic."""
    several = {"objective": "multiclass", "num_class": job.classes}
    binary = {"objective": objective or "binary"}
    return {
        **(several if objective is None and job.classes > 2 else binary),
        "num_leaves": 2,
        "max_bin": MAX_BINS,
        "learning_rate": job.rate,
        "num_threads": job.threads,
        "force_col_wise": True,
        "verbosity": -1,
    }


def _lightgbm(job: Job) -> Probabilities:
    settings = lightgbm_settings(job)
    booster = lightgbm.train(settings, lightgbm.Dataset(job.X, job.y), job.rounds)
    return lambda X: np.asarray(booster.predict(X, num_threads=job.threads))


def _lightgbm_bin(X: np.ndarray, y: np.ndarray, threads: int) -> Any:
    settings = {"max_bin": MAX_BINS, "num_threads": threads, "verbosity": -1}
    return lightgbm.Dataset(X, y, params=settings).construct()


def xgboost_settings(job: Job, objective: str | None = None) -> dict[str, Any]:
    """XGBoost's parameters for this work; without an objective: logistic."""
    several = {"objective": "multi:softprob", "num_class": job.classes}
    binary = {"objective": objective or "binary:logistic"}
    return {
        **(several if objective is None and job.classes > 2 else binary),
        "max_depth": 1,
        "tree_method": "hist",
        "max_bin": MAX_BINS,
        "learning_rate": job.rate,
        "nthread": job.threads,
        "verbosity": 0,
    }


def _xgboost(job: Job) -> Probabilities:
    matrix = xgboost.QuantileDMatrix(job.X, job.y, max_bin=MAX_BINS, nthread=job.threads)
    return xgboost.train(xgboost_settings(job), matrix, job.rounds).inplace_predict


def _xgboost_bin(X: np.ndarray, y: np.ndarray, threads: int) -> Any:
    return xgboost.QuantileDMatrix(X, y, max_bin=MAX_BINS, nthread=threads)


def catboost_settings(job: Job) -> dict[str, Any]:
    """CatBoost's parameters for this work."""
    return {
        "iterations": job.rounds,
        "learning_rate": job.rate,
        "depth": 1,
        "border_count": MAX_BINS - 1,
        "boosting_type": "Plain",
        "bootstrap_type": "No",
        "random_strength": 0,
        "leaf_estimation_iterations": 1,
        "thread_count": job.threads,
        "logging_level": "Silent",
        "allow_writing_files": False,
    }


def _catboost(job: Job) -> Probabilities:
    model = catboost.CatBoostClassifier(**catboost_settings(job)).fit(job.X, job.y)
    return lambda X: model.predict_proba(X, thread_count=job.threads)


def _catboost_bin(X: np.ndarray, y: np.ndarray, threads: int) -> Any:
    pool = catboost.Pool(X, y, thread_count=threads)
    pool.quantize(border_count=MAX_BINS - 1)
    return pool


def _sklearn_histograms(job: Job) -> Probabilities:
    model = HistGradientBoostingClassifier(
        max_iter=job.rounds,
        learning_rate=job.rate,
        max_leaf_nodes=2,
        max_bins=MAX_BINS,
        early_stopping=False,
    )
    with openmp(job.threads):
        model.fit(job.X, job.y)

    def probabilities(X: np.ndarray) -> np.ndarray:
        with openmp(job.threads):
            return model.predict_proba(X)

    return probabilities


def _sklearn_bin(X: np.ndarray, y: np.ndarray, threads: int) -> Any:
    return _BinMapper(n_bins=MAX_BINS + 1, random_state=0, n_threads=threads).fit_transform(X)


def _sklearn_adaboost(job: Job) -> Probabilities:
    """SAMME over exact stumps: the textbook's algorithm; it has no threads."""
    model = SklearnAdaBoost(
        DecisionTreeClassifier(max_depth=1),
        n_estimators=job.rounds,
        learning_rate=job.rate,
        random_state=0,
    )
    return model.fit(job.X, job.y).predict_proba


def _ebm(job: Job) -> Probabilities:
    """Main effects, one bag, no smoothing: a pass boosts each feature once, hence rounds / p."""
    model = ExplainableBoostingClassifier(
        interactions=0,
        outer_bags=1,
        validation_size=0,
        max_rounds=ceil(job.rounds / job.X.shape[1]),
        greedy_ratio=0.0,
        smoothing_rounds=0,
        max_leaves=2,
        max_bins=MAX_BINS,
        learning_rate=job.rate,
        n_jobs=job.threads,
    )
    return model.fit(job.X, job.y).predict_proba


CONTESTANTS = {
    c.name: c
    for c in (
        Contestant(OURS, _ours, _ours_bin),
        Contestant(OURS_DISCRETE, partial(_ours, variant="discrete")),
        Contestant(OURS_GENTLE, partial(_ours, variant="gentle")),
        Contestant(OURS_SINGLE, partial(_ours, variant="gentle", multiclass="single")),
        Contestant(OURS_LOGISTIC, _ours_logistic),
        Contestant(OURS_SQUARED, _ours_squared),
        Contestant("LightGBM", _lightgbm, _lightgbm_bin),
        Contestant("XGBoost", _xgboost, _xgboost_bin),
        Contestant("CatBoost", _catboost, _catboost_bin),
        Contestant("sklearn HistGB", _sklearn_histograms, _sklearn_bin),
        Contestant("sklearn AdaBoost", _sklearn_adaboost),
        Contestant("EBM", _ebm),
    )
}
FAST = (OURS, "LightGBM", "XGBoost", "CatBoost", "sklearn HistGB")
EVERYBODY = (*FAST, "sklearn AdaBoost", "EBM")


def warm_up(name: str, X: np.ndarray, y: np.ndarray, threads: int) -> None:
    """A small fit and prediction: imports, caches and compiled kernels are in place afterwards."""
    few = Job(X[:WARM_ROWS], y[:WARM_ROWS], 3, 0.3, threads)
    CONTESTANTS[name].fit(few)(few.X[:1])
