"""Stumps: one threshold on one feature, a value a leaf.

The stump of gradient boosting fits -gradient best. In general h fits -gradient by (weighted) least
squares, each leaf with a value of its own ("real"). For h in {-1, +1} ("discrete") the same sums
give the stump of the lowest weighted error with weights |gradient|, which for a margin loss phi are
-phi'(y F) (kernels/host/gain.py: formulas). A sum of stumps is one table a feature: AdditiveModel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import column
from ensemble_gpu.data.interactions import Interactions
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.host.gain import Gain, best_gain
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT, Cut, Engine
from ensemble_gpu.kernels.residuals import Slots
from ensemble_gpu.learners.protocol import (
    Candidate,
    Outcome,
    RoundWeights,
    alphas_and_errors,
    numbered,
    shares,
)
from ensemble_gpu.model.additive import AdditiveModel, Rounds, stump_values


class Stump(NamedTuple):
    """A round: x[feature] in a bin <= `bin` goes left, NaN to `missing_leaf`.

    `values[output, leaf]` is what the model adds, `alpha` the coefficient in it. With `left`, a
    bool for every code, the feature is categorical, and these codes go left, whatever `bin` is. A
    tuple, because a dataclass would cost a small fit some microseconds a round.
    """

    feature: int
    bin: int
    missing_leaf: int
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool = False
    weights: RoundWeights | None = None
    trail: Any = None
    left: np.ndarray | None = None

    @property
    def name(self) -> str:
        return "stump"

    def with_values(self, values: np.ndarray, alpha: float) -> Stump:
        return self._replace(values=values, alpha=alpha)


@dataclass(frozen=True)
class SplitConstraints:
    """Which stumps and trees are allowed.

    `signs[f]` = +1 (-1): feature f may only raise (lower) the output. `n_features` are drawn
    anew each round, from `seed` on. `categorical[f]`: trees split it by sets of categories, or with
    `one_category` by a single one. `interactions`: which features may meet in a tree (None: all).
    """

    learn_missing: bool
    votes: bool
    signs: np.ndarray
    n_features: int
    seed: int
    categorical: np.ndarray
    one_category: bool = False
    interactions: Interactions | None = None


# (alpha, error) of all rounds to what each is worth: features are important by the sum of it.
Worth = Callable[[np.ndarray, np.ndarray], np.ndarray]


def worth_of_gains(alpha: np.ndarray, error: np.ndarray) -> np.ndarray:
    """What a round of gradient boosting is worth: its gain."""
    return error


class StumpTables:
    """Stumps in a model: rounds become one table a feature."""

    name, by_feature = "stump", True

    def __init__(self, matrix: BinnedMatrix, worth: Worth = worth_of_gains) -> None:
        self.matrix, self.worth = matrix, worth

    def added(self, stump: Stump, X: Any, where: Where) -> Any:
        threshold = self.matrix.threshold(stump.feature, stump.bin)
        x = column(X, stump.feature)
        return stump_values(x, threshold, stump.missing_leaf, stump.values, where)

    def round_info(self, stump: Stump) -> dict[str, Any]:
        threshold = self.matrix.threshold(stump.feature, stump.bin)
        return {"feature": stump.feature, "threshold": threshold, "values": stump.values.copy()}

    def outcome(self, rounds: Sequence[Stump], start: np.ndarray, constant: np.ndarray) -> Outcome:
        p = len(self.matrix.edges)
        table = self._table(rounds, len(start))
        model = AdditiveModel(table, p, start if rounds else constant)
        worth = np.maximum(self.worth(table.alpha, table.error), 0.0)
        return Outcome(model, shares(np.bincount(table.feature, worth, p)))

    def _table(self, rounds: Sequence[Stump], n_outputs: int) -> Rounds:
        """With thresholds instead of bins."""
        values = np.array([s.values for s in rounds], dtype=np.float64)
        return Rounds(
            np.array([s.feature for s in rounds], dtype=np.int64),
            np.array([self.matrix.threshold(s.feature, s.bin) for s in rounds], dtype=np.float64),
            np.array([s.missing_leaf for s in rounds], dtype=np.int64),
            values.reshape(len(rounds), n_outputs, N_LEAVES),
            *alphas_and_errors(rounds),
        )


class StumpSearch:
    """Finds the best stump of gradient sums, within constraints."""

    def __init__(self, matrix: BinnedMatrix, constraints: SplitConstraints) -> None:
        self.constraints = constraints
        self.n_thresholds = matrix.n_thresholds(constraints.learn_missing)
        self.candidates = np.flatnonzero(self.n_thresholds)
        counts = matrix.codes.counts.sum(axis=0)
        self.has_missing = counts[:, -1] > 0
        self.rows_up_to = np.cumsum(counts[:, :-1], axis=1)
        self.draws = constraints.n_features < len(self.n_thresholds) and len(self.candidates) > 0
        self.generator = np.random.default_rng(constraints.seed)

    def best(self, S: np.ndarray, H: np.ndarray, barred: list[int]) -> Gain | None:
        """The best split of S, H [output, feature, code] among this round's features.

        Of all features where none that was drawn has one; never of the barred ones.
        """
        constraints, allowed = self.constraints, self.n_thresholds.copy()
        allowed[barred] = 0
        tried = [allowed]
        if self.draws and not barred:
            size = min(constraints.n_features, len(self.candidates))
            drawn = np.zeros_like(allowed)
            at = self.generator.choice(self.candidates, size, replace=False)
            drawn[at] = allowed[at]
            tried.insert(0, drawn)
        for thresholds in tried:
            split = best_gain(
                S, H, thresholds, constraints.learn_missing, constraints.votes, constraints.signs
            )
            if split is not None:
                return split
        return None

    def missing_leaf(self, split: Gain) -> int:
        """Where missing values go; to the fuller side if there were none to learn from."""
        if split.missing_leaf == ABSTAIN or self.has_missing[split.feature]:
            return split.missing_leaf
        left = self.rows_up_to[split.feature, split.bin]
        return LEFT if 2 * left >= self.rows_up_to[split.feature, -1] else RIGHT

    def random_state(self) -> Any:
        """The generator's state after the draws so far; None where nothing is drawn."""
        return self.generator.bit_generator.state if self.draws else None

    def restore(self, random_state: Any) -> None:
        if random_state is not None:
            self.generator.bit_generator.state = random_state


