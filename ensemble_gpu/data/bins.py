"""Bins that several fits on parts of the same rows share: made once, from all of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.data.matrix import gaps_of
from ensemble_gpu.kernels.protocol import Engine


class SharedBins:
    """The gaps between values that bins are cut at, of the rows `rows` of X.

    They are found when they are first asked for, once for each number of bins.
    """

    def __init__(self, engine: Engine, X: Any, rows: Any) -> None:
        self.engine, self.X, self.rows = engine, X, rows
        self._gaps: dict[int | None, list[np.ndarray]] = {}

    def gaps(self, max_bins: int | None) -> list[np.ndarray]:
        """A feature each [2, edges]: the values below and above its edges."""
        if max_bins not in self._gaps:
            self._gaps[max_bins] = gaps_of(self.engine, self.X, self.rows, max_bins)
        return self._gaps[max_bins]
