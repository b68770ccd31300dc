"""AdaBoost.MH one class at a time: coordinate descent over (class, stump).

The loss of K classes is a sum of K binary ones, R = mean over i, k of exp(-Y_ik F_k(x_i)), each
with weights of its own. A round adds to a single F_k the stump that lowers R most. Only that
class's weights move and only its splits are scored anew, so a round costs what it costs for two
classes; a stump shared by all classes moves K weights a row and says less about each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.boosting.rescale import Rescale
from ensemble_gpu.boosting.rescale_rounds import RescaleRounds
from ensemble_gpu.kernels.protocol import N_LEAVES
from ensemble_gpu.learners.protocol import RoundWeights
from ensemble_gpu.learners.stump import Stump


class OneClassTrail(NamedTuple):
    """The class that a round was about, and the round as the class's own strategy knows it."""

    number: int
    own: Stump


class OneClassAtATime:
    """One rescale strategy a class (the class against the rest); a round is about the best."""

    def __init__(self, classes: list[Rescale | RescaleRounds]) -> None:
        self.classes = classes
        # The best stump of each class, found when it is needed, and how much weight it removes.
        self.proposals: list[Stump | None] = [None] * len(classes)
        self.falls = [0.0] * len(classes)
        self.stale = set(range(len(classes)))
        self.weight = float(len(classes))
        self.reason = ""

    def _propose(self, k: int) -> None:
        """The best stump of class k, and by how much it lowers its weights, which began as 1."""
        stump = self.classes[k].best()
        self.proposals[k] = stump
        self.falls[k] = self._fall(k, stump) if stump else 0.0

    def _fall(self, k: int, stump: Stump) -> float:
        return self.classes[k].loss - self.classes[k].training_loss(stump)

    def best(self) -> Stump | None:
        for k in sorted(self.stale):
            self._propose(k)
        self.stale.clear()
        fall = max(self.falls)
        index = self.falls.index(fall)
        stump = self.proposals[index]
        if stump is None or fall <= 0.0:
            self.reason = self.classes[index].reason or "no stump is better than chance"
            return None
        values = np.zeros((len(self.classes), N_LEAVES))
        values[index] = stump.values[0]
        Z = (self.weight - fall) / self.weight
        return stump._replace(
            values=values, error=Z, perfect=False, weights=self._weights(index, stump, Z),
            trail=OneClassTrail(index, stump),
        )  # fmt: skip

    def _weights(self, index: int, stump: Stump, Z: float) -> RoundWeights:
        """Shares of the weight of all classes: those that the round is not about abstain."""
        assert stump.weights is not None
        share = self.classes[index].loss / self.weight
        right, wrong = share * stump.weights.right, share * stump.weights.wrong
        return RoundWeights(1.0 - right - wrong, right, wrong, Z)

    def training_loss(self, stump: Stump) -> float:
        """Mean of the weights exp(-margin) over rows and classes, relative to the first round's."""
        return stump.error * self.weight / len(self.classes)

    def follow(self, stump: Stump) -> None:
        trail: OneClassTrail = stump.trail
        self.weight -= self._fall(trail.number, trail.own)
        self.classes[trail.number].follow(trail.own)
        self.stale.add(trail.number)
