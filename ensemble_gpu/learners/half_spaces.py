"""Half-spaces: a threshold on a random direction, z = w.x."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.learners.generated import Generated
from ensemble_gpu.learners.source import DrawnFrom
from ensemble_gpu.model.generators import HalfSpaceGenerators


class HalfSpaces(Generated):
    """The best of N random half-spaces {x: w.x <= t}, over all thresholds t and both sides.

    Directions w are Gaussian in features that are standardised. For `AdaBoostClassifier(HalfSpaces(
    1000))` with any variant, and as `estimator` of BoostingClassifier and BoostingRegressor with
    any loss. A missing value in a feature that a direction uses abstains.

    The model stores the directions that it uses, and is the same to the last bit on every engine
    and array library: X is rounded to a grid of 2^-18 standard deviations (28 features; coarser for
    more), and beyond 32 of them to those, so that products and sums are exact. Memory: a byte
    for every row and direction, and 64 MB.

    Parameters
    ----------
    n_candidates : int, default=1000
        N, the directions.
    redraw : {"once", "round"}, default="once"
        Whether the directions are drawn once, with thresholds at quantiles as stumps have, or anew
        in every round, with 127 to 254 evenly spaced thresholds.
    n_features : int or None, default=None
        Features that a direction uses, drawn for each; None: all.
    """

    def __init__(
        self, n_candidates: int = 1000, *, redraw: str = "once", n_features: int | None = None
    ) -> None:
        self.n_candidates = n_candidates
        self.redraw = redraw
        self.n_features = n_features

    def _draw(self, rng: np.random.Generator, rows: DrawnFrom) -> Any:
        p = len(rows.grid.centre)
        w = rng.standard_normal((self.n_candidates, p))
        used = self._features(rng, p)
        w = np.where(used, w, 0.0)
        return HalfSpaceGenerators(used, whole_weights(w, rows.grid.weight_bits))


def whole_weights(w: np.ndarray, bits: int) -> np.ndarray:
    """Directions [N, p] as integers up to 2^bits, float64."""
    return np.rint(w / np.abs(w).max(axis=1, keepdims=True) * 2.0**bits)
