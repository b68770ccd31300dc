"""The binned matrix: what every algorithm sees of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout


@dataclass(frozen=True)
class ClassRows:
    """Rows to train on, sorted by class: class c is rows[starts[c] : starts[c + 1]]."""

    rows: Any
    starts: np.ndarray


def sort_by_class(index: Any, n_classes: int, keep: Any | None, where: Where) -> ClassRows:
    """Positions of the kept rows, class by class, in their old order within a class."""
    xp = where.xp
    if keep is None:
        order = xp.argsort(index, stable=True)
        labels = index
    else:
        kept = xp.nonzero(keep)[0]
        labels = xp.take(index, kept)
        order = xp.take(kept, xp.argsort(labels, stable=True))
    sizes = [int(xp.sum(xp.astype(labels == c, xp.int64))) for c in range(n_classes)]
    return ClassRows(order, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


@dataclass(frozen=True)
class BinnedMatrix:
    """Codes in an engine's layout, and the edges that made them (host, float64)."""

    codes: Codes
    edges: list[np.ndarray]

    def n_thresholds(self, learn_missing: bool) -> np.ndarray:
        """Thresholds to try per feature.

        Where missing values take a side, "missing or not" is one more: everything present
        goes left.
        """
        counts = np.array([len(e) for e in self.edges], dtype=np.int64)
        if not learn_missing:
            return counts
        absent = self.codes.counts[:, :, -1].any(axis=0)
        present = self.codes.counts[:, :, :-1].any(axis=(0, 2))
        return counts + (absent & present)

    def threshold(self, feature: int, last_bin: int) -> float:
        """X <= threshold goes left; inf where everything present does."""
        edges = self.edges[feature]
        return float(edges[last_bin]) if last_bin < len(edges) else np.inf


def bin_matrix(engine: Engine, X: Any, rows: Any, layout: Layout, max_bins: int) -> BinnedMatrix:
    edges = engine.edges(X, rows, max_bins)
    return BinnedMatrix(engine.encode(X, edges, rows, layout), edges)
