"""A dictionary of trees of one size, with +1 or -1 in every leaf.

A round's tree is grown on the gradients by least squares, split by split, and a leaf has the sign
of its sum. That is not the best tree of all: what is found bounds the largest |sum| from below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.boosting.gradients import Gradients
from ensemble_gpu.boosting.problem import Problem, Sampling
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.l1.dictionaries import Correlations
from ensemble_gpu.l1.voters import AnswerSample
from ensemble_gpu.learners.protocol import Leaves, Outcome
from ensemble_gpu.learners.tree import TreeRound, Trees


@dataclass(frozen=True)
class SignedTree:
    """A tree with a sign for every node, in one output; equal where it answers the same."""

    identity: bytes
    output: int
    round_: TreeRound = field(compare=False)
    leaves: Leaves = field(compare=False)
    signs: np.ndarray = field(compare=False)


class TreeDictionary:
    """Trees that are found one after the other."""

    exact = False

    def __init__(self, engine: Engine, trees: Trees, problem: Problem) -> None:
        n_rows = problem.y.shape[-1]
        self.engine, self.trees, self.all = engine, trees, slice(0, n_rows)
        self.gradients = Gradients(engine, n_rows, problem, "line_search", Sampling(1.0, 0))
        self.width = len(trees.matrix.edges)

    def of_rows(self, problem: Problem) -> TreeDictionary:
        """Trees are grown on the gradients of the rows that take part."""
        return TreeDictionary(self.engine, self.trees, problem)

    def correlations(self, q: Any, keys: Sequence[SignedTree], F: Any) -> Correlations:
        own = [int(key.signs @ self._sums(key.leaves, q)[key.output]) for key in keys]
        return Correlations(np.array(own, dtype=np.int64), self._found(q, F))

    def _sums(self, leaves: Leaves, q: Any) -> np.ndarray:
        return leaves.sums(q, self.all).astype(np.int64)

    def _found(self, q: Any, F: Any) -> list[tuple[SignedTree, int]]:
        gradients = self.gradients
        gradients.F = F
        if not gradients.ready() or not self.trees.seek(gradients):
            return []
        best = self.trees.best([])
        if best is None:
            return []
        round_ = best.made(best.c, 1.0, best.gain, None)
        sums, found = self._sums(best.leaves, q), []
        grown = round_.grown
        shape = [grown.feature, grown.bin, grown.left, grown.missing_left, grown.subset]
        for k in range(len(sums)):
            signs = np.sign(sums[k])
            if not signs.any():
                continue
            first = int(signs[np.flatnonzero(signs)[0]])  # a tree and its reverse are one
            signs = first * signs
            parts = [np.ascontiguousarray(a).tobytes() for a in (*shape, signs)]
            key = SignedTree(b"|".join(parts), k, round_, best.leaves, signs)
            found.append((key, int(signs @ sums[k])))
        return sorted(found, key=lambda pair: -abs(pair[1]))

    def sample(self, rows: Any) -> AnswerSample:
        return AnswerSample(self, rows)

    def answers(self, key: SignedTree, rows: Any) -> tuple[int, np.ndarray]:
        where, xp = self.engine.where, self.engine.where.xp
        zero = where.zeros((1, self.all.stop), xp.float64)
        signs = key.leaves.moved(zero, self.all, key.signs[None, :].astype(np.float64))
        return key.output, where.host(xp.take(signs[0, :], rows)).astype(np.int8)

    def moved(self, F: Any, keys: Sequence[SignedTree], changes: np.ndarray) -> Any:
        for key, change in zip(keys, changes.tolist(), strict=True):
            values = np.zeros((F.shape[0], len(key.signs)))
            values[key.output] = change * key.signs
            F = key.leaves.moved(F, self.all, values)
        return F

    def outcome(
        self, keys: Sequence[SignedTree], coefficients: np.ndarray, worth: np.ndarray,
        start: np.ndarray,
    ) -> Outcome:  # fmt: skip
        rounds = []
        for key, c, gain in zip(keys, coefficients.tolist(), worth.tolist(), strict=True):
            values = np.zeros((len(start), len(key.signs)))
            values[key.output] = c * key.signs
            rounds.append(TreeRound(key.round_.grown, values, abs(c), gain))
        return self.trees.outcome(rounds, start, start)
