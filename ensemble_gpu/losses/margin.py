"""Losses of two classes: functions phi of the margin v = y F, y in {-1, +1}.

With eta = P(y = +1 | x) the mean loss of an output a is C_eta(a) = eta phi(a) + (1 - eta) phi(-a);
`minimiser(eta)` is its argmin a*, H(eta) its minimum. A convex phi is classification-calibrated
where phi'(0) < 0, and then psi(t) = phi(0) - H((1 + t)/2) bounds the excess risk of sign F:
psi(R(sign F) - R*) <= R_phi(F) - R_phi* (Bartlett, Jordan & McAuliffe 2006; MATHS 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import LARGEST_EXPONENT, bounded, softplus
from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.losses.base import CLASSIFICATION, Loss

EPSILON = 2.0**-52


def log_odds(eta: float) -> float:
    """Ln(eta / (1 - eta)), eta cut to [2^-52, 1 - 2^-52], so at most 36."""
    eta = min(max(eta, EPSILON), 1.0 - EPSILON)
    return log(eta / (1.0 - eta))


@dataclass(frozen=True, kw_only=True)
class Margin(Loss):
    """phi(y F), y in {-1, +1}."""

    task = CLASSIFICATION
    calibrated = True

    def minimiser(self, eta: float) -> float:
        """The a with the least eta phi(a) + (1 - eta) phi(-a); bounded for eta in {0, 1}."""
        raise NotImplementedError

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        share = weighted_mean((y > 0.0).astype(np.float64), weights, NUMPY)
        return np.array([self.minimiser(share)])

    def check_target(self, y: np.ndarray, name: str = "y") -> None:
        others = np.unique(y[(y != 1) & (y != -1)])
        if others.size:
            raise ValueError(
                f"{name} must hold -1 and +1 for loss {self.name!r}; got {others[:5].tolist()!r}."
            )


@dataclass(frozen=True, kw_only=True)
class Exponential(Margin):
    """phi(v) = e^-v, AdaBoost's loss.

    Derivatives -y e^-v and e^-v; a* = 1/2 ln(eta / (1 - eta)), link p = 1 / (1 + e^-2F).
    Calibrated; psi(t) = 1 - sqrt(1 - t^2). The exponent is cut at 532 (66 in float32): margins
    below -532 lose and weigh as much as -532.
    """

    name = "exponential"
    link_name = "margins"
    longest_step = 4.0
    kernel = "exponential"
    parameter = LARGEST_EXPONENT

    def value(self, y: Any, F: Any) -> Any:
        return self.exp(bounded(-y * F))

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        against = -y
        weight = self.exp(bounded(against * F))
        return against * weight, weight

    def minimiser(self, eta: float) -> float:
        return 0.5 * log_odds(eta)


@dataclass(frozen=True, kw_only=True)
class Logistic(Margin):
    """phi(v) = ln(1 + e^-v), minus the log-likelihood of p = 1 / (1 + e^-F), which is the link.

    Derivatives -y q and q (1 - q), q = 1 / (1 + e^v) the probability of the other class;
    a* = ln(eta / (1 - eta)). Calibrated; psi(t) = 1/2 ((1 + t) ln(1 + t) + (1 - t) ln(1 - t)).
    MATHS 4 writes log2(1 + e^-v): this value divided by ln 2. K classes: `Multinomial`.
    """

    name = "logistic"
    link_name = "logistic"
    curvature = 0.25
    longest_step = 8.0
    kernel = "logistic"
    parameter = LARGEST_EXPONENT

    def value(self, y: Any, F: Any) -> Any:
        return softplus(-y * F, self.exp)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        """With E = e^v: y / (-1 - E), and E / (1 + E)^2 as E g g. Exact to some last digits at
        every margin, in one exponential, one division and five more passes over the rows.
        """
        E = self.exp(bounded(y * F))
        g = y / (-1.0 - E)
        return g, E * g * g

    def minimiser(self, eta: float) -> float:
        return log_odds(eta)


@dataclass(frozen=True, kw_only=True)
class LogitBoost(Margin):
    """phi(v) = ln(1 + e^-2v), with the bounded working response of LogitBoost.

    The link is p = 1 / (1 + e^-2F), a* = 1/2 ln(eta / (1 - eta)). Calibrated, psi as for the
    logistic loss, of which this is another scale. With p_m = 1 / (1 + e^-2v) the probability of the
    row's own class, Newton's working response is z = y / p_m with weight p_m (1 - p_m); it is
    cut to |z| <= 4 (Friedman, Hastie & Tibshirani 2000). In terms of F:

        g = -2 y (1 - p_m) min(1, 4 p_m),   h = 4 p_m (1 - p_m),

    so that -sum g / sum h is half the weighted mean of the cut z. The gradient is the true one
    where p_m >= 1/4; the Hessian is true everywhere. K classes: `Multinomial`.
    """

    name = "logitboost"
    link_name = "margins"
    curvature = 1.0
    longest_step = 4.0

    def value(self, y: Any, F: Any) -> Any:
        return softplus(-2.0 * y * F, self.exp)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        where = locate(F)
        y2 = 2.0 * y
        E = self.exp(bounded(y2 * F))
        q = 1.0 / (1.0 + E)
        p4 = 4.0 * (E * q)
        return -y2 * q * where.xp.minimum(p4, where.full(1.0, F.dtype)), p4 * q

    def minimiser(self, eta: float) -> float:
        return 0.5 * log_odds(eta)


@dataclass(frozen=True, kw_only=True)
class SquaredMargin(Margin):
    """phi(v) = (1 - v)^2 = (F - y)^2.

    Derivatives 2 (F - y) and 2; a* = 2 eta - 1, link p = (1 + F)/2. Calibrated; psi(t) = t^2.
    """

    name = "squared"
    link_name = "linear"
    curvature = 2.0
    times_half = 2.0
    kernel = "squared"

    def value(self, y: Any, F: Any) -> Any:
        r = F - y
        return r * r

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        return 2.0 * (F - y), locate(F).xp.full_like(F, 2.0)

    def minimiser(self, eta: float) -> float:
        return 2.0 * eta - 1.0


@dataclass(frozen=True, kw_only=True)
class TruncatedSquared(Margin):
    """phi(v) = (1 - v)_+^2: the squared loss, but zero for margins beyond 1.

    Derivatives -2 y (1 - v)_+ and 2 1[v < 1]; a* = 2 eta - 1, link p = (1 + F)/2.
    Calibrated; psi(t) = t^2.
    """

    name = "truncated_squared"
    link_name = "linear"
    curvature = 2.0
    times_half = 2.0

    def value(self, y: Any, F: Any) -> Any:
        short = shortfall(y, F)
        return short * short

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        short = shortfall(y, F)
        return -2.0 * y * short, 2.0 * locate(F).xp.astype(short > 0.0, F.dtype)

    def minimiser(self, eta: float) -> float:
        return 2.0 * eta - 1.0


@dataclass(frozen=True, kw_only=True)
class Hinge(Margin):
    """phi(v) = (1 - v)_+.

    Subgradient -y where v < 1, else 0; no second derivative. a* = sign(2 eta - 1), link
    p = (1 + F)/2, which is a score rather than a probability: a* depends on the sign alone.
    Calibrated; psi(t) = |t|.
    """

    name = "hinge"
    link_name = "linear"
    has_hessian = False
    straight = True

    def value(self, y: Any, F: Any) -> Any:
        return shortfall(y, F)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        where = locate(F)
        g = where.xp.where(y * F < 1.0, -y, where.full(0.0, F.dtype))
        return g, where.xp.ones_like(F)

    def minimiser(self, eta: float) -> float:
        return float(np.sign(2.0 * eta - 1.0))


def shortfall(y: Any, F: Any) -> Any:
    """(1 - y F)_+."""
    where = locate(F)
    return where.xp.maximum(1.0 - y * F, where.full(0.0, F.dtype))
