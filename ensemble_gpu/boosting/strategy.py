"""What the loop adds in a round, and what it needs of a strategy.

Three strategies follow the model from round to round: `rescale` (exponential loss), `gram` (squared
loss) and `rebuild` (any loss).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Stump:
    """One round: x[feature] in a bin <= `bin` goes left, NaN to `missing_leaf`.

    `values[output, leaf]` is what the model adds, `alpha` the coefficient in it; `error` is the
    round's weighted error, its Z, or its gain, whatever the strategy goes by.
    """

    feature: int
    bin: int
    missing_leaf: int
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool = False


class Strategy(Protocol):
    """What the loop needs: the next stump (or None and a reason), and to follow it."""

    reason: str

    def best_stump(self) -> Stump | None: ...

    def follow(self, stump: Stump) -> None: ...

    def training_loss(self, stump: Stump) -> float:
        """Mean loss of the training rows after the stump, which has not been followed yet."""
        ...
