"""What gradient boosting minimises, and which rows take part in a round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.data.sampling import Draws
from ensemble_gpu.losses import Loss


@dataclass(frozen=True)
class Problem:
    """What is to be minimised: the mean of w_i loss(y_i, F_i), from F = `start` + `offset` on.

    `y` is [rows], or [outputs, rows] where every output has a target of its own; `weights` is None
    or [rows]; `scale` a power of two, the order of magnitude of F; `offset` None or
    [outputs, rows].
    """

    loss: Loss
    y: Any
    weights: Any | None
    start: np.ndarray
    scale: float
    offset: Any | None = None

    @property
    def joint(self) -> bool:
        """Several outputs share a target: the loss takes F as [rows, outputs]."""
        return self.y.ndim == 1 and len(self.start) > 1

    def argument(self, F: Any) -> Any:
        """F [outputs, rows] as the loss takes it: [rows], [outputs, rows] or [rows, outputs]."""
        if self.joint:
            return locate(F).xp.permute_dims(F, (1, 0))
        return F[0, :] if F.shape[0] == 1 else F

    def in_outputs(self, derivative: Any) -> Any:
        """What the loss gives for that argument, as [outputs, rows]."""
        if self.joint:
            return locate(derivative).xp.permute_dims(derivative, (1, 0))
        return derivative if derivative.ndim == 2 else derivative[None, :]

    def gradient(self, F: Any) -> Any:
        """dl/dF [outputs, rows] of all rows."""
        return self.in_outputs(self.loss.gradient(self.y, self.argument(F)))

    def mean_loss(self, F: Any) -> float:
        """Weighted mean of the loss, summed over outputs with a y each."""
        where = locate(F)
        value = self.loss.value(self.y, self.argument(F))
        value = where.xp.sum(value, axis=0) if value.ndim > 1 else value
        return weighted_mean(value, self.weights, where)


@dataclass(frozen=True)
class Sampling:
    """Each row takes part in a round with probability `share`, one of weight 3 as three rows do.

    `draws` are the rows to draw from (data/sampling.py); None: all take part.
    """

    share: float
    seed: int
    draws: Draws | None = None

    @property
    def whole(self) -> bool:
        """Whether the weight of a row in a round is the number of times that it is drawn."""
        return self.draws is not None and self.draws.whole

    def counts(self, round_: int) -> Any | None:
        """How often each row takes part in a round; None: all as they are."""
        return None if self.draws is None else self.draws.counts(self.seed, round_, self.share)
