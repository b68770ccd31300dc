"""Pairs of queries: by array calls, and the kernel of sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.queries import PairWeights
from ensemble_gpu.kernels.reference import ranking


def ordered_weights(
    engine: Any, weights: PairWeights, codes: Codes, has_missing: np.ndarray
) -> np.ndarray:
    """`Engine.ordered_weights`."""
    cells = len(weights.ups) * codes.width
    with engine.device.active(f"sums of {cells} segments and codes", 16 * cells):
        return ranking.ordered_weights(engine, weights, codes, has_missing)
