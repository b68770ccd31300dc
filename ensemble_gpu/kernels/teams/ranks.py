"""Order statistics of rows that several workers have, found bit by bit.

Floats in order are integers in order (sign and magnitude, as one unsigned number). The statistic of
a slot is built from its highest bits down: a pass counts the weight by the next BITS bits of the
rows that agree with it so far, and the sum of everybody's counts says how they go on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.residuals import Slots
from ensemble_gpu.kernels.team import Team

BITS = 8
TOP = np.uint64(1) << np.uint64(63)


def _ordered(r: np.ndarray) -> np.ndarray:
    """Unsigned integers in the order of floats; zeros of either sign are one."""
    bits = (r + 0.0).view(np.uint64)
    return np.where(bits & TOP, ~bits, bits | TOP)


def _floats(keys: np.ndarray) -> np.ndarray:
    return np.where(keys & TOP, keys ^ TOP, ~keys).view(np.float64)


def ranked(
    slots: Slots, r: Any, weights: Any | None, ranks: np.ndarray, where: Where, team: Team
) -> np.ndarray:
    """`Engine.ranked` of all rows of the team."""
    slot = slots.table[where.host(slots.index)]
    inside = slot >= 0
    slot, keys = slot[inside], _ordered(where.host(r)[inside])
    w = np.ones(len(keys), dtype=np.int64) if weights is None else where.host(weights)[inside]
    found, left = np.zeros(len(ranks), dtype=np.uint64), ranks.astype(np.int64)
    each = np.arange(len(ranks))
    for shift in range(64 - BITS, -1, -BITS):
        digit = ((keys >> np.uint64(shift)) & np.uint64((1 << BITS) - 1)).astype(np.int64)
        own = np.zeros((len(ranks), 1 << BITS), dtype=np.int64)
        np.add.at(own, (slot, digit), w)
        running = np.cumsum(team.sum(own), axis=1)
        at = (running < left[:, None]).sum(axis=1)
        left = left - np.where(at > 0, running[each, np.maximum(at, 1) - 1], 0)
        found |= at.astype(np.uint64) << np.uint64(shift)
        same = digit == at[slot]
        slot, keys, w = slot[same], keys[same], w[same]
    return _floats(found)
