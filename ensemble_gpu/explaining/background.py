"""What explanations of stumps need of the training rows: their weight in each piece of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.data.integers import weights_and_unit
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.model.additive import AdditiveModel, Table

# Of integer weights: sums over all rows are exact.
WEIGHT_BITS = 52


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
            q, unit = weights_and_unit(weights, WEIGHT_BITS, engine)
            counts = engine.sums(codes, engine.where.xp.reshape(q, (1, -1)))[0]
        used = list(model.tables)
        sizes = [len(table.thresholds) for table in model.tables.values()]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        bins = [
            matrix.edges[f].searchsorted(table.thresholds) for f, table in model.tables.items()
        ]
        ends = np.full(starts[-1] + len(used), codes.width - 2)
        owner = np.repeat(np.arange(len(used)), np.add(sizes, 1).astype(np.int64))
        if used:
            inside = np.ones(len(ends), dtype=bool)
            inside[starts[1:] + np.arange(len(used))] = False
            ends[inside] = np.concatenate(bins)
        features = np.array(used, dtype=np.int64)
        up_to = np.cumsum(counts[features], axis=1)[owner, ends]
        first = np.diff(owner, prepend=-1) != 0
        weight = np.diff(up_to, prepend=0)
        weight[first] = up_to[first]
        thresholds = [table.thresholds for table in model.tables.values()]
        return cls(
            features, starts, np.concatenate([np.zeros(0), *thresholds]), weight * unit,
            counts[features, -1] * unit,
        )  # fmt: skip

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


def pieces(table: Table, thresholds: np.ndarray) -> np.ndarray:
    """The values of a table below, between and above thresholds, and for missing values."""
    at = np.append(np.searchsorted(table.thresholds, thresholds), len(table.thresholds))
    return np.concatenate([table.values[at], table.missing[None, :]])
