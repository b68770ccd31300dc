"""Balls: a threshold on the distance to a training row, z = |x - c|^2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.learners.generated import AroundRows
from ensemble_gpu.learners.source import DrawnFrom
from ensemble_gpu.model.generators import BallGenerators


class Balls(AroundRows):
    """The best of N balls {x: |x - c| <= r} and their complements, over all radii r.

    Centres c are drawn training rows, and distances those of standardised features. Otherwise as
    `HalfSpaces`: for AdaBoost and for any loss, one model everywhere.

    Parameters
    ----------
    n_candidates : int, default=500
        N, the centres.
    redraw : {"once", "round"}, default="once"
        Whether the centres are drawn once, with radii at quantiles of the distances, or anew in
        every round, with 127 to 254 evenly spaced squared radii.
    n_features : int or None, default=None
        Features that a distance is measured in, drawn for each centre; None: all.
    """

    def _draw(self, rng: np.random.Generator, rows: DrawnFrom) -> Any:
        used = self._features(rng, len(rows.grid.centre))
        return BallGenerators(used, np.nan_to_num(rows.rows(rng, self.n_candidates), nan=0.0))
