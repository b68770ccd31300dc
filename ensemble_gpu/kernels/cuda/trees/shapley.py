"""Shapley values of trees on a GPU: the reference engine's calls of the array library, there.

They take all leaves of a tree and many rows at once, so that a forest needs some thousand calls.
"""

from __future__ import annotations

import math
from typing import Any

from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.path_shares import PathShares
from ensemble_gpu.kernels.reference.trees import shapley
from ensemble_gpu.kernels.tree_protocol import PackedForest


def shapley_values(X: Any, forest: PackedForest, shares: PathShares, device: Device) -> Any:
    """[n, features, outputs]; the divisor and the intercept of the forest are not applied."""
    needed = 16 * math.prod(X.shape) * forest.values.shape[1] + 64 * shapley.CELLS
    with device.active(f"Shapley values of {X.shape[0]} rows", needed):
        found = shapley.shapley_values(device.adopt(X), forest, shares, device.where)
        return device.hand_back(found)
