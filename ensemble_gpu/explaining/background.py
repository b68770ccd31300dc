"""What explanations of stumps need of the training rows: their weight in each piece of a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.model.additive import AdditiveModel, Table

# Of the sum of integer weights, which 64 bits hold.
SUM_BITS = 62
LEAST_UNIT = 1070  # the logarithm of the least unit, a float64 still
LARGEST_UNIT = 2.0**960  # times 2^62 it is one, too


@dataclass(frozen=True, eq=False)
class Background:
    """Weights of the training rows between the thresholds of a model of stumps.

    Used feature u, column `features[u]`, has the thresholds starts[u] ... starts[u + 1] - 1 of
    `thresholds`, and one piece more: `weight[starts[u] + u + i]` is that of the rows between
    thresholds i - 1 and i, `missing[u]` that of rows where the feature is missing.
    """

    features: np.ndarray
    starts: np.ndarray
    thresholds: np.ndarray
    weight: np.ndarray
    missing: np.ndarray

    @classmethod
    def of(
        cls, model: AdditiveModel, matrix: BinnedMatrix, weights: Any | None, engine: Engine
    ) -> Background:
        """From the codes of the rows; no weights: all are equal."""
        codes = matrix.codes
        if weights is None:
            counts, unit = codes.counts.sum(axis=0), 1.0
        else:
            q, unit = _integers(weights, engine)
            counts = engine.sums(codes, q)[0]
        tables = model.tables
        features = np.array(list(tables), dtype=np.int64)
        sizes = [len(table.thresholds) for table in tables.values()]
        bins = [matrix.edges[f].searchsorted(table.thresholds) for f, table in tables.items()]
        starts = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=starts[1:])
        owner = np.arange(len(sizes)).repeat(sizes)
        up_to = counts[features, :-1].cumsum(axis=1)
        # pieces end at a threshold, but for the last of every feature
        first = starts[:-1] + np.arange(len(sizes))
        ends = np.zeros(len(owner) + len(sizes), dtype=np.int64)
        if sizes:
            ends[np.arange(len(owner)) + owner] = up_to[owner, np.concatenate(bins)]
            ends[first[1:] - 1], ends[-1] = up_to[:-1, -1], up_to[-1, -1]
        weight = ends.copy()
        weight[1:] -= ends[:-1]
        weight[first] = ends[first]
        none = np.zeros(0)
        thresholds = np.concatenate([none, *(table.thresholds for table in tables.values())])
        return cls(features, starts, thresholds, weight * unit, counts[features, -1] * unit)

    def __iter__(self) -> Iterator[tuple[int, np.ndarray, np.ndarray, float]]:
        """(feature, thresholds, weights of the pieces, weight of the missing) of each used one."""
        for u, f in enumerate(self.features.tolist()):
            low, high = int(self.starts[u]), int(self.starts[u + 1])
            weight = self.weight[low + u : high + u + 1]
            yield f, self.thresholds[low:high], weight, float(self.missing[u])

    def spread(self, model: AdditiveModel) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """(feature, values [pieces, outputs], shares of the weight) of each feature of the model.

        The last piece is that of missing values. The model's thresholds are among these.
        """
        for f, thresholds, weight, missing in self:
            if f not in model.tables:
                continue
            values = pieces(model.tables[f], thresholds)
            every = np.append(weight, missing)
            yield f, values, every / every.sum()


def _integers(weights: Any, engine: Engine) -> tuple[Any, float]:
    """Weights [1, rows] as int64, and the weight that 1 stands for, a power of two.

    Whole weights stay exact. Where their sum is no float any more, a smaller unit is told: shares
    of the weight are what counts.
    """
    xp = engine.where.xp
    team = engine.team
    heaviest, n_rows = team.largest(float(xp.max(weights)))[0], team.count(weights.shape[0])
    size = math.frexp(heaviest)[1] + n_rows.bit_length()
    bits = min(SUM_BITS - size, LEAST_UNIT)
    unit = math.ldexp(1.0, -bits)
    return xp.astype(xp.round(weights / unit), xp.int64)[None, :], min(unit, LARGEST_UNIT)


def pieces(table: Table, thresholds: np.ndarray) -> np.ndarray:
    """The values of a table below, between and above thresholds, and for missing values."""
    at = np.append(np.searchsorted(table.thresholds, thresholds), len(table.thresholds))
    return np.concatenate([table.values[at], table.missing[None, :]])
