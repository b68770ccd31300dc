"""Losses of the margin of shapes that no built-in one has, as users would write them."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.losses import CLASSIFICATION, CustomLoss


def searched(name: str) -> CustomLoss:
    """A built-in loss without its closed form, and without the word that it is convex."""
    loss = CLASSIFICATION[name]()
    return CustomLoss(loss.value, loss.gradient, name=f"{name} again", task="classification")


def custom(phi, slope, name: str, convex: bool = False) -> CustomLoss:
    return CustomLoss(
        lambda y, F: phi(y * F), lambda y, F: y * slope(y * F), name=name, task="classification",
        convex=convex,
    )  # fmt: skip


# Calibrated, not convex, minimum at infinity.
RAMP = custom(
    lambda v: np.clip(1.0 - v, 0.0, 2.0) / 2.0, lambda v: np.where(np.abs(v) < 1.0, -0.5, 0.0),
    "ramp",
)  # fmt: skip
# Convex, not calibrated: nothing is lost where |v| <= 1/2.
SHIFTED = custom(
    lambda v: np.maximum(-v - 0.5, 0.0), lambda v: np.where(v < -0.5, -1.0, 0.0), "shifted", True
)
# phi(-2) = 4, phi(0) = 3, phi(2) = 0, straight between: psi_tilde = min(4 t, 1 + 2 t), psi = 3 t.
TILTED = custom(
    lambda v: np.interp(v, [-2.0, 0.0, 2.0], [4.0, 3.0, 0.0]),
    lambda v: np.where(np.abs(v) < 2.0, np.where(v < 0.0, -0.5, -1.5), 0.0),
    "tilted",
)
# Convex with a kink at zero: 2 - 2v, then 2 - v.
KINKED = custom(
    lambda v: np.maximum(2.0 - np.where(v < 0.0, 2.0, 1.0) * v, 0.0),
    lambda v: np.where(v < 0.0, -2.0, np.where(v < 2.0, -1.0, 0.0)),
    "kinked",
    True,
)
# It rewards errors.
RISING = custom(np.exp, np.exp, "rising", True)
# No minimum.
LINEAR = custom(np.negative, lambda v: np.full_like(v, -1.0), "linear", True)
