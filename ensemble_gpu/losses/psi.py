"""From excess risk to excess error: the psi-transform of a loss of the margin (MATHS 8).

    psi_tilde(t) = H-((1 + t)/2) - H((1 + t)/2),    psi = its greatest convex minorant on [-1, 1],

and for every f and every distribution psi(E(f) - E*) <= R(f) - R*, with E the error of sign f and R
the mean loss (Bartlett, Jordan & McAuliffe 2006). A convex loss whose slope at 0 is negative has
psi = psi_tilde = phi(0) - H((1 + t)/2); of others it is the lower hull of psi_tilde on a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.data.parameters import check_not_negative, check_real
from ensemble_gpu.losses.base import Loss
from ensemble_gpu.losses.risks import (
    Phi,
    answer,
    least_of_all,
    least_on_wrong_side,
    phi_of,
    within,
)

# Where psi_tilde is looked at for its hull, and for a value above zero.
HULL = np.linspace(0.0, 1.0, 1001)
SEEN = np.linspace(0.01, 1.0, 100)
# A gap between H- and H that is more than rounding.
ABOVE = 1e-10
HALVINGS = 60


def psi_tilde(loss: str | Loss, t: Any) -> Any:
    """H-((1 + t)/2) - H((1 + t)/2): what an error costs at the least where |2 eta - 1| = |t|.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    t : in [-1, 1]
    """
    host, phi = within(t, "t", -1.0, 1.0), phi_of(loss)
    return answer(t, _gap(phi, np.abs(host).ravel()).reshape(host.shape))


def psi(loss: str | Loss, t: Any) -> Any:
    """The greatest convex minorant of psi_tilde on [-1, 1].

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    t : in [-1, 1]
    """
    host = within(t, "t", -1.0, 1.0)
    flat = np.abs(host).ravel()
    return answer(t, _minorant(phi_of(loss), flat)(flat).reshape(host.shape))


def is_calibrated(loss: str | Loss) -> bool:
    """Whether H- > H for every eta but 1/2: then R(f) -> R* implies E(f) -> E*.

    Looked at for |2 eta - 1| = 0.01, 0.02, ... 1. A convex loss is calibrated where it has a
    derivative below zero at 0.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    """
    return bool((_gap(phi_of(loss), SEEN) > ABOVE).all())


def excess_error_bound(
    loss: str | Loss, excess_risk: Any, *, noise: tuple[float, float] | None = None
) -> Any:
    """The largest excess error E(f) - E* that an excess risk R(f) - R* allows.

    That is the largest t in [0, 1] with psi(t) <= R(f) - R*. Under the noise condition
    P(0 < |eta - 1/2| <= e) <= c e^beta for all e > 0 (Tsybakov 2004) P(wrong) <= C t^alpha, where

        alpha = beta / (beta + 1),   C = (2 c)^(1 / (beta + 1)),

    and t also fulfils t <= 2 c and C t^alpha psi(t^(1 - alpha) / (2 C)) <= R(f) - R*.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    excess_risk : numbers >= 0
    noise : (c, beta) of the noise condition, c > 0 and beta >= 0, or None

    Returns
    -------
    array of the library of `excess_risk`, a float for a number; 1 where nothing follows
    """
    host = within(excess_risk, "excess_risk", 0.0, np.inf)
    flat, minorant = host.ravel(), _minorant(phi_of(loss), HULL)
    bound = _largest(minorant, flat, 1.0)
    if noise is not None:
        bound = np.minimum(bound, _under_noise(minorant, flat, *_checked(noise)))
    return answer(excess_risk, bound.reshape(host.shape))


def _checked(noise: Any) -> tuple[float, float]:
    if not isinstance(noise, tuple | list) or len(noise) != 2:
        raise ValueError(f"noise must be a pair (c, beta) or None; got {noise!r}.")
    c, beta = noise
    check_real("c of noise", c, 0.0)
    check_not_negative("beta of noise", beta)
    return float(c), float(beta)


def _under_noise(
    minorant: Callable[[np.ndarray], np.ndarray], excess: np.ndarray, c: float, beta: float
) -> np.ndarray:
    alpha, C = beta / (beta + 1.0), (2.0 * c) ** (1.0 / (beta + 1.0))

    def risk(t: np.ndarray) -> np.ndarray:
        return C * t**alpha * minorant(np.minimum(t ** (1.0 - alpha) / (2.0 * C), 1.0))

    return _largest(risk, excess, min(1.0, 2.0 * c))


def _largest(
    function: Callable[[np.ndarray], np.ndarray], values: np.ndarray, end: float
) -> np.ndarray:
    """The largest t in [0, end] where an increasing function is at most the value."""
    low, high = np.zeros_like(values), np.full_like(values, end)
    reached = function(high) <= values
    for _ in range(HALVINGS):
        middle = 0.5 * low + 0.5 * high
        inside = function(middle) <= values
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return np.where(reached, end, low)


def _gap(phi: Phi, t: np.ndarray) -> np.ndarray:
    """psi_tilde of t >= 0; never below zero."""
    eta = (1.0 + t) / 2.0
    wrong = phi(np.zeros(1)) if _convex(phi) else least_on_wrong_side(phi, eta).risk
    gap = wrong - least_of_all(phi, eta).risk
    return np.where(t == 0.0, 0.0, np.maximum(gap, 0.0))


def _convex(phi: Phi) -> bool:
    """Whether psi_tilde is known to be convex: phi is, and falls at 0."""
    at_zero = phi.slope(np.array([0.0]))[0]
    return phi.loss.convex and bool(at_zero < 0.0)


def _minorant(phi: Phi, t: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """psi on [0, 1]; a hull has the values t among its points."""
    if _convex(phi):
        return lambda at: _gap(phi, at)
    x, y = _hull(phi, t)
    return lambda at: np.interp(at, x, y)


def _hull(phi: Phi, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the lower hull of psi_tilde on [0, 1]; it is even, and 0 at 0."""
    x = np.union1d(HULL, t)
    keep = lower_hull(x, y := _gap(phi, x))
    return x[keep], y[keep]


