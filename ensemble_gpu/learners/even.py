"""Evenly spaced thresholds on the numbers of generators: nothing has to be sorted.

With z_0 and z_1 the least and the largest number of a generator, a threshold lies every `step` from
z_0 on, step the power of two that makes them 127 to 254 (fewer where z has fewer values).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.kernels.protocol import EVEN_BINS, Codes, Histograms, Layout
from ensemble_gpu.learners.source import Source
from ensemble_gpu.model.generators import Generators


@dataclass(frozen=True)
class EvenMatrix:
    """Codes of evenly spaced thresholds, `n_thresholds` of each generator."""

    codes: Codes
    low: np.ndarray
    step: np.ndarray
    n_thresholds: np.ndarray

    def threshold(self, feature: int, last_bin: int) -> float:
        """Z <= threshold has a code up to last_bin; z is an integer."""
        return float(self.low[feature] + (last_bin + 1) * self.step[feature] - 0.5)


class EvenRows:
    """Training rows in an order, and the codes that generators of one round after the other make.

    A matrix is lost when the next one is made.
    """

    def __init__(self, source: Source, order: Any | None, layout: Layout) -> None:
        self.source, self.where, self.layout = source, source.where, layout
        self.rows = source.coordinates(order)
        self.space = source.engine.even_codes(layout, source.learner.n_candidates)

    def matrix(self, generators: Generators) -> EvenMatrix:
        """Codes of all z."""
        ends = self.source.side_by_side(self._put, self.source.blocks(generators, self.rows.n_rows))
        low, step, count = (np.concatenate(part) for part in zip(*ends, strict=True))
        return EvenMatrix(self.space.codes(), low, step, count)

    def _put(self, block: tuple[int, Generators]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Codes of some generators; their least z, steps and numbers of thresholds."""
        first, generators = block
        z = generators.at(self.rows, self.where)
        low, high = self._ends(z)
        step = np.ldexp(1.0, np.maximum(np.frexp(high - low)[1] - 8, 0))
        step = np.where((high - low) / step >= EVEN_BINS, 2.0 * step, step)
        self.space.put(first, z, low, step)
        return low, step, np.floor((high - low) / step).astype(np.int64)

    def histograms(self, matrix: EvenMatrix, log_weights: Any) -> Histograms:
        """Of weights 2^log_weights, in the matrix made last."""
        return self.space.histograms(matrix.codes, log_weights)

    def _ends(self, z: Any) -> tuple[np.ndarray, np.ndarray]:
        """The least and the largest z of every generator; 0 where all are missing."""
        where, xp = self.where, self.where.xp
        low, high = where.host(xp.min(z, axis=0)), where.host(xp.max(z, axis=0))
        if not np.isnan(low).any():  # a minimum of NaN and numbers is NaN
            return low, high
        absent, top = xp.isnan(z), where.full(np.inf)
        low = where.host(xp.min(xp.where(absent, top, z), axis=0))
        high = where.host(xp.max(xp.where(absent, -top, z), axis=0))
        none = low > high
        return np.where(none, 0.0, low), np.where(none, 0.0, high)
