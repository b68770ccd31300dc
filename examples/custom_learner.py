"""A weak learner of your own: intervals. It answers one value inside (a, b] and another outside.

A stump cuts a feature once; a bump needs two of them, and the first of the two gains nothing by
itself. An interval finds the bump in one round. The three steps of CONTRIBUTING.md:

1. the round: what was learnt (a frozen dataclass);
2. the learner: `seek` adds up gradients, `best` finds the candidate, `leaves` says where training
   rows are, `added` and `outcome` what the round means for other rows and for the model;
3. an estimator that uses it.

Run it: python examples/custom_learner.py
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ensemble_gpu import BoostingRegressor
from ensemble_gpu.learners.protocol import Candidate, Outcome, RoundWeights
from ensemble_gpu.learners.stump import Stump, StumpTables
from ensemble_gpu.learners.tree import TreeLeaves

INSIDE, OUTSIDE, MISSING = 0, 1, 2


@dataclass(frozen=True)
class Interval:
    """A round: codes first + 1 ... last of the feature are inside; -1: no lower end."""

    name: ClassVar[str] = "interval"

    feature: int
    first: int
    last: int
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool = False
    weights: RoundWeights | None = None
    trail: Any = None

    def with_values(self, values: np.ndarray, alpha: float) -> Interval:
        return replace(self, values=values, alpha=alpha)

    def stumps(self) -> list[Stump]:
        """The same function as a sum of stumps: up at the lower end, down at the upper one."""
        inside, outside = self.values[:, INSIDE], self.values[:, OUTSIDE]
        zero = np.zeros_like(inside)
        below = outside if self.first >= 0 else inside
        upper = np.stack([below, below + (outside - inside), zero], axis=1)
        parts = [Stump(self.feature, self.last, MISSING, upper, self.alpha, self.error)]
        if self.first >= 0:
            lower = np.stack([zero, inside - outside, zero], axis=1)
            parts.append(Stump(self.feature, self.first, MISSING, lower, self.alpha, 0.0))
        return parts


class Intervals(StumpTables):
    """The interval that fits -gradient best: the largest sum of S^2 / H inside and outside."""

    name = "interval"

    def __init__(self, engine: Any, matrix: Any) -> None:
        super().__init__(matrix)
        self.engine = engine

    def seek(self, gradients: Any) -> bool:
        G, H = gradients.format.sums(self.matrix.codes, gradients.packed)
        self.S, self.H = -G, H
        return bool(G.any())

    def best(self, barred: list[int]) -> Candidate | None:
        found = [self._best_of(f) for f in range(self.matrix.codes.n_features) if f not in barred]
        gain, feature, first, last = max(found, key=lambda one: one[0])
        if gain <= 0.0:
            return None
        S, H = (self._sums(a[:, feature], first, last) for a in (self.S, self.H))
        c = np.where(H > 0, S / np.maximum(H, 1), 0.0)
        c[:, MISSING] = 0.0

        def made(values: np.ndarray, alpha: float, error: float, trail: Any) -> Interval:
            return Interval(feature, first, last, values, alpha, error, trail=trail)

        leaves = self._leaves(feature, first, last)
        return Candidate(c, S, gain, leaves, made, [feature])

    def _best_of(self, feature: int) -> tuple[float, int, int, int]:
        """(gain, feature, first, last) over all pairs of ends; 0 where nothing can be cut."""
        n = len(self.matrix.edges[feature])
        if n == 0:
            return 0.0, feature, -1, 0
        gain = np.zeros((n + 1, n))
        for s, h in zip(self.S[:, feature, :-1], self.H[:, feature, :-1], strict=True):
            S, H = np.append(0.0, np.cumsum(s)), np.append(0.0, np.cumsum(h))
            inside_s, inside_h = (a[None, 1 : n + 1] - a[: n + 1, None] for a in (S, H))
            gain += inside_s**2 / np.maximum(inside_h, 1.0)
            gain += (S[-1] - inside_s) ** 2 / np.maximum(H[-1] - inside_h, 1.0)
        gain[np.tril_indices(n + 1, -1, n)] = 0.0  # the upper end is beyond the lower one
        first, last = np.unravel_index(np.argmax(gain), gain.shape)
        return float(gain[first, last]), feature, int(first) - 1, int(last)

    def _sums(self, sums: np.ndarray, first: int, last: int) -> np.ndarray:
        """Sums [output, leaf] of a feature's sums [output, code]."""
        inside = sums[:, first + 1 : last + 1].sum(axis=1)
        missing = sums[:, -1]
        return np.stack([inside, sums.sum(axis=1) - inside - missing, missing], axis=1)

    def _leaves(self, feature: int, first: int, last: int) -> TreeLeaves:
        where, xp = self.engine.where, self.engine.where.xp
        table = np.full(self.matrix.codes.width, OUTSIDE)
        table[first + 1 : last + 1], table[-1] = INSIDE, MISSING
        column = xp.astype(self.engine.column(self.matrix.codes, feature), xp.int64)
        return TreeLeaves(self.engine, xp.take(where.put(table), column), 3)

    def leaves(self, round_: Interval) -> TreeLeaves:
        return self._leaves(round_.feature, round_.first, round_.last)

    def random_state(self) -> None:
        return None

    def restore(self, random_state: Any) -> None:
        pass

    def added(self, round_: Any, X: Any, where: Any) -> Any:
        return sum(super(Intervals, self).added(stump, X, where) for stump in round_.stumps())

    def round_info(self, round_: Any) -> dict[str, Any]:
        upper = self.matrix.threshold(round_.feature, round_.last)
        return {"feature": round_.feature, "threshold": upper, "values": round_.values.copy()}

    def outcome(self, rounds: Sequence[Any], start: np.ndarray, constant: np.ndarray) -> Outcome:
        stumps = [stump for round_ in rounds for stump in round_.stumps()]
        return super().outcome(stumps, start, constant)


class IntervalRegressor(BoostingRegressor):
    """Gradient boosting of intervals, for every loss of BoostingRegressor."""

    def _learner(self, binned: Any, descent: Any) -> Intervals:
        return Intervals(binned.engine, binned.matrix)


def bumps(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Three bumps on three of five features."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-1.0, 1.0, size=(n, 5))
    y = sum(3.0 * (np.abs(X[:, f] - 0.2 * f) < 0.15) for f in range(3))
    return X, y + generator.normal(scale=0.3, size=n)


def main() -> None:
    X, y = bumps()
    for n_rounds in (3, 10, 30):
        scores = []
        for kind in (BoostingRegressor, IntervalRegressor):
            model = kind(n_estimators=n_rounds, learning_rate=1.0, max_depth=1)
            model.fit(X[:1000], y[:1000])
            scores.append(model.score(X[1000:], y[1000:]))
        print(f"{n_rounds:3d} rounds: R^2 of stumps {scores[0]:.3f}, of intervals {scores[1]:.3f}")
    absolute = IntervalRegressor("absolute", n_estimators=30, max_depth=1).fit(X, y)
    print(f"any loss: mean |error| {np.abs(absolute.predict(X) - y).mean():.3f}")
    print(absolute.model_)


if __name__ == "__main__":
    main()
