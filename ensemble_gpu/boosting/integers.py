"""Gradients as integers: two formats for the rebuild strategy.

Packed  -w g and w h of a row in one 64-bit integer, PACK_BITS bits each, relative to the largest of
        the round: one addition serves both. For many rows; their rounding errors cancel.
Fine    g and h with 30 bits each, relative to the largest, times an integer weight: for few rows,
        where each counts. A row of weight 3 is three rows, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.data.integers import weights_and_unit
from ensemble_gpu.kernels.protocol import PACK_BITS, Codes, Engine

FINE_ROWS = 20_000
FINE_BITS = 30
# FINE_BITS + FINE_WEIGHT_BITS < 63: no sum overflows.
FINE_WEIGHT_BITS = 32
# Units are not below 2^LEAST, so that their inverse is a float.
LEAST = -1000

Units = tuple[float, float]


class Format(Protocol):
    """How gradients become integers and sums."""

    bits: int
    planes: int  # of integers for each output
    weights: Any | None
    weight_unit: float  # the sample weight that 1 stands for

    def weighed(self, a: Any, part: Any | None) -> Any:
        """What is measured in units: w g or g."""
        ...

    def pack(self, g: Any, h: Any, part: Any | None, units: Units, out: Any) -> Any:
        """Integers [.., rows] of weighed -g and h; `part` is the rows' weight in this round.

        They may be written into `out`.
        """
        ...

    def integers(self, g: Any, part: Any | None, unit: float) -> Any:
        """Integers of g alone, in units, weighted."""
        ...

    def sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        """(G, H)[output, feature, code]."""
        ...

    def moments(self, packed: Any) -> Any:
        """What a tree adds up: h and -g of every output (`Sample.values`)."""
        ...

    def of_output(self, packed: Any, k: int) -> Any:
        """The packed integers of output k alone."""
        ...


def format_for(engine: Engine, n_rows: int, weights: Any | None, steady: bool) -> Format:
    """`steady`: most rows have the gradient of the round before."""
    return Fine(engine, weights) if n_rows <= FINE_ROWS else Packed(engine, weights, steady)


def unit_of(largest: float, bits: int) -> float:
    """The power of two u with largest / u < 2^bits; 0 for 0."""
    return math.ldexp(1.0, max(math.frexp(largest)[1] - bits, LEAST)) if largest > 0.0 else 0.0


class Packed:
    """-g in the upper half of an integer, h in the lower; weights are floats of at most 1."""

    bits, planes = PACK_BITS, 1

    def __init__(self, engine: Engine, weights: Any | None, steady: bool = False) -> None:
        self.engine, self.weight_unit, self.weights = engine, 1.0, None
        self.steady = steady
        self.following: Callable[[Any], tuple[np.ndarray, np.ndarray]] | None = None
        if weights is not None:
            heaviest = engine.team.largest(float(engine.where.xp.max(weights)))[0]
            self.weight_unit, self.weights = heaviest, weights / heaviest

    def weighed(self, a: Any, part: Any | None) -> Any:
        return a if part is None else a * part[None, :]

    def pack(self, g: Any, h: Any, part: Any | None, units: Units, out: Any) -> Any:
        return self.engine.pack(g, h, -units[0], units[1], out)

    def integers(self, g: Any, part: Any | None, unit: float) -> Any:
        xp = self.engine.where.xp
        return xp.astype(xp.round(self.weighed(g, part) * (1.0 / unit)), xp.int64)

    def sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.steady and self.following is None:
            self.following = self.engine.following_sums(codes)
        if self.following is None:
            S, H = self.engine.pair_sums(codes, packed)
        else:
            S, H = self.following(packed)
        return -S, H

    def moments(self, packed: Any) -> Any:
        return self.engine.moments(packed)

    def of_output(self, packed: Any, k: int) -> Any:
        return packed[k : k + 1, :]


class Fine:
    """A plane of integers for each -g and h; weights are integers."""

    bits, planes = FINE_BITS, 2

    def __init__(self, engine: Engine, weights: Any | None) -> None:
        self.engine = engine
        self.weights, self.weight_unit = weights_and_unit(weights, FINE_WEIGHT_BITS, engine)

    def weighed(self, a: Any, part: Any | None) -> Any:
        return a

    def pack(self, g: Any, h: Any, part: Any | None, units: Units, out: Any) -> Any:
        planes = [self.integers(g, part, -units[0]), self.integers(h, part, units[1])]
        return self.engine.where.xp.concat(planes, axis=0)

    def integers(self, g: Any, part: Any | None, unit: float) -> Any:
        xp = self.engine.where.xp
        q = xp.astype(xp.round(g * (1.0 / unit)), xp.int64)
        return q if part is None else q * part[None, :]

    def sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        sums = self.engine.sums(codes, packed)
        outputs = sums.shape[0] // 2
        return -sums[:outputs], np.ascontiguousarray(sums[outputs:])

    def moments(self, packed: Any) -> Any:
        xp, outputs = self.engine.where.xp, packed.shape[0] // 2
        planes = xp.concat([packed[outputs:, :], packed[:outputs, :]], axis=0)
        return xp.permute_dims(planes, (1, 0))

    def of_output(self, packed: Any, k: int) -> Any:
        h = packed.shape[0] // 2 + k
        return self.engine.where.xp.concat([packed[k : k + 1, :], packed[h : h + 1, :]], axis=0)
