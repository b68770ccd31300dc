"""Metrics of predicted numbers [n]."""

from __future__ import annotations

import math
from typing import Any

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import locate


def mse(y: Any, prediction: Any, weights: Any | None) -> float:
    """Mean of (y - prediction)^2."""
    off = y - prediction
    return weighted_mean(off * off, weights, locate(prediction))


def rmse(y: Any, prediction: Any, weights: Any | None) -> float:
    """Root of the mean of (y - prediction)^2."""
    return math.sqrt(mse(y, prediction, weights))


def mae(y: Any, prediction: Any, weights: Any | None) -> float:
    """Mean of |y - prediction|."""
    where = locate(prediction)
    return weighted_mean(where.xp.abs(y - prediction), weights, where)


def mape(y: Any, prediction: Any, weights: Any | None) -> float:
    """Mean of |y - prediction| / |y|; |y| counts as 2^-52 at the least, as in scikit-learn."""
    where = locate(prediction)
    xp = where.xp
    size = xp.maximum(xp.abs(y), where.full(2.0**-52, y.dtype))
    return weighted_mean(xp.abs(y - prediction) / size, weights, where)


def r2(y: Any, prediction: Any, weights: Any | None) -> float:
    """1 - sum (y - prediction)^2 / sum (y - mean of y)^2; 1 or 0 where y is constant."""
    where = locate(prediction)
    spread = y - weighted_mean(y, weights, where)
    all_of_it = weighted_mean(spread * spread, weights, where)
    left = mse(y, prediction, weights)
    if all_of_it == 0.0:
        return 1.0 if left == 0.0 else 0.0
    return 1.0 - left / all_of_it


def poisson_deviance(y: Any, prediction: Any, weights: Any | None) -> float:
    """Mean of 2 (y ln(y / prediction) - y + prediction), for y >= 0 and predictions > 0."""
    where = locate(prediction)
    xp = where.xp
    if bool(xp.any(y < 0.0)) or bool(xp.any(prediction <= 0.0)):
        raise ValueError(
            "metric 'poisson_deviance' needs y >= 0 and predictions > 0; use loss='poisson', whose "
            "predictions are."
        )
    some = y > 0.0
    ratio = xp.where(some, y / prediction, xp.ones_like(y))
    value = 2.0 * (y * xp.log(ratio) - y + prediction)
    return weighted_mean(value, weights, where)


def quantile_loss(y: Any, prediction: Any, weights: Any | None, quantile: float) -> float:
    """Mean of max(q (y - prediction), (q - 1) (y - prediction))."""
    where = locate(prediction)
    off = y - prediction
    value = where.xp.maximum(quantile * off, (quantile - 1.0) * off)
    return weighted_mean(value, weights, where)
