"""Weighted means in any array library."""

from __future__ import annotations

import math
from typing import Any

from ensemble_gpu.arrays.namespace import Where


def weighted_mean(values: Any, weights: Any | None, where: Where) -> float:
    """sum w v / sum w; the plain mean without weights."""
    xp = where.xp
    if weights is None:
        return float(xp.mean(values))
    weights = weights / xp.max(weights)  # so that no sum overflows
    return float(xp.sum(values * weights) / xp.sum(weights))


def magnitude(values: Any, where: Where) -> float:
    """The power of two that the largest |value| is 1 to 2 of; 1 where all values are 0.

    Values divided by it have squares that neither overflow nor vanish.
    """
    largest = float(where.xp.max(where.xp.abs(values)))
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if 0.0 < largest < math.inf else 1.0
