"""Residuals by leaf, by array-API calls: for engines without a kernel for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.reference.trees.grower import sums_by
from ensemble_gpu.kernels.residuals import Ruler, Slots


def _slots_of_rows(slots: Slots, where: Where) -> Any:
    xp = where.xp
    return xp.take(where.put(slots.table), xp.astype(slots.index, xp.int64))


def _counted(weights: Any | None, r: Any, where: Where) -> Any:
    return where.zeros(r.shape[0], where.xp.int64) + 1 if weights is None else weights


def ranked(
    slots: Slots, r: Any, weights: Any | None, ranks: np.ndarray, where: Where
) -> np.ndarray:
    """`Engine.ranked`: rows in order of (slot, r), and their running weight."""
    xp = where.xp
    slot = _slots_of_rows(slots, where)
    order = xp.argsort(r, stable=True)
    order = xp.take(order, xp.argsort(xp.take(slot, order), stable=True))
    running = xp.cumulative_sum(xp.take(_counted(weights, r, where), order), dtype=xp.int64)
    first = xp.searchsorted(xp.take(slot, order), where.put(np.arange(len(ranks))))
    before = xp.take(xp.concat([where.zeros(1, xp.int64), running]), first)
    at = xp.searchsorted(running, before + where.put(ranks))
    return where.host(xp.take(r, xp.take(order, at)))


def on_ruler(
    slots: Slots, r: Any, weights: Any | None, ruler: Ruler, where: Where
) -> tuple[Any, Any]:
    """slot n_marks + mark of every row (beyond all marks where it is in no slot), and (w, w k)."""
    xp, n = where.xp, len(ruler.base)
    slot = _slots_of_rows(slots, where)
    inside = slot >= 0
    own = xp.where(inside, slot, where.full(0, xp.int64))
    k = xp.round((r - xp.take(where.put(ruler.base), own)) * ruler.per_unit)
    k = xp.minimum(xp.maximum(k, where.full(0.0)), where.full(float(ruler.last)))
    k = xp.astype(k, xp.int64)
    beyond = where.full(n * ruler.n_marks, xp.int64)
    place = xp.where(inside, own * ruler.n_marks + (k >> ruler.shift), beyond)
    w = _counted(weights, r, where)
    return place, xp.stack([w, w * k], axis=1)


def ruled_sums(slots: Slots, r: Any, weights: Any | None, ruler: Ruler, where: Where) -> np.ndarray:
    """`Engine.ruled_sums`."""
    n = len(ruler.base) * ruler.n_marks
    place, values = on_ruler(slots, r, weights, ruler, where)
    return sums_by(place, values, n, where).reshape(len(ruler.base), ruler.n_marks, 2)
