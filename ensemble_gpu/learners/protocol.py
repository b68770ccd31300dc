"""What a weak learner is: fitted to gradients or to weights, an answer per row, a part of a model.

A round of boosting adds alpha h, h an answer of the learner. The loop (boosting/loop.py) sees
rounds only; a strategy (boosting/strategy.py) follows the training rows from round to round; the
learner

- finds the round's h: from the gradients of the rows (`GradientLearner`), or from their weights,
  where the strategy does that itself (rescaled weights of stumps, any classifier);
- knows what h answers for training rows (`leaves`) and for other rows (`added`);
- makes a model of the rounds (`outcome`).

A round is all that is needed to go on: what a strategy or learner would have to remember besides
is in the round's `trail`. So a list of rounds can be replayed (boosting/loop.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.kernels.residuals import Slots


class RoundWeights(NamedTuple):
    """Shares of the weight before a round, and Z: the weight after it over the weight before.

    `right` and `wrong` are W+ and W-, rows that the learner's vote gets right and wrong,
    `abstaining` is W0: they sum to 1.
    """

    abstaining: float
    right: float
    wrong: float
    Z: float


class Round(Protocol):
    """What the loop knows of a round, whatever was learnt in it.

    `alpha` is the learner's coefficient in the model; `error` the round's weighted error, its Z,
    or its gain, whatever the strategy goes by; `name` says what kind of learner it is; `weights`
    are known where rows have weights that follow the rounds (AdaBoost).
    """

    @property
    def name(self) -> str: ...

    @property
    def alpha(self) -> float: ...

    @property
    def error(self) -> float: ...

    @property
    def perfect(self) -> bool:
        """Whether every training row is classified correctly: nothing is left to learn."""
        ...

    @property
    def weights(self) -> RoundWeights | None: ...

    @property
    def trail(self) -> Any:
        """What the strategy needs besides the learner to follow the round."""
        ...


R = TypeVar("R", bound=Round)


class ValuedRound(Round, Protocol):
    """A round of a `GradientLearner`: it adds `values` [output, leaf] to the model."""

    @property
    def values(self) -> np.ndarray: ...

    def with_values(self, values: np.ndarray, alpha: float) -> Any:
        """The same leaves with other values, and their coefficient."""
        ...


@dataclass(frozen=True)
class Outcome:
    """What rounds amount to: the model, and the features' shares in it (None: not known)."""

    model: Any
    importances: np.ndarray | None


class Learner(Protocol):
    """What rounds of a kind mean beyond the training rows."""

    @property
    def name(self) -> str: ...

    @property
    def by_feature(self) -> bool:
        """Whether `added` reads few features of X, and so is faster where each lies in a piece."""
        ...

    def added(self, round_: Any, X: Any, where: Where) -> Any:
        """What a round adds to the outputs of rows X: [n, outputs]."""
        ...

    def round_info(self, round_: Any) -> dict[str, Any]:
        """What a callback is told of a round's learner: fields of `RoundInfo`."""
        ...

    def outcome(self, rounds: Sequence[Any], start: np.ndarray, constant: np.ndarray) -> Outcome:
        """The model of the rounds that are kept.

        `start` are the outputs before the first round, `constant` those of a model without any.
        """
        ...


class Leaves(Protocol):
    """The answer for training rows: which leaf of the learner every row is in."""

    def moved(self, F: Any, rows: slice, values: np.ndarray, out: Any = None) -> Any:
        """F[output, row] + values[output, leaf] of a block of rows; may be written into `out`."""
        ...

    def sums(self, q: Any, rows: slice) -> np.ndarray:
        """sums[output, leaf] of the int64 q[output, row] of a block, on the host."""
        ...


@runtime_checkable
class Slotted(Protocol):
    """What Leaves may be as well: leaves whose rows can be looked at one leaf at a time."""

    def slots(self, chosen: np.ndarray) -> Slots:
        """All rows in slots, one for each leaf chosen (bool), in order; the others in none."""
        ...


@runtime_checkable
class LookedUp(Protocol):
    """What Leaves may be as well: where compiled code can look up what a row adds to F."""

    def lookup(self, values: np.ndarray) -> tuple[Any, np.ndarray]:
        """index[row] and table[output, index]; the latter are `values` [output, leaf], arranged."""
        ...


@dataclass(frozen=True)
class Candidate:
    """A learner h that fits -gradient: h[output, leaf] is `c` in units of the round.

    `S` [output, leaf] are the sums of -gradient, `gain` what the fit is worth; `made(values, alpha,
    error, trail)` is the round that adds `values` [output, leaf]. `bars`: features that a second
    candidate must not use. `allowed` makes the steps of single leaves [output, leaf] those that
    the learner's constraints allow, each between 0 and what it was; None: all are.
    """

    c: np.ndarray
    S: np.ndarray
    gain: float
    leaves: Leaves
    made: Callable[[np.ndarray, float, float, Any], Any]
    bars: list[int]
    allowed: Callable[[np.ndarray], np.ndarray] | None = None


@dataclass(frozen=True)
class LearnerRows:
    """What a learner that was given as a parameter is made from when a fit begins.

    `X`, `target` (the label's index or a number) and `weights` (None: all equal) are those of the
    rows that take part, in the order of the gradients, where the engine works. The model has
    `n_outputs`, the fit `n_rounds` at most; thresholds come from at most `max_bins` bins; `seed`
    is what random numbers are drawn from. `classes` are the labels, where targets are classes.
    """

    engine: Engine
    X: Any
    target: Any
    weights: Any | None
    where: Where
    n_outputs: int
    n_rounds: int
    max_bins: int
    seed: int
    classes: np.ndarray | None = None


@runtime_checkable
class OwnLearner(Protocol):
    """A learner of this package as the parameter `estimator`: what it is, before it sees rows.

    It has the parameters of a scikit-learn estimator (get_params, set_params), and no state.
    """

    def gradient_learner(self, rows: LearnerRows) -> GradientLearner:
        """The learner that fits gradients of any loss at these rows."""
        ...


class GradientLearner(Learner, Protocol):
    """Finds candidates. `seek` adds up a round's gradients; False where there is nothing to fit."""

    def seek(self, gradients: Any) -> bool: ...

    def best(self, barred: list[int]) -> Candidate | None:
        """The candidate that fits the gradients of the last `seek` best, not on barred features."""
        ...

    def leaves(self, round_: Any) -> Leaves:
        """The leaves of the training rows in a round, found from the round alone."""
        ...

    def random_state(self) -> Any:
        """Where its random numbers stand; None where they do not depend on earlier rounds."""
        ...

    def restore(self, random_state: Any) -> None:
        """Go on from there."""
        ...


def numbered(chosen: np.ndarray) -> np.ndarray:
    """0, 1, ... for those chosen, -1 for the others."""
    return np.where(chosen, np.cumsum(chosen) - 1, -1).astype(np.int64)


def shares(gains: np.ndarray) -> np.ndarray:
    """Gains of the features, as shares of their sum."""
    total = gains.sum()
    return gains / total if total > 0.0 else gains


def alphas_and_errors(rounds: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
    alpha = np.array([r.alpha for r in rounds], dtype=np.float64)
    return alpha, np.array([r.error for r in rounds], dtype=np.float64)
