"""Dictionaries of given and of found voters: pools, and rectangles."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.products import single_threaded
from ensemble_gpu.boosting.problem import Problem
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT
from ensemble_gpu.l1.dictionaries import MOST_FOUND, Correlations, Key
from ensemble_gpu.l1.rows import Curvatures
from ensemble_gpu.learners.pool import PoolMembers
from ensemble_gpu.learners.protocol import Outcome
from ensemble_gpu.learners.rectangles import RectangleCodes, RectangleSearch
from ensemble_gpu.learners.votes import CUT, GradientVoters, Vote


class Answering(Protocol):
    """What a sample asks of a dictionary."""

    def answers(self, key: Key, rows: Any) -> tuple[int, np.ndarray]:
        """The output of h, and its values -1, 0, +1 at the rows, on the host."""
        ...


class AnswerSample:
    """Answers at some rows, on the host: products of matrices of integers, exact in any order."""

    def __init__(self, dictionary: Answering, rows: Any) -> None:
        self.dictionary, self.rows, self.m = dictionary, rows, rows.shape[0]
        self.known: dict[Key, tuple[int, np.ndarray]] = {}

    def cost(self, n: int) -> int:
        return self.m * n * n // 8  # products of matrices are so much faster than other sums

    def products(self, new: Sequence[Key], keys: Sequence[Key], curves: Curvatures) -> np.ndarray:
        self.known = {
            key: self.known.get(key) or self.dictionary.answers(key, self.rows) for key in keys
        }
        outputs = np.array([self.known[key][0] for key in keys])
        columns = np.array([self.known[key][1] for key in keys], dtype=np.float64)
        out = np.zeros((len(new), len(keys)))
        with single_threaded():
            for i, key in enumerate(new):
                own, answers = self.known[key]
                for k, curve in zip(curves.outputs(own).tolist(), curves.of(own), strict=True):
                    at = np.flatnonzero(outputs == k)
                    out[i, at] = columns[at] @ (curve * answers)
        return out


class Votes:
    """What pools and rectangles have in common: voters with answers -1, 0, +1 of one output."""

    exact = True

    def __init__(self, learner: GradientVoters) -> None:
        self.learner, self.engine = learner, learner.engine
        self.codes: dict[Key, Any] = {}

    def of_rows(self, problem: Problem) -> Any:
        """Itself, with room of its own for answers."""
        own = copy(self)
        own.codes = {}
        return own

    def _codes(self, key: Key) -> Any:
        """Leaves of all rows."""
        if key not in self.codes:
            self.codes[key] = self.learner.finder.answers(key)
        return self.codes[key]

    def sample(self, rows: Any) -> AnswerSample:
        return AnswerSample(self, rows)

    def answers(self, key: Key, rows: Any) -> tuple[int, np.ndarray]:
        where, xp = self.engine.where, self.engine.where.xp
        sign = np.zeros(N_LEAVES, dtype=np.int8)
        sign[[LEFT, RIGHT, ABSTAIN]] = -1, 1, 0
        leaf = where.host(xp.take(self._codes(key), rows))
        return 0, sign[leaf.astype(np.int64)]

    def moved(self, F: Any, keys: Sequence[Key], changes: np.ndarray) -> Any:
        for key, change in zip(keys, changes.tolist(), strict=True):
            values = np.zeros((1, N_LEAVES))
            values[0, [LEFT, RIGHT]] = -change, change
            F = self.engine.move(F, self._codes(key), CUT, values)
        return F

    def _forget(self, keys: Sequence[Key]) -> None:
        """Answers of keys that are not in the sum any more."""
        used = set(keys)
        self.codes = {key: codes for key, codes in self.codes.items() if key in used}

    def outcome(
        self, keys: Sequence[Key], coefficients: np.ndarray, worth: np.ndarray, start: np.ndarray
    ) -> Outcome:
        rounds = [
            Vote(key, c, gain)
            for key, c, gain in zip(keys, coefficients.tolist(), worth.tolist(), strict=True)
        ]
        return self.learner.outcome(rounds, start, start)


class PoolDictionary(Votes):
    """The members of a pool, by their numbers."""

    def __init__(self, learner: GradientVoters, members: PoolMembers) -> None:
        super().__init__(learner)
        self.members = members
        self.width = max(1, members.packed.n_members // 8)

    def correlations(self, q: Any, keys: Sequence[int], F: Any) -> Correlations:
        self._forget(keys)
        edges = self.members.edges(q[0, :])
        order = np.argsort(-np.abs(edges), kind="stable")[:MOST_FOUND]
        found = [(int(k), int(edges[k])) for k in order if edges[k]]
        return Correlations(edges[np.array(keys, dtype=np.int64)], found)


class RectangleDictionary(Votes):
    """All rectangles; the best is found in each round. The sign of one is its coefficient's."""

    def __init__(self, learner: GradientVoters, search: RectangleSearch) -> None:
        super().__init__(learner)
        self.search = search
        self.width = search.matrix.codes.n_features**2

    def correlations(self, q: Any, keys: Sequence[RectangleCodes], F: Any) -> Correlations:
        self._forget(keys)
        best = self.search.by_gradient(q[0, :], q[0, :], [])
        found = []
        if best is not None:
            edge = int(best.sums[0, RIGHT] - best.sums[0, LEFT])
            found = [(best.key._replace(sign=1), best.key.sign * edge)]
        return Correlations(np.array([self._edge(q, key) for key in keys], dtype=np.int64), found)

    def _edge(self, q: Any, key: RectangleCodes) -> int:
        sums = self.engine.leaf_sums(q, self._codes(key), CUT)[0]
        return int(sums[RIGHT] - sums[LEFT])
