"""The boosting loop: one for every loss, learner and strategy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ensemble_gpu.boosting.strategy import Strategy, Stump
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.kernels.protocol import N_LEAVES
from ensemble_gpu.model.additive import Rounds

# Called after each round with (rounds so far, the stump); a text means "stop, because ...".
Watcher = Callable[[int, Stump], str | None]


class Trace:
    """The rounds of a run, in arrays that grow, and why it ended."""

    def __init__(self) -> None:
        self.n_rounds = 0
        self.split = np.zeros((64, 3), dtype=np.int64)
        self.score = np.zeros((64, 2))
        self.values = np.zeros((64, 0, N_LEAVES))
        self.stop_reason = ""

    def add(self, stump: Stump) -> None:
        t = self.n_rounds
        if t == 0:
            self.values = np.zeros((len(self.split), *stump.values.shape))
        if t == len(self.split):
            self.split, self.score, self.values = (
                np.concatenate([a, np.zeros_like(a)]) for a in (self.split, self.score, self.values)
            )
        self.split[t] = stump.feature, stump.bin, stump.missing_leaf
        self.score[t] = stump.alpha, stump.error
        self.values[t] = stump.values
        self.n_rounds += 1

    def rounds(self, matrix: BinnedMatrix, n_outputs: int, n_rounds: int) -> Rounds:
        """The first rounds, with thresholds instead of bins."""
        feature, last_bin, missing_leaf = self.split[:n_rounds].T.copy()
        thresholds = [
            matrix.threshold(f, b) for f, b in zip(feature.tolist(), last_bin.tolist(), strict=True)
        ]
        alpha, error = self.score[:n_rounds].T.copy()
        values = self.values[:n_rounds].reshape(n_rounds, n_outputs, N_LEAVES).copy()
        return Rounds(
            feature, np.array(thresholds, dtype=np.float64), missing_leaf, values, alpha, error
        )


def boost(strategy: Strategy, n_rounds: int, watchers: list[Watcher]) -> Trace:
    """F_0 = constant; for t = 1 ... n_rounds: take the best stump, add it, let the rows follow."""
    trace = Trace()
    while trace.n_rounds < n_rounds:
        stump = strategy.best_stump()
        if stump is None:
            trace.stop_reason = strategy.reason
            return trace
        trace.add(stump)
        reasons = [watch(trace.n_rounds, stump) for watch in watchers]
        if stump.perfect:
            trace.stop_reason = "a stump classifies every row correctly"
            return trace
        if any(reasons):
            trace.stop_reason = next(reason for reason in reasons if reason)
            return trace
        if trace.n_rounds < n_rounds:
            strategy.follow(stump)
    trace.stop_reason = f"all {n_rounds} rounds were run"
    return trace
