"""AdaBoost.MH one class at a time: coordinate descent over (class, stump).

The loss of K classes is a sum of K binary ones, R = mean over i, k of exp(-Y_ik F_k(x_i)), each
with weights of its own. A round adds to a single F_k the stump that lowers R most. Only that
class's weights move and only its splits are scored anew, so a round costs what it costs for two
classes; a stump shared by all classes moves K weights a row and says less about each.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ensemble_gpu.boosting.rescale import Rescale
from ensemble_gpu.boosting.strategy import Stump
from ensemble_gpu.kernels.protocol import N_LEAVES


class OneClassAtATime:
    """One rescale strategy a class (the class against the rest); the most useful has its turn."""

    def __init__(self, classes: list[Rescale]) -> None:
        self.classes = classes
        self.proposals: list[Stump | None] = [None] * len(classes)
        self.falls = [0.0] * len(classes)
        self.weight = float(len(classes))
        self.turn = 0
        self.reason = ""
        for k in range(len(classes)):
            self._propose(k)

    def _propose(self, k: int) -> None:
        """The best stump of class k, and by how much it lowers its weights, which began as 1."""
        strategy = self.classes[k]
        stump = strategy.best()
        self.proposals[k] = stump
        self.falls[k] = strategy.loss - strategy.training_loss(stump) if stump else 0.0

    def best(self) -> Stump | None:
        fall = max(self.falls)
        self.turn = self.falls.index(fall)
        stump = self.proposals[self.turn]
        if stump is None or fall <= 0.0:
            self.reason = self.classes[self.turn].reason or "no stump is better than chance"
            return None
        values = np.zeros((len(self.classes), N_LEAVES))
        values[self.turn] = stump.values[0]
        error = (self.weight - fall) / self.weight
        return replace(stump, values=values, error=error, perfect=False)

    def training_loss(self, stump: Stump) -> float:
        """Mean of the weights exp(-margin) over rows and classes, relative to the first round's."""
        return stump.error * self.weight / len(self.classes)

    def follow(self, stump: Stump) -> None:
        own = self.proposals[self.turn]
        assert own is not None
        self.weight -= self.falls[self.turn]
        self.classes[self.turn].follow(own)
        self._propose(self.turn)
