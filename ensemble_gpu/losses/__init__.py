"""Losses, by name and as objects: what boosting by gradient descent minimises.

A loss is a small frozen object of pure array-API functions: `value`, `derivatives`, a link and a
few facts. `losses/base.py` has the interface, `losses/risks.py` and `losses/psi.py` what a loss
says about the error of a classifier, the other files the formulas.
"""

from __future__ import annotations

from ensemble_gpu.losses.base import Loss
from ensemble_gpu.losses.custom import CustomLoss
from ensemble_gpu.losses.margin import (
    Exponential,
    Hinge,
    Logistic,
    LogitBoost,
    Margin,
    SquaredMargin,
    TruncatedSquared,
)
from ensemble_gpu.losses.multinomial import Multinomial
from ensemble_gpu.losses.named import (
    CLASSIFICATION,
    CLASSIFICATION_ALIASES,
    RANKING,
    RANKING_ALIASES,
    REGRESSION,
    REGRESSION_ALIASES,
    classification_loss,
    for_classes,
    ranking_loss,
    regression_loss,
)
from ensemble_gpu.losses.psi import (
    WorstCase,
    excess_error_bound,
    is_calibrated,
    psi,
    psi_tilde,
    worst_case,
)
from ensemble_gpu.losses.quantiles import Quantiles
from ensemble_gpu.losses.regression import Absolute, Huber, Poisson, Quantile, Squared
from ensemble_gpu.losses.risks import (
    conditional_risk,
    minimiser,
    optimal_risk,
    wrong_side_risk,
)
from ensemble_gpu.losses.schedules import consistent_radius, consistent_rounds

__all__ = [
    "Absolute",
    "CLASSIFICATION",
    "CLASSIFICATION_ALIASES",
    "CustomLoss",
    "Exponential",
    "Hinge",
    "Huber",
    "Logistic",
    "LogitBoost",
    "Loss",
    "Margin",
    "Multinomial",
    "Poisson",
    "Quantile",
    "Quantiles",
    "RANKING",
    "RANKING_ALIASES",
    "REGRESSION",
    "REGRESSION_ALIASES",
    "Squared",
    "SquaredMargin",
    "TruncatedSquared",
    "WorstCase",
    "classification_loss",
    "conditional_risk",
    "consistent_radius",
    "consistent_rounds",
    "excess_error_bound",
    "for_classes",
    "is_calibrated",
    "minimiser",
    "optimal_risk",
    "psi",
    "psi_tilde",
    "ranking_loss",
    "regression_loss",
    "worst_case",
    "wrong_side_risk",
]
