"""Weights of pairs that thresholds put in order, by sums over (segment, code) of an engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.host.levels import threshold_pairs
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.queries import PairWeights


def ordered_weights(
    engine: Any, weights: PairWeights, codes: Codes, has_missing: np.ndarray
) -> np.ndarray:
    """`Engine.ordered_weights`: a table of segments and codes for every feature."""
    queries, xp = weights.queries, engine.where.xp
    values = xp.stack([weights.up, weights.down], axis=1)
    width, n_segments = codes.width, len(weights.ups)
    out = np.zeros((2, 2, codes.n_features, width - 1), dtype=np.int64)
    parts = queries.first, weights.ups, weights.downs, weights.enter, weights.rise, weights.scale
    for f in range(codes.n_features):
        column = xp.astype(engine.column(codes, f), xp.int64)
        sums = engine.sums_by(queries.segment * width + column, values, n_segments * width)
        sums = np.ascontiguousarray(sums).reshape(n_segments, width, 2)
        for side in (0, 1) if has_missing[f] else (1,):
            found = np.zeros((2, width - 1), dtype=np.int64)
            threshold_pairs(*parts, sums, side == 0, found)
            out[side, :, f] = found
    return out
