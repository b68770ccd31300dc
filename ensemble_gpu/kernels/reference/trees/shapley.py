"""Shapley values of trees by array-API calls, leaf by leaf: what compiled engines agree with.

kernels/path_shares.py has the formula. All leaves of a tree are taken together, and the features on
their ways one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.path_shares import PathShares, quadrature
from ensemble_gpu.kernels.reference.trees.evaluate import Walker
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest

# Factors (row, leaf, point) that are held at once: 16 MB of float64.
CELLS = 1 << 21


def shapley_values(X: Any, forest: PackedForest, shares: PathShares, where: Where) -> Any:
    """[n, features, outputs]; the divisor and the intercept of the forest are not applied."""
    xp, walker, p = where.xp, Walker(forest, where), X.shape[1]
    ends = np.append(forest.roots, len(forest.feature))[1:]
    ways = [
        _Ways(forest, shares, t, int(start), int(end))
        for t, (start, end) in enumerate(zip(forest.roots, ends, strict=True))
        if end - start > 1
    ]
    most = max((way.cells for way in ways), default=1)
    step, parts = max(1, CELLS // most), []
    for first in range(0, max(1, X.shape[0]), step):
        x = where.as_float64(X[first : min(first + step, X.shape[0]), :])
        total = where.zeros((x.shape[0], p, forest.values.shape[1]), xp.float64)
        for way in ways:
            total = total + way.values(x, walker, where)
        parts.append(total)
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


class _Ways:
    """The ways from the root to the leaves of one tree.

    `last[leaf, k]` is the last edge of the k-th feature on the way; the number of edges where there
    are fewer features, which stands for o = z = 1.
    """

    def __init__(
        self, forest: PackedForest, shares: PathShares, t: int, start: int, end: int
    ) -> None:
        own = slice(start, end)
        self.at, self.weights = quadrature(int(shares.points[t]))
        self.nodes = np.arange(start + 1, end)
        self.parent = shares.parent[self.nodes].astype(np.int64)
        self.is_left = forest.left[self.parent] == self.nodes
        self.feature = forest.feature[self.parent].astype(np.int64)
        twin = shares.twin[self.nodes].astype(np.int64)
        self.twin = np.where(twin >= 0, twin - start - 1, len(self.nodes))
        self.share = np.append(shares.share[self.nodes], 1.0)
        leaves = np.flatnonzero(forest.feature[own] == LEAF) + start
        self.leaf_values = forest.values[leaves]
        self.last = self._last_edges(leaves, shares, start)
        self.cells = len(leaves) * len(self.at)

    def _last_edges(self, leaves: np.ndarray, shares: PathShares, start: int) -> np.ndarray:
        found = []
        for leaf in leaves.tolist():
            seen: dict[int, int] = {}
            node = leaf
            while shares.parent[node] >= 0:
                seen.setdefault(int(self.feature[node - start - 1]), node - start - 1)
                node = int(shares.parent[node])
            found.append(list(seen.values()))
        last = np.full((len(found), max(map(len, found))), len(self.nodes), dtype=np.int64)
        for row, edges in zip(last, found, strict=True):
            row[: len(edges)] = edges
        return last

    def _passed(self, x: Any, walker: Walker, where: Where) -> Any:
        """o [row, edge]: whether a row passes an edge and all of its feature above."""
        xp = where.xp
        cells = xp.reshape(xp.take(x, where.put(self.feature), axis=1), (-1,))
        tests = where.put(np.tile(self.parent, x.shape[0]))
        left = xp.reshape(walker.goes_left(cells, tests), (x.shape[0], len(self.nodes)))
        goes = xp.where(where.put(self.is_left)[None, :], left, ~left)
        always = goes[:, :1] | ~goes[:, :1]
        twin, passed = where.put(self.twin), xp.concat([goes, always], axis=1)
        for _ in range(len(self.nodes)):
            more = goes & xp.take(passed, twin, axis=1)
            more = xp.concat([more, always], axis=1)
            if bool(xp.all(more == passed)):
                break
            passed = more
        return where.as_float64(passed)

    def values(self, x: Any, walker: Walker, where: Where) -> Any:
        """[row, feature, output] of this tree."""
        xp, one = where.xp, where.full(1.0)
        o, z = self._passed(x, walker, where), where.put(self.share)[None, :]
        t, w = where.put(self.at)[None, None, :], where.put(self.weights)[None, None, :]
        lasts = [where.put(np.ascontiguousarray(last)) for last in self.last.T]

        def factor(last: Any) -> Any:
            own_o, own_z = xp.take(o, last, axis=1), xp.take(z, last, axis=1)
            return own_z[:, :, None] * (1.0 - t) + own_o[:, :, None] * t

        product = w + 0.0 * factor(lasts[0])
        for last in lasts:
            product = product * factor(last)
        total = where.zeros((x.shape[0], x.shape[1], self.leaf_values.shape[1]), xp.float64)
        for k, last in enumerate(lasts):
            own = factor(last)
            some = own > 0.0  # a factor 0 has o = z = 0
            others = xp.where(some, product / xp.where(some, own, one), where.full(0.0))
            gain = xp.take(o, last, axis=1) - xp.take(z, last, axis=1)
            total = total + self._by_feature(xp.sum(others, axis=2) * gain, k, x.shape[1], where)
        return total

    def _by_feature(self, gain: Any, k: int, p: int, where: Where) -> Any:
        """Gains [row, leaf] of the leaves' k-th features times values: [row, feature, output]."""
        xp, known = where.xp, self.last[:, k] < len(self.nodes)
        feature = self.feature[np.where(known, self.last[:, k], 0)]
        one_hot = (feature[:, None] == np.arange(p)) & known[:, None]
        columns = [
            xp.matmul(gain, where.put(one_hot * values[:, None])) for values in self.leaf_values.T
        ]
        return xp.stack(columns, axis=2)
