"""Every loss on 28 features: ours beside the peers that have it, with each one's held-out loss.

A contestant's fit gives a function from rows to predictions (probabilities for exponential and
multinomial, margins for hinge). Where a peer has no such loss, its nearest stands in, and the
title says so. Huber has delta = 1 (XGBoost: pseudo-Huber with slope 1), quantile is the 0.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import catboost
import lightgbm
import numpy as np
import xgboost
from sklearn.ensemble import HistGradientBoostingRegressor

from bench.data import Shape, Split, generated, regression
from bench.measure import exponential_loss, log_loss
from bench.peers import (
    CONTESTANTS,
    MAX_BINS,
    OURS,
    OURS_LOGISTIC,
    Job,
    catboost_settings,
    lightgbm_settings,
    openmp,
    xgboost_settings,
)
from ensemble_gpu import BoostingClassifier, BoostingRegressor

QUANTILE = 0.9
Predict = Callable[[np.ndarray], np.ndarray]
Fit = Callable[[Job], Predict]


@dataclass(frozen=True)
class LossRow:
    """Who fits a loss, on what, and the mean loss of predictions for y."""

    title: str
    data: Callable[..., Split]  # (rows, seed)
    value: Callable[[np.ndarray, np.ndarray], float]
    fits: dict[str, Fit]


def _ours(estimator: Any, **settings: Any) -> Fit:
    def fit(job: Job) -> Predict:
        model = estimator(
            n_estimators=job.rounds, learning_rate=job.rate, max_bins=MAX_BINS,
            n_jobs=job.threads, max_depth=1, early_stopping=False, **settings,
        ).fit(job.X, job.y)  # fmt: skip
        if estimator is BoostingRegressor:
            return model.predict
        return model.decision_function if settings["loss"] == "hinge" else model.predict_proba

    return fit


def lightgbm_fit(objective: str, **more: Any) -> Fit:
    """LightGBM with an objective by name."""

    def fit(job: Job) -> Predict:
        settings = {**lightgbm_settings(job, objective), **more}
        booster = lightgbm.train(settings, lightgbm.Dataset(job.X, job.y), job.rounds)
        return lambda X: np.asarray(booster.predict(X, num_threads=job.threads))

    return fit


def _xgboost(objective: str, *, predict_type: str = "value", **more: Any) -> Fit:
    def fit(job: Job) -> Predict:
        settings = {**xgboost_settings(job, objective), **more}
        matrix = xgboost.QuantileDMatrix(job.X, job.y, max_bin=MAX_BINS, nthread=job.threads)
        booster = xgboost.train(settings, matrix, job.rounds)
        return partial(booster.inplace_predict, predict_type=predict_type)

    return fit


def _catboost(loss: str) -> Fit:
    def fit(job: Job) -> Predict:
        model = catboost.CatBoostRegressor(**catboost_settings(job), loss_function=loss)
        model.fit(job.X, job.y)
        kind = "Exponent" if loss == "Poisson" else "RawFormulaVal"
        return partial(model.predict, prediction_type=kind, thread_count=job.threads)

    return fit


def _sklearn(loss: str, **more: Any) -> Fit:
    def fit(job: Job) -> Predict:
        model = HistGradientBoostingRegressor(
            loss=loss, max_iter=job.rounds, learning_rate=job.rate, max_leaf_nodes=2,
            max_bins=MAX_BINS, early_stopping=False, **more,
        )  # fmt: skip
        with openmp(job.threads):
            return model.fit(job.X, job.y).predict

    return fit


def squared_error(y: np.ndarray, prediction: np.ndarray) -> float:
    """Mean squared error."""
    return float(np.mean(np.square(prediction - y.astype(np.float64))))


def _absolute(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.mean(np.abs(prediction - y)))


def _huber(y: np.ndarray, prediction: np.ndarray) -> float:
    r = np.abs(prediction - y)
    s = np.minimum(r, 1.0)
    return float(np.mean(s * (r - 0.5 * s)))


def _quantile(y: np.ndarray, prediction: np.ndarray) -> float:
    r = y - prediction
    return float(np.mean(np.maximum(QUANTILE * r, (QUANTILE - 1.0) * r)))


def _poisson(y: np.ndarray, prediction: np.ndarray) -> float:
    return float(np.mean(prediction - y * np.log(np.maximum(prediction, 1e-15))))


def _hinge(y: np.ndarray, margin: np.ndarray) -> float:
    return float(np.mean(np.maximum(0.0, 1.0 - (2.0 * y - 1.0) * margin)))


def _counts(rows: int, seed: int = 0) -> Split:
    return regression(Shape(rows, 28), seed, counts=True)


def _real(rows: int, seed: int = 0) -> Split:
    return regression(Shape(rows, 28), seed)


def _classes(rows: int, seed: int = 0, *, classes: int = 2) -> Split:
    return generated(Shape(rows, 28, classes), seed)


def _logistic_peers(*names: str) -> dict[str, Fit]:
    return {name: CONTESTANTS[name].fit for name in names}


LOSSES: dict[str, LossRow] = {
    "absolute": LossRow(
        "absolute loss", _real, _absolute,
        {
            OURS: _ours(BoostingRegressor, loss="absolute"),
            "LightGBM": lightgbm_fit("regression_l1"),
            "XGBoost": _xgboost("reg:absoluteerror"),
            "CatBoost": _catboost("MAE"),
            "sklearn HistGB": _sklearn("absolute_error"),
        },
    ),
    "huber": LossRow(
        "Huber loss (XGBoost: pseudo-Huber)", _real, _huber,
        {
            OURS: _ours(BoostingRegressor, loss="huber"),
            "LightGBM": lightgbm_fit("huber", alpha=1.0),
            "XGBoost": _xgboost("reg:pseudohubererror", huber_slope=1.0),
            "CatBoost": _catboost("Huber:delta=1.0"),
        },
    ),
    "quantile": LossRow(
        f"quantile loss ({QUANTILE})", _real, _quantile,
        {
            OURS: _ours(BoostingRegressor, loss="quantile", quantile=QUANTILE),
            "LightGBM": lightgbm_fit("quantile", alpha=QUANTILE),
            "XGBoost": _xgboost("reg:quantileerror", quantile_alpha=QUANTILE),
            "CatBoost": _catboost(f"Quantile:alpha={QUANTILE}"),
            "sklearn HistGB": _sklearn("quantile", quantile=QUANTILE),
        },
    ),
    "poisson": LossRow(
        "Poisson loss", _counts, _poisson,
        {
            OURS: _ours(BoostingRegressor, loss="poisson", step="newton"),
            "LightGBM": lightgbm_fit("poisson"),
            "XGBoost": _xgboost("count:poisson"),
            "CatBoost": _catboost("Poisson"),
            "sklearn HistGB": _sklearn("poisson"),
        },
    ),
    "exponential": LossRow(
        "exponential loss (peers have none: their logistic)", _classes, exponential_loss,
        {
            OURS: _ours(BoostingClassifier, loss="exponential", step="newton"),
            **_logistic_peers("LightGBM", "XGBoost"),
        },
    ),
    "hinge": LossRow(
        "hinge loss", _classes, _hinge,
        {
            OURS: _ours(BoostingClassifier, loss="hinge", stump="discrete", step="constant"),
            "XGBoost": _xgboost("binary:hinge", predict_type="margin"),
        },
    ),
    "multinomial": LossRow(
        "multinomial loss, 10 classes", partial(_classes, classes=10), log_loss,
        {
            OURS: CONTESTANTS[OURS_LOGISTIC].fit,
            **_logistic_peers("LightGBM", "XGBoost", "CatBoost"),
        },
    ),
}  # fmt: skip
