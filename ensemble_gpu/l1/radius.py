"""Which radius: cross-validation over a grid.

Radii ascend, and the balls are nested: each fold goes on from the coefficients that it had at the
radius before. Folds share codes and dictionary and differ in weights alone, so that the outputs of
the rows that are held out follow along. Rows fall into folds by what they hold (data/sampling.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.l1.bounds import Bound, Settings
from ensemble_gpu.l1.solver import Ball

# Radii of a grid, in units of y (classes: 1): from the first to the last, evenly in the logarithm.
FIRST, LAST = 0.25, 128.0
# Folds are followed to this multiple of the gap that the model is, relative to the loss of the rows
# held out where that is larger.
LOOSER, LOOSEST = 15.0, 0.05


def grid_of(radii: Any, unit: float) -> np.ndarray:
    """Radii as given, or so many from FIRST to LAST units."""
    if isinstance(radii, int | np.integer):
        return unit * np.exp2(np.linspace(math.log2(FIRST), math.log2(LAST), int(radii)))
    return np.array(sorted(float(r) for r in radii))


@dataclass(frozen=True)
class Fold:
    """A ball of the rows of a fold, and the mean loss at F of those that are held out."""

    ball: Ball
    held_out: Callable[[Any], float]
    weight: float


@dataclass(frozen=True)
class RadiusScores:
    """Mean loss of rows held out, for the radii that were tried, and its standard error."""

    radii: np.ndarray
    losses: np.ndarray
    errors: np.ndarray

    @property
    def best(self) -> float:
        """The first radius with the least loss."""
        return float(self.radii[int(np.argmin(self.losses))])


def cross_validated(folds: list[Fold], radii: np.ndarray, settings: Settings) -> RadiusScores:
    """All folds, radius after radius, up to the first whose loss is larger than the one before.

    The largest radii would take most of the time.
    """
    tol = min(LOOSER * settings.tol, LOOSEST)
    loose = Settings(settings.most_rounds, tol, settings.step)
    weights = np.array([fold.weight for fold in folds])
    losses, errors = list[float](), list[float]()
    for radius in radii.tolist():
        found = []
        for fold in folds:
            fold.ball.run(Bound.ball(radius), loose)
            found.append(fold.held_out(fold.ball.point.F))
        losses.append(float(np.average(found, weights=weights)))
        loose = replace(loose, enough=tol * losses[-1])
        errors.append(float(np.std(found, ddof=1)) / math.sqrt(len(folds)))
        if len(losses) > 1 and losses[-1] > losses[-2]:
            break
    return RadiusScores(radii[: len(losses)], np.array(losses), np.array(errors))
