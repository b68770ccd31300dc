"""The binned matrix: what every algorithm sees of X."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import check_dense, is_sparse
from ensemble_gpu.arrays.streamed import is_streamed
from ensemble_gpu.kernels.edges import edges_of, midpoints, sample_positions
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout
from ensemble_gpu.kernels.sparse import gaps as sparse_gaps


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
    """Codes in an engine's layout, and the edges that made them (host, float64).

    gaps[f] [2, edges] are the values below and above each edge.
    """

    codes: Codes
    edges: list[np.ndarray]
    gaps: list[np.ndarray]

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

    def middles(self, feature: np.ndarray, last_bin: np.ndarray, above: np.ndarray) -> np.ndarray:
        """Thresholds in the middle between two codes that follow each other in a node.

        `above` beyond the last code: everything present goes left, inf.
        """
        first, below, after = self._all_gaps
        end = above - 1 >= first[feature + 1] - first[feature]
        at = first[feature]
        low = below[np.where(end, 0, at + last_bin)]
        high = after[np.where(end, 0, at + above - 1)]
        return np.where(end, np.inf, midpoints(low, high))

    @cached_property
    def _all_gaps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where each feature's gaps begin, and all of them one after the other (never none)."""
        sizes = [gap.shape[1] for gap in self.gaps]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        below, after = np.concatenate([*self.gaps, np.zeros((2, 1))], axis=1)
        return first, below, after


def bin_matrix(
    engine: Engine,
    X: Any,
    rows: Any,
    layout: Layout | None,
    max_bins: int | None,
    n_categories: Mapping[int, int] = MappingProxyType({}),
    gaps: list[np.ndarray] | None = None,
) -> BinnedMatrix:
    """Bin the rows; a feature with n categories holds their numbers 0 ... n - 1, its codes.

    No layout: for trees. X is an array of the engine, a sparse matrix, or streamed rows, of which
    no `rows` are all. No gaps: those of the rows themselves.
    """
    gaps = gaps_of(engine, X, rows, max_bins) if gaps is None else list(gaps)
    for f, n in n_categories.items():
        gaps[f] = np.array([np.arange(n - 1), np.arange(1, n)], dtype=np.float64)
    edges = edges_of(gaps)
    if is_streamed(X):
        return BinnedMatrix(X.codes(engine, edges, gaps, rows, layout), edges, gaps)
    return BinnedMatrix(engine.encode(X, edges, rows, layout), edges, gaps)


def gaps_of_all(
    engine: Engine, X: Any, rows: Any, layout: Layout | None, max_bins: int | None
) -> list[np.ndarray]:
    """`gaps_of` the rows of all workers of the engine's team, from a sample that all of them see.

    It is the sample of one worker that has all rows, in the order of their positions within each
    class. Without `max_bins` it is every value that occurs, a feature at a time.
    """
    check_dense(X, "a fit of several workers")
    where, team, xp = engine.where, engine.team, engine.where.xp
    own = where.host(engine.adopt(rows))
    if max_bins is None:
        columns = [where.host(xp.take(engine.adopt(X)[:, f], rows)) for f in range(X.shape[1])]
        each = [team.concatenated(np.unique(column[~np.isnan(column)])) for column in columns]
        return [_gaps(engine, np.unique(values)[:, None], None)[0] for values in each]
    starts = np.array([0, len(own)]) if layout is None else layout.starts
    sample = sample_positions(team.count(len(own)))
    chosen = np.isin(team.places(own, starts), sample, assume_unique=True)
    values = where.host(xp.take(engine.adopt(X), where.put(own[chosen]), axis=0))
    return _gaps(engine, team.concatenated(values), max_bins)


def _gaps(engine: Engine, values: np.ndarray, max_bins: int | None) -> list[np.ndarray]:
    where = engine.where
    return engine.gaps(where.put(values), where.put(np.arange(len(values))), max_bins)


def gaps_of(engine: Engine, X: Any, rows: Any, max_bins: int | None) -> list[np.ndarray]:
    """The gaps between values that the rows are binned at, a feature each [2, edges]."""
    if is_streamed(X):
        return X.gaps(engine, rows, max_bins)
    if is_sparse(X):
        return sparse_gaps(X, engine.where.host(engine.adopt(rows)), max_bins)
    return engine.gaps(X, rows, max_bins)
