"""Residuals by leaf: by array calls, as sorting is the array library's, and the kernel of sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.cuda.trees.rows import sums_by
from ensemble_gpu.kernels.reference import residuals
from ensemble_gpu.kernels.residuals import Ruler, Slots


def ranked(
    slots: Slots, r: Any, weights: Any | None, ranks: np.ndarray, device: Device
) -> np.ndarray:
    """`Engine.ranked`."""
    with device.active("residuals in order", 64 * r.shape[0]):
        return residuals.ranked(slots, r, weights, ranks, device.where)


def ruled_sums(
    slots: Slots, r: Any, weights: Any | None, ruler: Ruler, device: Device
) -> np.ndarray:
    """`Engine.ruled_sums`."""
    n = len(ruler.base) * ruler.n_marks
    with device.active("sums of residuals", 64 * r.shape[0] + 16 * n):
        place, values = residuals.on_ruler(slots, r, weights, ruler, device.where)
        sums = sums_by(place, values, n + 1, device)
        return sums[:-1].reshape(len(ruler.base), ruler.n_marks, 2)
