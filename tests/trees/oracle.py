"""The best split of a node by trying them all, and whole trees of such splits; plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, pairwise, product

import numpy as np

from ensemble_gpu.kernels.host.scalar import log


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


# --- whole trees --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """How the oracle's tree may grow; `signs[f]`: +1 (-1), predictions rise (fall) with f."""

    criterion: str
    n_classes: int = 0
    max_depth: int = 1000
    min_rows: int = 1
    min_weight: float = 0.0
    signs: tuple[int, ...] = ()
    categorical: tuple[int, ...] = ()


@dataclass(frozen=True)
class Split:
    """Which rows go left. `test` is a threshold, or the set of categories that go left."""

    feature: int
    test: float | frozenset[int]
    missing_left: bool
    left: np.ndarray


@dataclass(frozen=True)
class TreeOracle:
    """A tree grown in plain Python by the definitions, node after node.

    Weights and targets are whole numbers, so that sums are exact, and targets of a regression lie
    around 0. Of equal scores the first counts: in order of features, then of thresholds, missing
    values to the left before to the right.
    """

    X: np.ndarray
    y: np.ndarray
    w: np.ndarray
    limits: Limits

    def sums(self, rows: np.ndarray) -> list[float]:
        """Weight of each class; of a regression the weight H and the sum G of weight times y."""
        y, w = self.y[rows], self.w[rows]
        if self.limits.n_classes:
            return [float(w[y == k].sum()) for k in range(self.limits.n_classes)]
        return [float(w.sum()), float((w * y).sum())]

    def score(self, rows: np.ndarray) -> float:
        """A child's share of the score: minus its weight times its impurity, up to a constant.

        gini sum W_k^2 / W (two classes: -2 W_0 W_1 / W)    entropy sum W_k ln W_k - W ln W
        error max W_k    squared_error G^2 / H    poisson G ln(G / H), G above 0
        """
        sums, criterion = self.sums(rows), self.limits.criterion
        if criterion == "squared_error":
            return sums[1] * sums[1] / sums[0]
        if criterion == "poisson":
            return sums[1] * log(sums[1] / sums[0]) if sums[1] > 0 else -np.inf
        if criterion == "error":
            return max(sums)
        whole = sum(sums)
        if criterion == "entropy":
            return sum(s * log(s) for s in sums if s > 0) - whole * log(whole)
        if len(sums) == 2:
            return -2.0 * (sums[0] * sums[1] / whole)
        return sum(s * s for s in sums) / whole

    def mean(self, rows: np.ndarray) -> float:
        """What monotone constraints compare: the share of class 1, or the mean of y."""
        sums = self.sums(rows)
        return sums[1] / (sum(sums) if self.limits.n_classes else sums[0])

    def prefixes(self, x: np.ndarray, order: list[float]) -> Iterator[tuple[int, bool, np.ndarray]]:
        """(i, missing left, who goes left) where the first i values of an order do."""
        missing = np.isnan(x)
        for i in range(1, len(order) + 1):
            first = np.isin(x, order[:i])
            if i < len(order):
                if missing.any():
                    yield i, True, first | missing
                yield i, False, first
            elif missing.any():
                yield i, False, first

    def orders(self, rows: np.ndarray, x: np.ndarray, present: list[float]) -> list[list[float]]:
        """Categories by the mean response; for more than two classes by the share of each."""

        def share(value: float, k: int) -> float:
            sums = self.sums(rows[x == value])
            return sums[k] / (sum(sums) if self.limits.n_classes else sums[0])

        classes = [1] if self.limits.n_classes < 3 else range(self.limits.n_classes)[::-1]
        return [sorted(present, key=lambda value, k=k: share(value, k)) for k in classes]

    def ways(self, rows: np.ndarray) -> Iterator[Split]:
        """Every split that is tried, in order of preference."""
        for f in range(self.X.shape[1]):
            x = self.X[rows, f]
            present = np.unique(x[~np.isnan(x)]).tolist()
            if f not in self.limits.categorical:
                middles = [0.5 * (a + b) for a, b in pairwise(present)] + [np.inf]
                for i, to_left, left in self.prefixes(x, present):
                    yield Split(f, middles[i - 1], to_left, left)
                continue
            for order in self.orders(rows, x, present):
                for i, to_left, left in self.prefixes(x, order):
                    yield Split(f, frozenset(int(v) for v in order[:i]), to_left, left)

    def allowed(self, rows: np.ndarray, split: Split, bounds: tuple[float, float]) -> bool:
        limits, sides = self.limits, (rows[split.left], rows[~split.left])
        if min(map(len, sides)) < limits.min_rows:
            return False
        if min(self.w[side].sum() for side in sides) < limits.min_weight * self.w.sum():
            return False
        sign = limits.signs[split.feature] if limits.signs else 0
        if sign == 0:
            return True
        low, high = (self.mean(side) for side in sides[::sign])
        return bounds[0] <= low <= high <= bounds[1]

    def best(self, rows: np.ndarray, bounds: tuple[float, float]) -> Split | None:
        best, highest = None, -np.inf
        for split in self.ways(rows):
            if not self.allowed(rows, split, bounds):
                continue
            score = self.score(rows[split.left]) + self.score(rows[~split.left])
            if score > highest:
                best, highest = split, score
        return best

    def value(self, rows: np.ndarray, bounds: tuple[float, float]) -> list[float]:
        """Shares of the classes, or the mean, within the bounds of monotone ancestors."""
        if self.limits.n_classes > 2:
            return [s / self.w[rows].sum() for s in self.sums(rows)]
        mean = min(max(self.mean(rows), bounds[0]), bounds[1])
        return [1.0 - mean, mean] if self.limits.n_classes else [mean]

    def grow(
        self, rows: np.ndarray | None = None, bounds: tuple[float, float] = (-np.inf, np.inf),
        depth: int = 0,
    ) -> list[tuple]:  # fmt: skip
        """Nodes in preorder: (feature, test, missing left, rows, value); leaves have no feature."""
        rows = np.arange(len(self.y)) if rows is None else rows
        leaf = (None, None, None, len(rows), self.value(rows, bounds))
        pure = len(np.unique(self.y[rows])) == 1
        if pure or depth == self.limits.max_depth or len(rows) < max(2, 2 * self.limits.min_rows):
            return [leaf]
        split = self.best(rows, bounds)
        if split is None:
            return [leaf]
        sides = rows[split.left], rows[~split.left]
        own = [bounds, bounds]
        sign = self.limits.signs[split.feature] if self.limits.signs else 0
        if sign:
            middle = 0.5 * (self.mean(sides[0]) + self.mean(sides[1]))
            own = [(bounds[0], middle), (middle, bounds[1])][::sign]
        seen = bool(np.isnan(self.X[rows, split.feature]).any())
        missing_left = split.missing_left if seen else len(sides[0]) >= len(sides[1])
        inner = (split.feature, split.test, missing_left, *leaf[3:])
        below = (self.grow(side, b, depth + 1) for side, b in zip(sides, own, strict=True))
        return [inner, *chain.from_iterable(below)]