def lower_hull(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Positions of the corners of the greatest convex function below points of ascending x.

    The monotone chain: a corner goes where it is not below the line of its neighbours.
    """
    corners: list[int] = []
    for i in range(len(x)):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners)


@dataclass(frozen=True)
class WorstCase:
    """A distribution on two points for which psi(E(f) - E*) = R(f) - R*, and the f.

    Attributes
    ----------
    probability : P(x) of the two points
    eta : P(y = +1 | x)
    output : f(x), a wrong decision (0 counts as wrong)
    excess_error, excess_risk : E(f) - E* and R(f) - R*
    """

    probability: np.ndarray
    eta: np.ndarray
    output: np.ndarray
    excess_error: float
    excess_risk: float


def worst_case(loss: str | Loss, t: float) -> WorstCase:
    """A distribution that shows that no function above psi bounds the excess risk.

    The hull at t is g psi_tilde(t_1) + (1 - g) psi_tilde(t_2) with t = g t_1 + (1 - g) t_2: two
    points with P = g, 1 - g and eta = (1 + t_i)/2, decided wrong at the least risk.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    t : the excess error, in [0, 1]
    """
    theta, phi = float(within(t, "t", 0.0, 1.0)), phi_of(loss)
    x = np.array([theta]) if _convex(phi) else _hull(phi, np.array([theta]))[0]
    right = int(np.searchsorted(x, theta))
    ends = x[[max(right - 1, 0) if x[right] > theta else right, right]]
    share = 1.0 if ends[1] == ends[0] else (ends[1] - theta) / (ends[1] - ends[0])
    probability, eta = np.array([share, 1.0 - share]), (1.0 + ends) / 2.0
    wrong = least_on_wrong_side(phi, eta)
    excess = math.fsum(probability * (wrong.risk - least_of_all(phi, eta).risk))
    return WorstCase(probability, eta, wrong.output, math.fsum(probability * ends), excess)
