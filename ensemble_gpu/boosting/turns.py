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


class Turns:
    """One rescale strategy a class (the class against the rest); the most useful has its turn."""

    def __init__(self, classes: list[Rescale]) -> None:
        self.classes = classes
        self.proposals = [strategy.best_stump() for strategy in classes]
        self.turn = 0
        self.reason = ""

    def _falls(self) -> list[float]:
        """By how much each class's proposal lowers the sum of its weights, which began as 1."""
        return [
            0.0 if stump is None else strategy.loss - strategy.training_loss(stump)
            for strategy, stump in zip(self.classes, self.proposals, strict=True)
        ]

    def best_stump(self) -> Stump | None:
        falls = self._falls()
        self.turn = int(np.argmax(falls))
        stump = self.proposals[self.turn]
        if stump is None or falls[self.turn] <= 0.0:
            self.reason = self.classes[self.turn].reason or "no stump is better than chance"
            return None
        values = np.zeros((len(self.classes), N_LEAVES))
        values[self.turn] = stump.values[0]
        weight = sum(strategy.loss for strategy in self.classes)
        error = (weight - falls[self.turn]) / weight
        return replace(stump, values=values, error=error, perfect=False)

    def training_loss(self, stump: Stump) -> float:
        """Mean of the weights exp(-margin) over rows and classes, relative to the first round's."""
        weight = sum(strategy.loss for strategy in self.classes)
        return stump.error * weight / len(self.classes)

    def follow(self, stump: Stump) -> None:
        strategy, own = self.classes[self.turn], self.proposals[self.turn]
        assert own is not None
        strategy.follow(own)
        self.proposals[self.turn] = strategy.best_stump()
