"""Validated rows, and the same binned in their own order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.matrix import BinnedMatrix, bin_matrix
from ensemble_gpu.kernels.protocol import Engine, Layout
from ensemble_gpu.kernels.select import engine_view


@dataclass(frozen=True)
class Rows:
    """Validated rows in one place: features, label index or target, weights (None: all equal)."""

    X: Any
    target: Any
    weights: Any | None

    def seen_by(self, engine: Engine) -> Rows:
        return Rows(*(engine_view(engine, a) for a in (self.X, self.target, self.weights)))


@dataclass(frozen=True)
class Binned:
    """Rows in their own order, binned, in the engine's namespace."""

    matrix: BinnedMatrix
    target: Any
    weights: Any | None


def bin_rows(
    engine: Engine,
    rows: Rows,
    keep: Any | None,
    max_bins: int | None,
    here: Where,
    n_categories: Mapping[int, int] = MappingProxyType({}),
    *,
    for_trees: bool,
) -> Binned:
    """Bin the kept rows; one class holds them all, or `for_trees` none."""
    xp, n = here.xp, rows.X.shape[0]
    target, weights = rows.target, rows.weights
    kept = xp.arange(n, device=here.device) if keep is None else xp.nonzero(keep)[0]
    if keep is not None:
        target = xp.take(target, kept)
        weights = None if weights is None else xp.take(weights, kept)
    layout = None
    if not for_trees:
        layout = Layout(np.array([0, kept.shape[0]]), np.zeros((1, 1), dtype=np.int64))
    matrix = bin_matrix(engine, rows.X, kept, layout, max_bins, n_categories)
    return Binned(matrix, *(None if a is None else engine.adopt(a) for a in (target, weights)))
