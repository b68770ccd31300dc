"""Watchers of the loop: losses, early stopping, and the user's callbacks."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.strategy import Plan, Strategy


@dataclass(frozen=True)
class RoundInfo:
    """What a callback sees after a round.

    The stump is x[feature] <= threshold, with `values[output, leaf]` for left, right and
    abstaining rows. Of a tree they are the root's test and the values of all nodes; where it tests
    a categorical feature `threshold` is NaN and `categories` are those that go left. None where a
    round is neither. Losses are None where nobody computes them.
    """

    round: int
    n_rounds: int
    feature: int | None
    threshold: float | None
    error: float
    alpha: float
    validation_loss: float | None
    training_loss: float | None = None
    values: np.ndarray | None = None
    categories: list[Any] | None = None


Callback = Callable[[RoundInfo], Any]


@dataclass(frozen=True)
class History:
    """What is known of each round that was run; empty where it was not computed.

    `training` and `validation` are losses after the round. `weights` [round, 4] are those of
    AdaBoost: the shares W0, W+ and W- of the weight before the round, of rows that abstain, are
    voted right and wrong, and Z, the factor of the round on the training loss.
    """

    training: np.ndarray
    validation: np.ndarray
    weights: np.ndarray

    @property
    def Z(self) -> np.ndarray:
        """The factor of each round on the training loss (AdaBoost)."""
        return self.weights[:, 3]

    def plot(self, ax: Any = None) -> Any:
        """Both curves; needs matplotlib. Returns the axes."""
        from ensemble_gpu.plotting.curves import plot_history

        return plot_history(self, ax=ax)


class TrainingLoss:
    """Asks the strategy for the training loss after each round."""

    def __init__(self, strategy: Strategy[Any]) -> None:
        self.strategy = strategy
        self.history: list[float] = []

    def __call__(self, n_rounds: int, round_: Any) -> None:
        self.history.append(self.strategy.training_loss(round_))


def metric_value(answer: Any) -> float:
    """What a user's metric returned, as a number; an error that names `metric` where it is none."""
    wrong = f"metric must return a number, lower is better; got {answer!r}."
    if isinstance(answer, str):
        raise TypeError(wrong)
    try:
        value = float(answer)
    except (TypeError, ValueError) as error:
        raise TypeError(wrong) from error
    if math.isnan(value):
        raise ValueError(wrong)
    return value


class Validation:
    """Follows the outputs F of held-out rows; `evaluate(F)` after each round is `history`."""

    def __init__(
        self,
        plan: Plan,
        X: Any,
        evaluate: Callable[[Any], float],
        where: Where,
        patience: int | None,
    ) -> None:
        self.plan, self.X, self.evaluate = plan, X, evaluate
        self.where, self.patience = where, patience
        zeros = where.zeros((X.shape[0], len(plan.start)), where.xp.float64)
        self.F = zeros + where.put(plan.start)[None, :]
        self.history: list[float] = []
        self.best, self.best_round = math.inf, 1

    def __call__(self, n_rounds: int, round_: Any) -> str | None:
        self.F = self.F + self.plan.learner.added(round_, self.X, self.where)
        self.history.append(self.evaluate(self.F))
        if self.history[-1] < self.best:
            self.best, self.best_round = self.history[-1], n_rounds
        waited = n_rounds - self.best_round
        if self.patience is not None and waited >= self.patience:
            return f"validation loss has not improved for {waited} rounds"
        return None


def call_callbacks(
    callbacks: Iterable[Callback],
    n_rounds: int,
    plan: Plan,
    training: TrainingLoss | None,
    validation: Validation | None,
) -> Callable[[int, Any], str | None]:
    """A watcher that tells every callback; any that returns True stops the fit."""

    def watch(number: int, round_: Any) -> str | None:
        info = RoundInfo(
            round=number,
            n_rounds=n_rounds,
            error=round_.error,
            alpha=round_.alpha,
            validation_loss=validation.history[-1] if validation else None,
            training_loss=training.history[-1] if training else None,
            **plan.learner.round_info(round_),
        )
        answers = [callback(info) for callback in callbacks]
        return "a callback asked to stop" if any(a is True for a in answers) else None

    return watch


class TqdmBar:
    """A callback that shows the rounds and losses in a tqdm progress bar (extra `progress`).

    Parameters
    ----------
    **options : passed to tqdm, e.g. desc="fit", leave=False
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.bar: Any = None

    def __call__(self, info: RoundInfo) -> None:
        if self.bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError as error:
                raise ImportError(
                    "TqdmBar needs tqdm: pip install 'ensemble_gpu[progress]'."
                ) from error
            self.bar = tqdm(total=info.n_rounds, **{"desc": "fit", **self.options})
        losses = {"train": info.training_loss, "validation": info.validation_loss}
        known = {name: f"{loss:.4g}" for name, loss in losses.items() if loss is not None}
        self.bar.set_postfix(known, refresh=False)
        self.bar.update(info.round - self.bar.n)

    def close(self) -> None:
        """Leave the bar as it is; called when the fit has ended, early or not."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


class ProgressBar:
    """A callback that draws a bar on standard error; a file or a pipe gets the last line only.

    Parameters
    ----------
    label : str
        Text before the bar.
    width : int
        Characters of the bar.
    stream : text stream, default standard error
    """

    def __init__(self, label: str = "fit", width: int = 30, stream: Any = None) -> None:
        self.label, self.width, self.stream = label, width, stream
        self.line = ""

    def __call__(self, info: RoundInfo) -> None:
        filled = self.width * info.round // info.n_rounds
        bar = "#" * filled + "." * (self.width - filled)
        moved = bar not in self.line
        self.line = f"{self.label} [{bar}] round {info.round}/{info.n_rounds}"
        if moved and self._stream.isatty():
            self._stream.write(f"\r{self.line}")
            self._stream.flush()

    def close(self) -> None:
        """Finish the line; called when the fit has ended, early or not."""
        start = "\r" if self._stream.isatty() else ""
        self._stream.write(f"{start}{self.line}\n")
        self._stream.flush()

    @property
    def _stream(self) -> Any:
        return self.stream or sys.stderr
