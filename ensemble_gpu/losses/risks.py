"""The conditional risk of a loss of the margin, and its least values (MATHS 8).

At an x with eta = P(y = +1 | x) an output a has the risk

    C_eta(a) = eta phi(a) + (1 - eta) phi(-a),

H(eta) is its infimum over all a, H-(eta) that over the a that decide wrong, a (2 eta - 1) <= 0.
Losses with a closed form of the minimiser (losses/margin.py) use it. Others are searched: a grid of
a, a bisection of the slope next to its least value, and the limits at both infinities.

Answers are of the library, device and float type of what is given; they are computed on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import is_array, locate, to_numpy
from ensemble_gpu.losses.base import Loss
from ensemble_gpu.losses.custom import CustomLoss
from ensemble_gpu.losses.margin import Margin
from ensemble_gpu.losses.named import classification_loss

# Outputs of the grid: close to each other near 0, where most losses bend. In the order of their
# size, which decides between equal risks; beyond NEAR a limit is taken before an output that
# has reached it by rounding.
NEAR = 50.0
POSITIVE = np.concatenate([np.geomspace(1e-6, NEAR, 500), [1e2, 1e3, 1e4, 1e6]])
FINITE = np.concatenate([-POSITIVE[::-1], [0.0], POSITIVE])
BY_SIZE = np.concatenate([FINITE[np.argsort(np.abs(FINITE), kind="stable")], [-np.inf, np.inf]])
OUTPUTS = BY_SIZE[np.argsort((np.abs(BY_SIZE) > NEAR) & np.isfinite(BY_SIZE), kind="stable")]
# Halvings of a bracket of two cells of the grid.
HALVINGS = 60
# Values of eta that are searched at a time.
BLOCK = 2048
# Where a loss is asked whether it falls without bound, and whether it is one of the margin.
FAR, FARTHEST = 1e8, 1e300
TRIED = np.array([-3.0, -1.0, -0.25, 0.0, 0.25, 1.0, 3.0])


@dataclass(frozen=True)
class Phi:
    """phi and its slope on the host, and the minimiser of C_eta where it has a closed form."""

    loss: Loss
    closed: Callable[[float], float] | None

    def __call__(self, v: np.ndarray) -> np.ndarray:
        v = np.asarray(v, dtype=np.float64)
        with np.errstate(all="ignore"):
            return np.asarray(self.loss.value(np.ones_like(v), v), dtype=np.float64)

    def slope(self, v: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(self.loss.gradient(np.ones_like(v), v), dtype=np.float64)

    def risk(self, eta: np.ndarray, a: np.ndarray) -> np.ndarray:
        """C_eta(a); 0 times infinity is 0."""
        with np.errstate(invalid="ignore"):
            of_plus = np.where(eta == 0.0, 0.0, eta * self(a))
            return of_plus + np.where(eta == 1.0, 0.0, (1.0 - eta) * self(-a))


@dataclass(frozen=True)
class Least:
    """Where C_eta is least (the nearest to 0 of several), and its value there."""

    output: np.ndarray
    risk: np.ndarray


def phi_of(loss: str | Loss) -> Phi:
    """The function of the margin that a loss is; an error where it is none, or has no minimum."""
    found = classification_loss(loss, 2)
    if not isinstance(found, Margin | CustomLoss):
        raise TypeError(f"loss must be a loss of the margin v = y F; got {loss!r}.")
    closed = None
    if isinstance(found, Margin) and type(found).minimiser is not Margin.minimiser:
        closed = found.minimiser
    phi = Phi(found, closed)
    with np.errstate(all="ignore"):
        mirrored = found.value(-np.ones_like(TRIED), -TRIED)
    if not np.allclose(mirrored, phi(TRIED), rtol=1e-12, atol=1e-12):
        raise ValueError(
            f"loss {found.name!r} is not a function of the margin: l(-1, -F) must equal l(+1, F)."
        )
    for sign in (1.0, -1.0):
        near, far = phi(sign * np.array([FAR, FARTHEST]))
        if far < near - 1.0:
            raise ValueError(
                f"loss {found.name!r} has no minimiser: it falls without bound, from {near:.3g} at "
                f"a margin of {sign * FAR:g} to {far:.3g} at {sign * FARTHEST:g}."
            )
    return phi


def least(phi: Phi, eta: np.ndarray, side: np.ndarray) -> Least:
    """The least C_eta over all outputs (side 0), those a <= 0 (side -1) or a >= 0 (+1)."""
    parts = [
        _searched(phi, eta[at : at + BLOCK], side[at : at + BLOCK])
        for at in range(0, len(eta), BLOCK)
    ]
    output = np.concatenate([part.output for part in parts] or [eta])
    return Least(output, np.concatenate([part.risk for part in parts] or [eta]))


def _searched(phi: Phi, eta: np.ndarray, side: np.ndarray) -> Least:
    risks = phi.risk(eta[:, None], OUTPUTS)
    other = side[:, None] * np.sign(OUTPUTS) < 0.0
    risks = np.where(np.isnan(risks) | other, np.inf, risks)
    best = np.argmin(risks, axis=1)
    output, risk = OUTPUTS[best], risks[np.arange(len(eta)), best]
    finite = np.isfinite(output)
    place = np.searchsorted(FINITE, np.where(finite, output, 0.0))
    low = FINITE[np.maximum(place - 1, 0)]
    high = FINITE[np.minimum(place + 1, len(FINITE) - 1)]
    low = np.where(side > 0, np.maximum(low, 0.0), low)
    high = np.where(side < 0, np.minimum(high, 0.0), high)
    for _ in range(HALVINGS):
        middle = 0.5 * low + 0.5 * high
        rises = eta * phi.slope(middle) - (1.0 - eta) * phi.slope(-middle) > 0.0
        low, high = np.where(rises, low, middle), np.where(rises, middle, high)
    for found in (low, high):
        at = phi.risk(eta, found)
        better = finite & (at < risk)
        output, risk = np.where(better, found, output), np.where(better, at, risk)
    return Least(output, risk)


def least_of_all(phi: Phi, eta: np.ndarray) -> Least:
    """H and a*: the closed form of the minimiser, or the search."""
    if phi.closed is None:
        return least(phi, eta, np.zeros_like(eta))
    output = np.array([phi.closed(float(one)) for one in eta])
    risk = phi.risk(eta, output)
    for certain, end in ((0.0, -np.inf), (1.0, np.inf)):  # the closed forms stop short of infinity
        at = phi.risk(eta, np.full_like(eta, end))
        further = (eta == certain) & (at < risk)
        output, risk = np.where(further, end, output), np.where(further, at, risk)
    return Least(output, risk)


def least_on_wrong_side(phi: Phi, eta: np.ndarray) -> Least:
    """H- and where it is; for convex phi with a slope below 0 at 0 that is phi(0)."""
    return least(phi, eta, -np.sign(2.0 * eta - 1.0))


def conditional_risk(loss: str | Loss, eta: Any, a: Any) -> Any:
    """C_eta(a) = eta phi(a) + (1 - eta) phi(-a), the mean loss of the output a.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    eta : probabilities of the class +1, in [0, 1]
    a : outputs, of a shape that goes with eta

    Returns
    -------
    array of the library of `eta` (or of `a`, where that is the array), a float for two floats
    """
    phi = phi_of(loss)
    like = eta if is_array(eta) or not is_array(a) else a
    at = np.asarray(to_numpy(a), dtype=np.float64)
    with np.errstate(invalid="ignore"):
        if np.isnan(at).any():
            raise ValueError("a must hold no NaN.")
    return answer(like, phi.risk(probabilities_of(eta), at))


def optimal_risk(loss: str | Loss, eta: Any) -> Any:
    """H(eta) = inf over a of C_eta(a): the least mean loss where P(y = +1) = eta.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    eta : probabilities of the class +1, in [0, 1]
    """
    return of_each(eta, lambda flat: least_of_all(phi_of(loss), flat).risk)


def wrong_side_risk(loss: str | Loss, eta: Any) -> Any:
    """H-(eta) = inf over a with a (2 eta - 1) <= 0 of C_eta(a): the least mean loss of an error.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    eta : probabilities of the class +1, in [0, 1]
    """
    return of_each(eta, lambda flat: least_on_wrong_side(phi_of(loss), flat).risk)


def minimiser(loss: str | Loss, eta: Any) -> Any:
    """a*(eta), where C_eta is least; the nearest to 0 of several, infinite where a limit is it.

    Parameters
    ----------
    loss : name or loss of the margin; a CustomLoss for classification
    eta : probabilities of the class +1, in [0, 1]
    """
    return of_each(eta, lambda flat: least_of_all(phi_of(loss), flat).output)


def probabilities_of(eta: Any, name: str = "eta") -> np.ndarray:
    """On the host, once they are known to be in [0, 1]."""
    return within(eta, name, 0.0, 1.0)


def within(x: Any, name: str, low: float, high: float) -> np.ndarray:
    """Numbers on the host; an error where one is outside of [low, high]."""
    found = np.asarray(to_numpy(x) if is_array(x) else x, dtype=np.float64)
    outside = ~((found >= low) & (found <= high))
    if outside.any():
        first = float(found[outside].flat[0])
        raise ValueError(f"{name} must be in [{low:g}, {high:g}]; got {first!r}.")
    return found


def of_each(eta: Any, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A function of flat probabilities, for an array of any shape and library."""
    host = probabilities_of(eta)
    return answer(eta, function(host.ravel()).reshape(host.shape))


def answer(like: Any, found: np.ndarray) -> Any:
    """As the array given: its library, device and float type; a float for a number."""
    if not is_array(like):
        return float(found) if found.ndim == 0 else found
    where = locate(like)
    dtype = np.float32 if like.dtype == where.xp.float32 else np.float64
    return where.hand_over(np.asarray(found, dtype=dtype))
