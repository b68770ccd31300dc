"""Sets of categories for AdaBoost's stumps: x in A goes left.

The cost of a leaf, sqrt(W+ W-), W+ W- / (W+ + W-) or min(W+, W-) (boosting/rules.py), is a concave
function of (W+, W-) that grows in proportion to them. So with two classes one of the best sets is
the first categories in order of W+ / (W+ + W-) (Breiman et al. 1984, theorem 4.5): n categories
need n - 1 scores, and no set is better. With K classes the best is taken of K orders, by each
class's share of the weight. "single": each category alone.

Sums of all features are added up by the engine, in integers; in an order of its codes a set is
a threshold, and `choose` (kernels/reference/score.py) scores it. All of it is done on the host, in
operations that IEEE 754 rounds correctly, so the model is the same on every engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.data.categories import Categories
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.protocol import MAJORITY, TIE, Criterion, Split
from ensemble_gpu.kernels.reference.score import choose


def left_first(left: np.ndarray) -> np.ndarray:
    """Codes in an order in which those on the left come first, and missing last."""
    return np.concatenate([np.flatnonzero(left), np.flatnonzero(~left), [len(left)]])


class CategorySets:
    """The categorical features of binned rows, and their best set in a round."""

    def __init__(self, matrix: BinnedMatrix, categories: Categories, single: bool) -> None:
        self.sizes = {f: len(matrix.edges[f]) + 1 for f in sorted(categories.values)}
        counts = matrix.codes.counts[:, :, -1].sum(axis=0)
        self.absent = {f: bool(counts[f]) for f in self.sizes}
        self.n_codes, self.single = matrix.codes.width - 1, single

    def thresholds(self, n_thresholds: np.ndarray) -> np.ndarray:
        """What the engine may try, which takes codes for ordered: of single categories the first.

        So it finds a split wherever there is one.
        """
        n_thresholds = n_thresholds.copy()
        if self.single:
            at = list(self.sizes)
            n_thresholds[at] = np.minimum(n_thresholds[at], 1)
        return n_thresholds

    def best(
        self, split: Split, sums: np.ndarray, scale: np.ndarray, criterion: Criterion
    ) -> tuple[Split, np.ndarray | None]:
        """The better of the engine's split and the best set, and which codes go left in it.

        None: the split is a threshold. Ties (kernels/protocol.py) go to the lower feature.
        """
        found, left = self._best_set(split, sums, scale, criterion)
        if found is None:
            if split.feature not in self.sizes:
                return split, None
            left[: split.bin + 1] = True
            return split, left
        return found, left

    def _best_set(
        self, split: Split, sums: np.ndarray, scale: np.ndarray, criterion: Criterion
    ) -> tuple[Split | None, np.ndarray]:
        """The best set, if it is better than the split, and what goes left in it."""
        left = np.zeros(self.n_codes, dtype=bool)
        every = list(self._orders(sums, scale, criterion.kind))
        if not every:
            return None, left
        features, orders, counts = zip(*every, strict=True)
        tried = np.zeros((sums.shape[0], len(orders), sums.shape[2]), dtype=np.int64)
        for k, (f, order) in enumerate(zip(features, orders, strict=True)):
            tried[:, k, : len(order)] = sums[:, f, order]
            tried[:, k, -1] = sums[:, f, -1]
            if counts[k] == 0:  # all of them against the missing ones
                tried[:, k, 0] = tried[:, k, : len(order)].sum(axis=1)
                tried[:, k, 1:-1] = 0
        most = np.array([c or 1 for c in counts], dtype=np.int64)
        found = choose(tried, split.largest, scale, replace(criterion, n_thresholds=most), NUMPY)
        assert found is not None
        f, order, count = (a[found.feature] for a in (features, orders, counts))
        nearly = found.score <= split.score * TIE and f < split.feature
        if not nearly and not found.score * TIE < split.score:
            return None, left
        left[order[: found.bin + 1] if count else order] = True
        return found._replace(feature=f), left

    def _orders(
        self, sums: np.ndarray, scale: np.ndarray, kind: int
    ) -> Iterator[tuple[int, np.ndarray, int]]:
        """(feature, codes in an order, how many thresholds of it); 0: all codes go left."""
        for f, n in self.sizes.items():
            codes = np.arange(n)
            if self.single:
                for code in codes if n > 1 else []:
                    yield f, np.concatenate([[code], np.delete(codes, code)]), 1
                if self.absent[f]:
                    yield f, codes, 0
                continue
            weight, count = scale[:, None] * sums[:, f, :n], n - 1 + self.absent[f]
            for share in _shares(weight, kind) if count else ():
                yield f, np.argsort(share, kind="stable"), count


def _shares(weight: np.ndarray, kind: int) -> Iterator[np.ndarray]:
    """Each class's share of the weight [group, code] of every code; of two classes one's."""
    if kind == MAJORITY:
        whole, parts = weight[0], weight if len(weight) > 2 else weight[1:]
        for row in weight[1:]:
            whole = whole + row
        pairs = [(part, whole) for part in parts]
    else:
        pairs = [(weight[g], weight[g] + weight[g + 1]) for g in range(0, len(weight), 2)]
    for part, whole in pairs:
        filled = whole > 0.0
        yield np.where(filled, part / np.where(filled, whole, 1.0), 0.0)
