"""Learners whose answers are -1, 0 and +1 times one coefficient: what pools and rectangles share.

Of weights D_i and answers h_i a finder tells the sums over the rows that are answered with -1 and
with +1; the edge of h is their difference, r = sum_i D_i y_i h_i = W+ - W-. AdaBoost's rounds are
in boosting/votes.py. For any other loss h fits -gradient: with S and A the sums of -g_i h_i and of
the second derivatives (or weights) of the rows that are not 0, c = S / A, worth S^2 / A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, RIGHT, Cut, Engine
from ensemble_gpu.learners.protocol import Candidate, Outcome, RoundWeights
from ensemble_gpu.learners.stump import StumpLeaves
from ensemble_gpu.model.votes import VoteModel, Voter, votes

# Leaves of answers as codes (Engine.answer).
CUT = Cut(LEFT, ABSTAIN, ABSTAIN)


def column_of(answers: Any, engine: Engine) -> Any:
    """Answers -1, 0 and +1 (int8 [row]) as a column of codes of the engine."""
    return engine.answer(engine.pack_answers([answers[:, None]], answers.shape[0]), 0)


class Found(NamedTuple):
    """What a finder has found: which voter, and the sums of the rows answered with -1 and +1.

    sums[plane, side], a plane for each that was asked for.
    """

    key: Any
    sums: np.ndarray


class Finder(Protocol):
    """Finds the voter with the best answers on the training rows, from integers."""

    def by_weight(self, q: Any) -> Found | None:
        """The voter for the weights q [row]; sums of rows that it gets wrong, and right."""
        ...

    def rights(self, key: Any) -> Any:
        """Codes [row] of the rows that a voter gets wrong (LEFT), right, and abstains on."""
        ...

    def by_gradient(self, S: Any, H: Any, barred: list[Any]) -> Found | None:
        """The voter for -gradients S and weights H [row]; sums of both over its answers."""
        ...

    def answers(self, key: Any) -> Any:
        """Codes [row] of its answers: -1 (LEFT), +1 (RIGHT), and 0."""
        ...

    def voter(self, key: Any) -> Voter:
        """What the model holds."""
        ...


@dataclass(frozen=True)
class Vote:
    """A round: the finder's key of a voter, and its coefficient in the model."""

    name: ClassVar[str] = "voter"

    key: Any
    alpha: float
    error: float
    perfect: bool = False
    weights: RoundWeights | None = None
    trail: Any = None

    @property
    def values(self) -> np.ndarray:
        """[output, leaf] of a single output."""
        return np.array([[-self.alpha, self.alpha, 0.0]])


class Voters:
    """Voters in a model."""

    name, by_feature = "voter", False

    def __init__(self, finder: Finder, n_features: int) -> None:
        self.finder, self.n_features = finder, n_features

    def added(self, vote: Vote, X: Any, where: Where) -> Any:
        answers = self.finder.voter(vote.key)(X, where)
        return votes(answers, vote.alpha, self.n_outputs, where)

    n_outputs = 1

    def round_info(self, vote: Vote) -> dict[str, Any]:
        return {"feature": None, "threshold": None}

    def outcome(self, rounds: Sequence[Vote], start: np.ndarray, constant: np.ndarray) -> Outcome:
        keys = sorted({vote.key for vote in rounds})
        number = {key: k for k, key in enumerate(keys)}
        model = VoteModel(
            [self.finder.voter(key) for key in keys],
            np.array([number[vote.key] for vote in rounds], dtype=np.int64),
            np.array([vote.alpha for vote in rounds]),
            n_features=self.n_features,
            intercept=start if rounds else constant,
        )
        return Outcome(model, None)


class ClassVoters(Voters):
    """Voters that answer with one of several classes."""

    def __init__(self, finder: Finder, n_features: int, n_outputs: int) -> None:
        super().__init__(finder, n_features)
        self.n_outputs = n_outputs


class GradientVoters(Voters):
    """The voter that fits -gradient best (a GradientLearner)."""

    def __init__(self, engine: Engine, finder: Finder, n_features: int) -> None:
        super().__init__(finder, n_features)
        self.engine = engine
        self.planes: tuple[Any, Any] | None = None

    def seek(self, gradients: Any) -> bool:
        packed = gradients.packed
        if gradients.format.planes == 2:
            S, H = packed[0, :], packed[1, :]
        else:
            H = packed[0, :] & 0xFFFFFFFF
            S = (packed[0, :] - H) >> 32
        self.planes = S, H
        return bool(self.engine.where.xp.any(S != 0))

    def best(self, barred: list[Any]) -> Candidate | None:
        assert self.planes is not None
        found = self.finder.by_gradient(*self.planes, barred)
        if found is None:
            return None
        (left, right), size = found.sums[0].tolist(), float(found.sums[1].sum())
        if left == right or size <= 0.0:
            return None
        c = float(right - left) / size
        key = found.key

        def made(values: np.ndarray, alpha: float, error: float, trail: Any) -> Vote:
            return Vote(key, float(values[0, RIGHT]), error, trail=trail)

        return Candidate(
            np.array([[-c, c, 0.0]]), np.array([[left, right, 0]]), c * float(right - left),
            self._leaves(key), made, [key], alike,
        )  # fmt: skip

    def _leaves(self, key: Any) -> StumpLeaves:
        return StumpLeaves(self.engine, self.finder.answers(key), CUT)

    def leaves(self, vote: Vote) -> StumpLeaves:
        return self._leaves(vote.key)

    def random_state(self) -> Any:
        return None

    def restore(self, random_state: Any) -> None:
        """Nothing is drawn."""


def alike(steps: np.ndarray) -> np.ndarray:
    """Steps [output, leaf] of single leaves as votes allow them: of one size and two signs.

    The smaller of the two, or none where both would go the same way.
    """
    left, right = steps[:, LEFT], steps[:, RIGHT]
    size = np.where(left * right < 0.0, np.minimum(np.abs(left), np.abs(right)), 0.0)
    out = np.zeros_like(steps)
    out[:, LEFT], out[:, RIGHT] = -np.sign(right) * size, np.sign(right) * size
    return out
