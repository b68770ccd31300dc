"""Boxes: a threshold on how far a box must grow to hold x, z = max_j |x_j - c_j| / s_j."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.learners.generated import AroundRows
from ensemble_gpu.learners.source import DrawnFrom
from ensemble_gpu.model.generators import BoxGenerators

# No side is shorter than this share of a standard deviation, beside the others.
SHORTEST = 1.0 / 16.0
# Bits of 1 / s: a side of one standard deviation has 2^SHAPE_BITS.
SHAPE_BITS = 16


class Boxes(AroundRows):
    """The best of N boxes {x: |x_j - c_j| <= r s_j for all j} and their complements, over all r.

    Centres c are drawn training rows, shapes s_j = |a_j - b_j| differences of two more. Otherwise
    as `HalfSpaces`: for AdaBoost and for any loss, one model everywhere.

    Parameters
    ----------
    n_candidates : int, default=500
        N, the boxes.
    redraw : {"once", "round"}, default="once"
        Whether the boxes are drawn once, with sizes r at quantiles, or anew in every round, with
        127 to 254 evenly spaced sizes.
    n_features : int or None, default=None
        Features that a box bounds, drawn for each; None: all.
    """

    def _draw(self, rng: np.random.Generator, rows: DrawnFrom) -> Any:
        used = self._features(rng, len(rows.grid.centre))
        c, a, b = (rows.rows(rng, self.n_candidates) for _ in range(3))
        unit = rows.grid.unit
        side = np.maximum(np.nan_to_num(np.abs(a - b), nan=unit), SHORTEST * unit)
        m = np.maximum(np.rint(2.0**SHAPE_BITS * (unit / side)), 1.0)
        return BoxGenerators(used, np.nan_to_num(c, nan=0.0), np.where(used, m, 0.0))
