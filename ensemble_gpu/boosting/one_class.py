"""AdaBoost.MH one class at a time: coordinate descent over (class, learner).

The loss of K classes is a sum of K binary ones, R = mean over i, k of exp(-Y_ik F_k(x_i)), each
with weights of its own. A round adds to a single F_k the learner that lowers R most. Only that
class's weights move and only its learners are tried anew, so a round costs what it costs for two
classes; a stump shared by all classes moves K weights a row and says less about each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.kernels.protocol import N_LEAVES
from ensemble_gpu.learners.protocol import RoundWeights
from ensemble_gpu.learners.stump import Stump


class OneClassTrail(NamedTuple):
    """The class that a round was about, and the round as the class's own strategy knows it."""

    number: int
    own: Any


def of_stump(stump: Stump, k: int, n_classes: int, weights: RoundWeights) -> Stump:
    """A round of class k as a round of all of them: values [class, leaf]."""
    values = np.zeros((n_classes, N_LEAVES))
    values[k] = stump.values[0]
    return stump._replace(
        values=values, error=weights.Z, perfect=False, weights=weights,
        trail=OneClassTrail(k, stump),
    )  # fmt: skip


class OneClassAtATime:
    """A strategy a class (the class against the rest); a round is about the best.

    `placed(own, k, n_classes, weights)` makes a round of class k one of all classes.
    """

    def __init__(
        self, classes: Sequence[Any], placed: Callable[[Any, int, int, RoundWeights], Any]
    ) -> None:
        self.classes, self.placed = classes, placed
        # The best round of each class, found when it is needed, and how much weight it removes.
        self.proposals: list[Any | None] = [None] * len(classes)
        self.falls = [0.0] * len(classes)
        self.stale = set(range(len(classes)))
        self.weight = float(len(classes))
        self.reason = ""

    @property
    def n_groups(self) -> int:
        """Of the weights of each class, where they are in groups."""
        return self.classes[0].n_groups

    def _propose(self, k: int) -> None:
        """The best round of class k, and by how much it lowers its weights, which began as 1."""
        own = self.classes[k].best()
        self.proposals[k] = own
        self.falls[k] = self._fall(k, own) if own else 0.0

    def _fall(self, k: int, own: Any) -> float:
        return self.classes[k].loss - self.classes[k].training_loss(own)

    def best(self) -> Any | None:
        for k in sorted(self.stale):
            self._propose(k)
        self.stale.clear()
        fall = max(self.falls)
        index = self.falls.index(fall)
        own = self.proposals[index]
        if own is None or fall <= 0.0:
            self.reason = self.classes[index].reason or "no stump is better than chance"
            return None
        Z = (self.weight - fall) / self.weight
        return self.placed(own, index, len(self.classes), self._weights(index, own, Z))

    def _weights(self, index: int, own: Any, Z: float) -> RoundWeights:
        """Shares of the weight of all classes: those that the round is not about abstain."""
        assert own.weights is not None
        share = self.classes[index].loss / self.weight
        right, wrong = share * own.weights.right, share * own.weights.wrong
        return RoundWeights(1.0 - right - wrong, right, wrong, Z)

    def training_loss(self, round_: Any) -> float:
        """Mean of the weights exp(-margin) over rows and classes, relative to the first round's."""
        return round_.error * self.weight / len(self.classes)

    def follow(self, round_: Any) -> None:
        trail: OneClassTrail = round_.trail
        self.weight -= self._fall(trail.number, trail.own)
        self.classes[trail.number].follow(trail.own)
        self.stale.add(trail.number)