def ordered(steps: np.ndarray, sign: int) -> np.ndarray:
    """Steps [output, leaf] that rise (sign +1) or fall (-1) from left to right, as they may.

    Two in the wrong order become one: the one nearer to 0, or 0 where it lies between them.
    """
    left, right = steps[:, LEFT], steps[:, RIGHT]
    wrong = sign * (right - left) < 0.0
    middle = np.median(np.stack([left, np.zeros_like(left), right]), axis=0)
    out = steps.copy()
    out[:, LEFT], out[:, RIGHT] = (np.where(wrong, middle, side) for side in (left, right))
    return out


@dataclass(frozen=True)
class StumpLeaves:
    """The leaves of a stump: a feature's codes, cut."""

    engine: Engine
    column: Any
    cut: Cut

    def moved(self, F: Any, rows: slice, values: np.ndarray, out: Any = None) -> Any:
        return self.engine.move(F, self.column[rows], self.cut, values, out)

    def sums(self, q: Any, rows: slice) -> np.ndarray:
        return self.engine.leaf_sums(q, self.column[rows], self.cut)

    def _leaf_of_codes(self) -> np.ndarray:
        """The leaf of every code."""
        leaf = np.where(np.arange(self.cut.missing_code + 1) <= self.cut.bin, LEFT, RIGHT)
        leaf[self.cut.missing_code] = self.cut.missing_leaf
        return leaf

    def lookup(self, values: np.ndarray) -> tuple[Any, np.ndarray]:
        return self.column, np.take(values, self._leaf_of_codes(), axis=1)

    def slots(self, chosen: np.ndarray) -> Slots:
        return Slots(self.column, numbered(chosen)[self._leaf_of_codes()])


class Stumps(StumpTables):
    """Stumps from gradient sums per (output, feature, code)."""

    def __init__(self, engine: Engine, matrix: BinnedMatrix, constraints: SplitConstraints) -> None:
        super().__init__(matrix)
        self.engine, self.search = engine, StumpSearch(matrix, constraints)
        self.sums: tuple[np.ndarray, np.ndarray] | None = None

    def seek(self, gradients: Any) -> bool:
        G, H = gradients.format.sums(self.matrix.codes, gradients.packed)
        self.sums = -G, H
        return bool(G.any())

    def best(self, barred: list[int]) -> Candidate | None:
        assert self.sums is not None
        return self._candidate(self.search.best(*self.sums, barred))

    def best_of_output(self, k: int, barred: list[int]) -> Candidate | None:
        """The candidate that fits the gradients of output k alone best."""
        assert self.sums is not None
        S, H = (sums[k : k + 1] for sums in self.sums)
        return self._candidate(self.search.best(S, H, barred))

    def _candidate(self, split: Gain | None) -> Candidate | None:
        if split is None:
            return None
        missing_leaf = self.search.missing_leaf(split)

        def made(values: np.ndarray, alpha: float, error: float, trail: Any) -> Stump:
            return Stump(split.feature, split.bin, missing_leaf, values, alpha, error, trail=trail)

        sign = int(self.search.constraints.signs[split.feature])
        leaves = self._leaves(split.feature, split.bin, missing_leaf)
        return Candidate(
            split.c, split.S, split.gain, leaves, made, [split.feature],
            partial(ordered, sign=sign) if sign else None,
        )  # fmt: skip

    def leaves(self, stump: Stump) -> StumpLeaves:
        return self._leaves(stump.feature, stump.bin, stump.missing_leaf)

    def _leaves(self, feature: int, last_bin: int, missing_leaf: int) -> StumpLeaves:
        codes = self.matrix.codes
        cut = Cut(last_bin, codes.width - 1, missing_leaf)
        return StumpLeaves(self.engine, self.engine.column(codes, feature), cut)

    def random_state(self) -> Any:
        return self.search.random_state()

    def restore(self, random_state: Any) -> None:
        self.search.restore(random_state)
