"""Losses of a real target, functions of y and F; r = y - F is the residual.

What a loss estimates is its minimiser over constants.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import LARGEST_EXPONENT, bounded
from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import NUMPY, locate
from ensemble_gpu.data.parameters import check_real
from ensemble_gpu.kernels.host.scalar import log
from ensemble_gpu.losses.base import REGRESSION, Loss, scaled
from ensemble_gpu.losses.roots import increasing_root

ONE_QUANTILE = "quantile must be a number in (0, 1)"


@dataclass(frozen=True, kw_only=True)
class Squared(Loss):
    """l = (F - y)^2, y real, link identity. Derivatives 2 (F - y) and 2; estimates the mean."""

    name = "squared"
    task = REGRESSION
    link_name = "identity"
    curvature = 2.0
    times_half = 2.0
    kernel = "squared"

    def value(self, y: Any, F: Any) -> Any:
        r = F - y
        return r * r

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        return 2.0 * (F - y), locate(F).xp.full_like(F, 2.0)

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        return np.array([weighted_mean(y.astype(np.float64), weights, NUMPY)])


@dataclass(frozen=True, kw_only=True)
class Absolute(Loss):
    """l = |F - y|, y real, link identity.

    Subgradient sign(F - y), 0 at y; no second derivative. Estimates the median.
    """

    name = "absolute"
    task = REGRESSION
    link_name = "identity"
    has_hessian = False
    straight = has_leaf_step = True
    kernel = "either side"
    slopes = -1.0, 1.0
    level = 0.5

    def value(self, y: Any, F: Any) -> Any:
        return locate(F).xp.abs(F - y)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        return either_side(y, F, *self.slopes), locate(F).xp.ones_like(F)

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        return np.array([weighted_quantile(y, weights, 0.5)])


@dataclass(frozen=True)
class Huber(Loss):
    """l = 1/2 r^2 where |r| <= delta, delta (|r| - delta/2) beyond; y real, link identity.

    Derivatives F - y cut to [-delta, delta], and 1[|r| <= delta]: the second is 0 for outliers,
    so a Newton step must not divide by it alone. Estimates a robust mean (Huber 1964): near the
    median for small delta, the mean for large.
    """

    delta: float = 1.0

    name = "huber"
    task = REGRESSION
    link_name = "identity"
    curvature = 1.0
    has_leaf_step = True
    kernel = "huber"

    def __post_init__(self) -> None:
        check_real("delta", self.delta, 0.0)

    @property
    def parameter(self) -> float:  # type: ignore[override]
        return self.delta

    def value(self, y: Any, F: Any) -> Any:
        """With s = min(|r|, delta): s (|r| - s/2)."""
        where = locate(F)
        r = where.xp.abs(F - y)
        s = where.xp.minimum(r, where.full(self.delta, F.dtype))
        return s * (r - 0.5 * s)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        where = locate(F)
        xp, d = where.xp, where.full(self.delta, F.dtype)
        r = F - y
        return xp.minimum(xp.maximum(r, -d), d), xp.astype(xp.abs(r) <= d, F.dtype)

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """The root of the mean gradient, which increases; it lies between the targets."""
        w = scaled(weights, y)

        def slope(c: float) -> float:
            return float(np.sum(w * np.clip(c - y, -self.delta, self.delta)))

        heavy = y[w > 0.0]
        return np.array([increasing_root(slope, float(heavy.min()), float(heavy.max()))])


@dataclass(frozen=True)
class Quantile(Loss):
    """l = max(tau r, (tau - 1) r), r = y - F, tau = quantile in (0, 1); y real, link identity.

    Subgradient -tau below y, 1 - tau above, 0 at y; no second derivative. Estimates the
    tau-quantile (Koenker & Bassett 1978).
    """

    quantile: float = 0.5

    name = "quantile"
    task = REGRESSION
    link_name = "identity"
    has_hessian = False
    straight = has_leaf_step = True
    kernel = "either side"

    def __post_init__(self) -> None:
        check_quantile(self.quantile, self.quantile)

    @property
    def slopes(self) -> tuple[float, float]:
        """Below y and above it."""
        return -float(self.quantile), 1.0 - float(self.quantile)

    @property
    def level(self) -> float:
        return float(self.quantile)

    def value(self, y: Any, F: Any) -> Any:
        r = y - F
        return locate(F).xp.maximum(self.quantile * r, (self.quantile - 1.0) * r)

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        return either_side(y, F, *self.slopes), locate(F).xp.ones_like(F)

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        return np.array([weighted_quantile(y, weights, self.quantile)])


@dataclass(frozen=True, kw_only=True)
class Poisson(Loss):
    """l = e^F - y F, y >= 0 with a positive sum, link log: mean = e^F.

    Minus the log-likelihood of a count without the terms of y alone (half the deviance up to
    those). Derivatives e^F - y and e^F; estimates the logarithm of the mean. The exponent is cut
    at 532 (66 in float32).
    """

    name = "poisson"
    task = REGRESSION
    link_name = "log"
    longest_step = 4.0
    kernel = "poisson"
    parameter = LARGEST_EXPONENT

    def value(self, y: Any, F: Any) -> Any:
        return self.exp(bounded(F)) - y * F

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        mean = self.exp(bounded(F))
        return mean - y, mean

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Ln of the mean; of the smallest number, -708, where all counts are zero."""
        mean = weighted_mean(y.astype(np.float64), weights, NUMPY)
        return np.array([log(max(mean, float(np.finfo(np.float64).tiny)))])

    def check_target(self, y: np.ndarray, name: str = "y") -> None:
        super().check_target(y, name)
        allowed = f"{name} must be >= 0 with a positive sum for loss 'poisson'"
        if y.min() < 0.0:
            raise ValueError(f"{allowed}; the lowest value given is {y.min():g}.")
        if name == "y" and not y.max() > 0.0:  # rows to validate on may all be 0
            raise ValueError(f"{allowed}; all values given are 0.")


def check_quantile(tau: Any, given: Any, allowed: str = ONE_QUANTILE) -> None:
    """A level of quantiles, among those given."""
    if isinstance(tau, bool) or not isinstance(tau, numbers.Real):
        raise TypeError(f"{allowed}; got {given!r}.")
    if not 0.0 < float(tau) < 1.0:
        raise ValueError(f"{allowed}; got {given!r}.")


def weighted_quantile(y: np.ndarray, weights: np.ndarray | None, tau: float) -> float:
    """The lowest y_i such that the weight of the rows y <= y_i is at least tau of all weight.

    Where a whole interval minimises the mean loss, this is its lower end.
    """
    order = np.argsort(y, kind="stable")
    below = np.cumsum(scaled(weights, y)[order])
    return float(y[order][np.searchsorted(below, tau * below[-1])])


def either_side(y: Any, F: Any, below: Any, above: Any) -> Any:
    """`below` where F is below y, `above` where it is above, 0 where they meet."""
    xp, r = locate(F).xp, F - y
    return above * xp.astype(r > 0.0, F.dtype) + below * xp.astype(r < 0.0, F.dtype)
