"""The weak learner of gradient boosting: the stump that fits -gradient best.

In general h fits -gradient by (weighted) least squares, each leaf with a value of its own ("real").
For h in {-1, +1} ("discrete") the same sums give the stump of the lowest weighted error with
weights |gradient|, which for a margin loss phi are -phi'(y F) (kernels/host/gain.py: formulas).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.host.gain import Gain, best_gain
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT


@dataclass(frozen=True)
class SplitConstraints:
    """Which stumps and trees are allowed.

    `signs[f]` = +1 (-1): feature f may only raise (lower) the output. `n_features` are drawn
    anew each round by `generator`. `categorical[f]`: trees split it by sets of categories, or with
    `one_category` by a single one.
    """

    learn_missing: bool
    votes: bool
    signs: np.ndarray
    n_features: int
    generator: np.random.Generator
    categorical: np.ndarray
    one_category: bool = False


class StumpLearner:
    """Finds the best stump of gradient sums, within a constraints."""

    def __init__(self, matrix: BinnedMatrix, constraints: SplitConstraints) -> None:
        self.constraints = constraints
        self.n_thresholds = matrix.n_thresholds(constraints.learn_missing)
        self.candidates = np.flatnonzero(self.n_thresholds)
        counts = matrix.codes.counts.sum(axis=0)
        self.has_missing = counts[:, -1] > 0
        self.rows_up_to = np.cumsum(counts[:, :-1], axis=1)

    def best(self, S: np.ndarray, H: np.ndarray, barred: list[int]) -> Gain | None:
        """The best split of S, H [output, feature, code] among this round's features.

        Of all features where none that was drawn has one; never of the barred ones.
        """
        constraints, allowed = self.constraints, self.n_thresholds.copy()
        allowed[barred] = 0
        tried = [allowed]
        if not barred and constraints.n_features < len(allowed) and len(self.candidates):
            size = min(constraints.n_features, len(self.candidates))
            drawn = np.zeros_like(allowed)
            at = constraints.generator.choice(self.candidates, size, replace=False)
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
