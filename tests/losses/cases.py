"""Losses with targets and outputs to try them on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.losses import (
    Absolute,
    CustomLoss,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    LogitBoost,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredMargin,
    TruncatedSquared,
)

MARGINS: list[Loss] = [
    Exponential(), Logistic(), LogitBoost(), SquaredMargin(), TruncatedSquared(), Hinge(),
]  # fmt: skip
REGRESSIONS: list[Loss] = [
    Squared(), Absolute(), Huber(), Huber(2.5), Quantile(), Quantile(0.8), Poisson(),
]  # fmt: skip
ALL: list[Loss] = [*MARGINS, Multinomial(), *REGRESSIONS]


def fourth_power(y: Any, F: Any) -> Any:
    return (F - y) ** 4.0


def fourth_power_gradient(y: Any, F: Any) -> Any:
    return 4.0 * (F - y) ** 3.0


def fourth_power_hessian(y: Any, F: Any) -> Any:
    return 12.0 * (F - y) ** 2.0


CUSTOM = CustomLoss(
    fourth_power, fourth_power_gradient, fourth_power_hessian, name="fourth power", convex=True
)


@dataclass(frozen=True)
class Rows:
    """Targets and outputs on the host."""

    y: np.ndarray
    F: np.ndarray


def targets(loss: Loss) -> np.ndarray:
    if isinstance(loss, Multinomial):
        return np.arange(3)
    if loss.task == "classification":
        return np.array([-1.0, 1.0])
    return np.array([0.0, 0.5, 1.0, 3.0]) if loss.name == "poisson" else np.arange(-2.0, 2.5, 0.5)


def rows_of(loss: Loss) -> Rows:
    """Every target with outputs from -4 to 4, all at least 0.1 away from a kink."""
    grid = np.arange(-16, 16) * 0.25 + 0.1
    y, F = (a.ravel() for a in np.meshgrid(targets(loss), grid))
    if isinstance(loss, Multinomial):
        F = np.stack([F, np.roll(F, 7), 0.5 * np.roll(F, 31)], axis=1)
    return Rows(y, F)


def far_rows(loss: Loss, dtype: str) -> Rows:
    """Every target with outputs of -1000, 0 and 1000."""
    y, F = (a.ravel() for a in np.meshgrid(targets(loss), [-1000.0, 0.0, 1000.0]))
    if isinstance(loss, Multinomial):
        return Rows(y, np.stack([F, -F, 0.0 * F], axis=1).astype(dtype))
    return Rows(y.astype(dtype), F.astype(dtype))


def some_targets(loss: Loss, n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Random targets and weights, some of them zero."""
    rng = np.random.default_rng(7)
    weights = rng.gamma(1.0, size=n)
    weights[::7] = 0.0
    if isinstance(loss, Multinomial):
        return rng.choice(3, size=n, p=[0.6, 0.3, 0.1]), weights
    if loss.task == "classification":
        return np.where(rng.random(n) < 0.7, 1.0, -1.0), weights
    if loss.name == "poisson":
        return rng.poisson(2.5, size=n).astype(np.float64), weights
    return rng.standard_t(2.0, size=n) + 4.0, weights
