"""What predicted numbers are worth: y and predictions [n]."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import check_same_place
from ensemble_gpu.data.validation import check_length, check_weights
from ensemble_gpu.metrics import regression as formulas
from ensemble_gpu.metrics.reading import read_numbers


def _read(y: Any, prediction: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    prediction, home, where = read_numbers(prediction, "prediction")
    check_same_place(home, "prediction", y=y, sample_weight=sample_weight)
    y, _, at = read_numbers(y, "y")
    if at.xp is not where.xp:  # a list beside an array of a device
        y = where.put(y)
    for array, name in ((prediction, "prediction"), (y, "y")):
        if array.ndim != 1 or array.shape[0] == 0:
            raise ValueError(f"{name} must have shape (n,), n > 0; got shape {tuple(array.shape)}.")
    check_length("y", y.shape[0], "prediction", prediction.shape[0])
    weights = check_weights(to_workplace(sample_weight), y.shape[0], where, "sample_weight")
    return y, prediction, weights


def mse(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of (y - prediction)^2, by weight."""
    return formulas.mse(*_read(y, prediction, sample_weight))


def rmse(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Root of the mean of (y - prediction)^2."""
    return formulas.rmse(*_read(y, prediction, sample_weight))


def mae(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of |y - prediction|."""
    return formulas.mae(*_read(y, prediction, sample_weight))


def r2(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """1 - sum (y - prediction)^2 / sum (y - mean of y)^2; 1 or 0 where y is constant."""
    return formulas.r2(*_read(y, prediction, sample_weight))


def quantile_loss(
    y: Any, prediction: Any, quantile: float = 0.5, *, sample_weight: Any = None
) -> float:
    """Mean of max(q (y - prediction), (q - 1) (y - prediction)): least at the q-th quantile."""
    if not 0.0 <= quantile <= 1.0:
        raise ValueError(f"quantile must be between 0 and 1; got {quantile!r}.")
    y, prediction, weights = _read(y, prediction, sample_weight)
    return formulas.quantile_loss(y, prediction, weights, float(quantile))


def poisson_deviance(y: Any, prediction: Any, *, sample_weight: Any = None) -> float:
    """Mean of 2 (y ln(y / prediction) - y + prediction), for y >= 0 and predictions > 0."""
    return formulas.poisson_deviance(*_read(y, prediction, sample_weight))
