"""Weighted means in any array library."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays.namespace import Where


def weighted_mean(values: Any, weights: Any | None, where: Where) -> float:
    """sum w v / sum w; the plain mean without weights."""
    xp = where.xp
    if weights is None:
        return float(xp.mean(values))
    weights = weights / xp.max(weights)  # so that no sum overflows
    return float(xp.sum(values * weights) / xp.sum(weights))
