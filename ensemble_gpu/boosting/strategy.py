"""What the loop adds in a round, what it needs of a strategy, and how its outcome is read.

Strategies follow the model from round to round: `rescale` (exponential loss), `gram` (squared loss)
and `rebuild` (any loss) with stumps, `foreign` with any classifier.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from ensemble_gpu.arrays.namespace import Where


class Round(Protocol):
    """What the loop knows of a round, whatever was learnt in it.

    `alpha` is the learner's coefficient in the model; `error` the round's weighted error, its Z,
    or its gain, whatever the strategy goes by; `name` says what kind of learner it is.
    """

    name: ClassVar[str]

    @property
    def alpha(self) -> float: ...

    @property
    def error(self) -> float: ...

    @property
    def perfect(self) -> bool:
        """Whether every training row is classified correctly: nothing is left to learn."""
        ...


@dataclass(frozen=True)
class Stump:
    """A round: x[feature] in a bin <= `bin` goes left, NaN to `missing_leaf`.

    `values[output, leaf]` is what the model adds, `alpha` the coefficient in it.
    """

    name: ClassVar[str] = "stump"

    feature: int
    bin: int
    missing_leaf: int
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool = False


R = TypeVar("R", bound=Round)


class Strategy(Protocol[R]):
    """What the loop needs: the next round's learner (or None and a reason), and to follow it."""

    reason: str

    def best(self) -> R | None: ...

    def follow(self, stump: R, /) -> None: ...

    def training_loss(self, stump: R, /) -> float:
        """Mean loss of the training rows after the round, which has not been followed yet."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What rounds amount to: the model, and the features' shares in it (None: not known)."""

    model: Any
    importances: np.ndarray | None


class Plan(ABC):
    """What the loop runs on, and how its rounds are read; one subclass for each kind of round.

    `start` are the outputs before the first round, `link` says what they mean (model/link.py).
    `loss(F, target, weights)` is the mean loss of validation rows with outputs F. `cheap_loss`: the
    strategy knows its training loss without a pass.
    """

    strategy: Any
    start: np.ndarray
    link: str
    loss: Callable[[Any, Any, Any], float]
    cheap_loss: bool

    @abstractmethod
    def added(self, round_: Any, X: Any, where: Where) -> Any:
        """What a round adds to the outputs of rows X: [n, outputs]."""

    @abstractmethod
    def round_info(self, round_: Any) -> dict[str, Any]:
        """What a callback is told of a round's learner: fields of `RoundInfo`."""

    @abstractmethod
    def outcome(self, rounds: Sequence[Any], n_features: int) -> Outcome:
        """The model of the rounds that are kept."""


def shares(gains: np.ndarray) -> np.ndarray:
    """Gains of the features, as shares of their sum."""
    total = gains.sum()
    return gains / total if total > 0.0 else gains
