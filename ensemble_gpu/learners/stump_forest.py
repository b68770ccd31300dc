"""AdaBoost's stumps where some features are categorical: a sum of trees of depth 1 is a Forest.

A test is a threshold or a set of categories. Missing values and unknown categories go to the side
that was learnt for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.categories import Categories
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.protocol import LEFT, RIGHT
from ensemble_gpu.kernels.tree_protocol import LEAF, subset_words
from ensemble_gpu.learners.protocol import Outcome, alphas_and_errors, shares
from ensemble_gpu.learners.stump import Stump, Worth
from ensemble_gpu.model.additive import stump_values
from ensemble_gpu.model.forest import Forest
from ensemble_gpu.model.nodes import Nodes


class StumpForest:
    """Stumps in a model: a round becomes a root and two leaves."""

    name, by_feature = "stump", True

    def __init__(self, matrix: BinnedMatrix, categories: Categories, worth: Worth) -> None:
        self.matrix, self.categories, self.worth = matrix, categories, worth

    def added(self, stump: Stump, X: Any, where: Where) -> Any:
        """X holds the numbers of categories, NaN where they are missing or unknown."""
        x = X[:, stump.feature]
        if stump.left is None:
            threshold = self.matrix.threshold(stump.feature, stump.bin)
            return stump_values(x, threshold, stump.missing_leaf, stump.values, where)
        xp = where.xp
        leaf = np.append(np.where(stump.left, LEFT, RIGHT), stump.missing_leaf)
        absent = where.full(len(leaf) - 1, x.dtype)
        code = xp.astype(xp.where(xp.isnan(x), absent, x), xp.int64)
        return xp.take(where.put(np.ascontiguousarray(stump.values[:, leaf].T)), code, axis=0)

    def round_info(self, stump: Stump) -> dict[str, Any]:
        told = {"feature": stump.feature, "values": stump.values.copy()}
        if stump.left is None:
            return told | {"threshold": self.matrix.threshold(stump.feature, stump.bin)}
        names = self.categories.names(stump.feature)
        left = [name for name, goes in zip(names, stump.left, strict=False) if goes]
        return told | {"threshold": np.nan, "categories": left}

    def outcome(self, rounds: Sequence[Stump], start: np.ndarray, constant: np.ndarray) -> Outcome:
        p = len(self.matrix.edges)
        alpha, error = alphas_and_errors(rounds)
        worth = np.maximum(self.worth(alpha, error), 0.0)
        feature = np.array([s.feature for s in rounds], dtype=np.int64)
        model = self._forest(rounds, start if rounds else constant)
        return Outcome(model, shares(np.bincount(feature, worth, p)))

    def _forest(self, rounds: Sequence[Stump], intercept: np.ndarray) -> Forest:
        n, p = len(rounds), len(self.matrix.edges)
        counts = self.matrix.codes.counts.sum(axis=0)
        root = 3 * np.arange(n)
        feature, left, right, subset = (np.full(3 * n, LEAF) for _ in range(4))
        threshold, missing_left = np.full(3 * n, np.nan), np.zeros(3 * n, dtype=bool)
        value, rows = np.zeros((3 * n, len(intercept))), np.zeros(3 * n, dtype=np.int64)
        feature[root] = [s.feature for s in rounds]
        left[root], right[root] = root + 1, root + 2
        missing_left[root] = [s.missing_leaf == LEFT for s in rounds]
        subsets: list[np.ndarray] = []
        for at, stump in zip(root.tolist(), rounds, strict=True):
            value[at + 1], value[at + 2] = stump.values[:, LEFT], stump.values[:, RIGHT]
            goes = np.arange(counts.shape[1] - 1) <= stump.bin
            if stump.left is None:
                threshold[at] = self.matrix.threshold(stump.feature, stump.bin)
            else:
                goes, subset[at] = stump.left, len(subsets)
                subsets.append(self._words(stump))
            here = counts[stump.feature]
            rows[at], rows[at + 1] = here.sum(), here[:-1][goes].sum() + here[-1] * missing_left[at]
            rows[at + 2] = rows[at] - rows[at + 1]
        none = np.zeros(3 * n)
        return Forest(
            Nodes(feature, threshold, missing_left, left, right, subset, value, none, rows, rows),
            root,
            p,
            subsets=np.array(subsets, dtype=np.uint64) if subsets else None,
            categories=self.categories.values,
            intercept=intercept,
            average=False,
        )

    def _words(self, stump: Stump) -> np.ndarray:
        """The categories that go left, a bit each."""
        assert stump.left is not None
        mask = self.categories.mask(len(self.matrix.edges))
        words = np.zeros(subset_words(mask, self.matrix.codes.width), dtype=np.uint64)
        known = stump.left[: len(self.categories.values[stump.feature])]
        for code in np.flatnonzero(known).tolist():
            words[code // 64] |= np.uint64(1 << code % 64)
        return words
