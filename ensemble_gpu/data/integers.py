"""Weights as integers: their sums do not depend on the order of the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.team import ALONE, Team

# Larger weights are no repetitions, even where they are whole.
MOST_REPETITIONS = 2.0**31


def integer_weights(weights: Any | None, bits: int, engine: Engine) -> Any | None:
    """Sample weights as int64: as they are if whole, else in units of 2^-bits of their sum."""
    return weights_and_unit(weights, bits, engine)[0]


def weights_and_unit(weights: Any | None, bits: int, engine: Engine) -> tuple[Any | None, float]:
    """`integer_weights`, and the weight that 1 stands for."""
    if weights is None:
        return None, 1.0
    where, xp, team = engine.where, engine.where.xp, engine.team
    on_host = where.host(weights)
    top = team.largest(float(on_host.max()))[0]
    total = team.fsum(on_host / top)  # in units of the largest, so that it is an ordinary number
    if top * total < 2.0**bits and not team.any(bool(np.any(on_host != np.rint(on_host)))):
        return xp.astype(weights, xp.int64), 1.0
    unit = math.ldexp(1.0, math.frexp(total)[1] - bits)
    return xp.astype(xp.round(weights / top / unit), xp.int64), top * unit


def weight_of_one(weights: np.ndarray, team: Team = ALONE) -> float:
    """What one row weighs: the lightest, or the greatest number of which all weights are multiples.

    The latter where weights are whole numbers: then they are repetitions of rows.
    """
    top, lightest = team.largest(float(weights.max()), -float(weights.min()))
    if top <= MOST_REPETITIONS and not team.any(bool((weights != np.floor(weights)).any())):
        own = np.gcd.reduce(weights.astype(np.int64))
        return float(np.gcd.reduce(team.concatenated(np.array([own]))))
    return -lightest
