"""The best split of a node by trying them all, in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np


def mass(criterion: str, y: np.ndarray, w: np.ndarray) -> float:
    """Weight times impurity of rows."""
    if criterion in ("squared_error", "poisson"):
        mean = np.average(y, weights=w)
        if criterion == "squared_error":
            return float(np.sum(w * (y - mean) ** 2))
        some = y > 0
        return float(np.sum((w * y)[some] * np.log(y[some] / mean)))
    share = np.array([w[y == k].sum() for k in np.unique(y)]) / w.sum()
    total = w.sum()
    if criterion == "error":
        return float(total * (1 - share.max()))
    if criterion == "entropy":
        return float(-total * np.sum(share * np.log2(share)))
    return float(total * (1 - np.sum(share**2)))


@dataclass(frozen=True)
class Node:
    """Rows of a node, and how it may be split."""

    criterion: str
    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    categorical: tuple[int, ...] = ()
    min_rows: int = 1

    def after(self, left: np.ndarray) -> float:
        """Weight times impurity of both children; inf where they are not allowed."""
        if min(left.sum(), (~left).sum()) < self.min_rows:
            return np.inf
        if self.criterion == "poisson" and min(self.y[left].sum(), self.y[~left].sum()) <= 0:
            return np.inf
        return sum(mass(self.criterion, self.y[side], self.w[side]) for side in (left, ~left))

    def cuts(self, feature: int) -> Iterator[np.ndarray]:
        """Which rows go left, for every threshold and both sides of missing values."""
        x = self.X[:, feature]
        for cut, to_left in product(np.unique(x[~np.isnan(x)]), (False, True)):
            yield (x <= cut) | (np.isnan(x) & to_left)

    def subsets(self, feature: int, sizes: range | None = None) -> Iterator[np.ndarray]:
        """Which rows go left, for every set of categories and both sides of missing values."""
        x = self.X[:, feature]
        known = np.unique(x[~np.isnan(x)]).tolist()
        for size in sizes or range(1, len(known) + 1):
            for chosen, to_left in product(combinations(known, size), (False, True)):
                yield np.isin(x, chosen) | (np.isnan(x) & to_left)

    def best(self) -> float:
        """The lowest mass after any split at all."""
        lowest = np.inf
        for f in range(self.X.shape[1]):
            ways = self.subsets(f) if f in self.categorical else self.cuts(f)
            lowest = min([lowest, *map(self.after, ways)])
        return lowest

    @property
    def pure(self) -> bool:
        return len(np.unique(self.y)) == 1
