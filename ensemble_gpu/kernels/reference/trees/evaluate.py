"""Evaluation of a forest with array-API calls only: what the compiled engines must agree with.

All rows walk one tree together, a level at a time; a row that has reached its leaf stays there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest

# Rows that walk together: bounds the memory of a level on a device.
BLOCK_ROWS = 1 << 17


class Walker:
    """The node arrays where the rows live."""

    def __init__(self, forest: PackedForest, where: Where) -> None:
        self.where = where
        self.feature, self.threshold = where.put(forest.feature), where.put(forest.threshold)
        self.missing_left = where.put(forest.missing_left)
        self.left, self.right = where.put(forest.left), where.put(forest.right)
        self.width = 64 * forest.subsets.shape[1]
        self.subset = self.bits = None
        if (forest.subset >= 0).any():
            self.subset, self.bits = where.put(forest.subset), where.put(_bits(forest.subsets))

    def leaves(self, X: Any, root: int) -> Any:
        """The position of every row's leaf in the tree that starts at root."""
        xp, where = self.where.xp, self.where
        n, p = X.shape
        cells, first = xp.reshape(X, (-1,)), where.put(np.arange(n, dtype=np.int64)) * p
        at = where.zeros(n, xp.int64) + root
        feature = xp.take(self.feature, at)
        inner = feature != LEAF
        while bool(xp.any(inner)):
            column = xp.where(inner, feature, where.full(0, xp.int64))
            x = xp.take(cells, first + column)
            child = xp.where(self.goes_left(x, at), xp.take(self.left, at), xp.take(self.right, at))
            at = xp.where(inner, child, at)
            feature = xp.take(self.feature, at)
            inner = feature != LEAF
        return at

    def goes_left(self, x: Any, at: Any) -> Any:
        """Whether the tests of the nodes `at` send values x left, element by element."""
        xp, where = self.where.xp, self.where
        absent, left = xp.isnan(x), x <= xp.take(self.threshold, at)
        if self.subset is not None:
            subset = xp.take(self.subset, at)
            outside = (x < 0.0) | (x >= float(self.width)) | absent
            code = xp.astype(xp.where(outside, where.full(0.0), x), xp.int64)
            is_set, zero = subset >= 0, where.full(0, xp.int64)
            place = xp.where(is_set, subset, zero) * self.width + code
            left = xp.where(is_set, xp.take(self.bits, place), left)
            absent = absent | (is_set & outside)
        return xp.where(absent, xp.take(self.missing_left, at), left)


def _bits(subsets: np.ndarray) -> np.ndarray:
    """Bit c of every subset, one after the other, as booleans."""
    octets = np.ascontiguousarray(subsets, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, bitorder="little").astype(bool)


def _blocks(X: Any, where: Where) -> list[Any]:
    """X in float64, some rows at a time; one empty block where there is no row."""
    n = X.shape[0]
    starts = range(0, max(1, n), BLOCK_ROWS)
    return [where.as_float64(X[a : min(a + BLOCK_ROWS, n), :]) for a in starts]


def evaluate_forest(X: Any, forest: PackedForest, where: Where) -> Any:
    """float64 [n, outputs]: values are added tree after tree, as on every engine."""
    xp, walker = where.xp, Walker(forest, where)
    values, parts = where.put(forest.values), []
    for x in _blocks(X, where):
        total = where.zeros((x.shape[0], len(forest.intercept)), xp.float64)
        for root in forest.roots.tolist():
            total = total + xp.take(values, walker.leaves(x, root), axis=0)
        parts.append(total / forest.divisor + where.put(forest.intercept)[None, :])
    return xp.concat(parts, axis=0)


def apply_forest(X: Any, forest: PackedForest, where: Where) -> Any:
    """int64 [n, trees]."""
    xp, walker = where.xp, Walker(forest, where)
    parts = []
    for x in _blocks(X, where):
        none = where.zeros((x.shape[0], 0), xp.int64)
        leaves = [walker.leaves(x, root)[:, None] for root in forest.roots.tolist()]
        parts.append(xp.concat([none, *leaves], axis=1))
    return xp.concat(parts, axis=0)
