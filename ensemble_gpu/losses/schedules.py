"""How a radius and a number of rounds grow with the rows so that boosting is consistent."""

from __future__ import annotations

import math

from ensemble_gpu.data.parameters import check_integer, check_real
from ensemble_gpu.losses.base import Loss
from ensemble_gpu.losses.margin import (
    Exponential,
    Hinge,
    Logistic,
    SquaredMargin,
    TruncatedSquared,
)
from ensemble_gpu.losses.multinomial import Multinomial
from ensemble_gpu.losses.named import CLASSIFICATION, REGRESSION
from ensemble_gpu.losses.regression import Absolute, Huber, Squared

# kappa ln m is consistent for the exponential loss where kappa < 1/2.
KAPPA = 0.25
# Losses whose slope is bounded; those whose slope grows as the radius does.
BOUNDED = (Logistic, Multinomial, Hinge, Absolute, Huber)
GROWING = (Squared, SquaredMargin, TruncatedSquared)
# Of m^(1 - eps) rounds.
EPS = 0.1


def consistent_radius(loss: str | Loss, m: int) -> float:
    """A radius that grows with m rows so slowly that boosting in the ball is consistent.

    It goes to infinity with radius |phi'(-radius)| sqrt(ln m / m) -> 0:

        exponential                                          ln(m) / 4
        logistic, hinge, and absolute or Huber in units of y (m / ln m)^(1/4)
        squared, truncated squared                           (m / ln m)^(1/8)

    Parameters
    ----------
    loss : str or Loss
    m : int >= 3, rows
    """
    check_integer("m", m, 3)
    given = loss
    if isinstance(loss, str):
        named = {**REGRESSION, **CLASSIFICATION}
        loss = named[loss]() if loss in named else loss
    if isinstance(loss, Exponential):
        return KAPPA * math.log(m)
    if isinstance(loss, BOUNDED):
        return (m / math.log(m)) ** 0.25
    if isinstance(loss, GROWING):
        return (m / math.log(m)) ** 0.125
    raise ValueError(
        "loss must be one of 'exponential', 'logistic', 'hinge', 'squared', 'truncated_squared', "
        f"'absolute', 'huber', for which a consistent radius is known; got {given!r}."
    )


def consistent_rounds(m: int, eps: float = EPS) -> int:
    """floor(m^(1 - eps)): AdaBoost that stops after so many rounds is consistent.

    For every eps in (0, 1), with learners of finite VC dimension whose sums come close to every
    function (Bartlett & Traskin 2007).

    Parameters
    ----------
    m : int >= 1, rows
    eps : in (0, 1)
    """
    check_integer("m", m, 1)
    check_real("eps", eps, 0.0, 1.0)
    if eps == 1.0:
        raise ValueError(f"eps must be in (0, 1); got {eps!r}.")
    return max(1, math.floor(m ** (1.0 - eps) * (1.0 + 1e-12)))
