"""What the loop needs of a strategy, and how the outcome of its rounds is read.

Strategies follow the model from round to round: `rescale` (exponential loss), `gram` (squared loss)
and `rebuild` (any loss) with learners of this package, `descend` (any loss) with any regressor or
classifier, `reweigh` (AdaBoost) with any classifier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ensemble_gpu.data.rows import Binned
from ensemble_gpu.learners.protocol import Learner, R


class Strategy(Protocol[R]):
    """Finds the next round (None and a reason where there is none) and follows rounds.

    `follow` uses nothing but the round and what earlier rounds have left: it may be called for
    rounds that another run has found. `training_loss` only looks.
    """

    @property
    def reason(self) -> str:
        """Why `best` has found nothing."""
        ...

    def best(self) -> R | None: ...

    def follow(self, round_: R, /) -> None: ...

    def training_loss(self, round_: R, /) -> float:
        """Mean loss of the training rows after the round, which has not been followed yet."""
        ...


@runtime_checkable
class InBlocks(Strategy[R], Protocol):
    """A strategy that finds several rounds at a time, where nobody intervenes."""

    def rounds(self, most: int, /) -> Iterator[R]:
        """Best, follow, best, ... of up to `most` rounds; the last is not followed.

        While a round is looked at, `training_loss` of it is what it is after `best`. The rows may
        be ahead: rounds that are not asked for any more are lost, and so is the strategy.
        """
        ...


def one_by_one(strategy: Strategy[R], most: int) -> Iterator[R]:
    """Best, follow, best, ... of up to `most` rounds; the last is not followed."""
    for left in range(most, 0, -1):
        best = strategy.best()
        if best is None:
            return
        yield best
        if left > 1:
            strategy.follow(best)


@runtime_checkable
class Skipping(Strategy[R], Protocol):
    """A strategy whose rows need not follow every round of a run that is taken up again."""

    def n_skipped(self, rounds: Sequence[R], /) -> int:
        """So many of these rounds, the first of the run, may be skipped."""
        ...

    def skip(self, round_: R, /) -> None:
        """`follow` without the rows: they catch up when the first round after it is followed."""
        ...


# Of validation rows: (F, target, weights) to a number.
MeanLoss = Callable[[Any, Any, Any], float]


@dataclass(frozen=True)
class Plan:
    """What the loop runs on, and how its rounds are read.

    `start` are the outputs before the first round, `constant` those of a model without any round,
    `link` says what they mean (model/link.py). `loss(F, target, weights)` is the mean loss of
    validation rows with outputs F; where it has a method `watched(target, weights)`, that is the
    same as a function of F alone, which may remember the round before; of a ranking it takes the
    groups too. `cheap_loss`: the strategy knows its training loss without a pass over the rows.
    `binned` are the training rows, where the learner uses codes of them.
    """

    strategy: Any
    learner: Learner
    start: np.ndarray
    constant: np.ndarray
    link: str
    loss: MeanLoss
    cheap_loss: bool
    binned: Binned | None = None
