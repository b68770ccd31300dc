"""Watchers of the loop: the training loss, its history, and the user's callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.boosting.strategy import Plan, Strategy
from ensemble_gpu.boosting.validation import Validation
from ensemble_gpu.estimators.progress import RoundInfo, TextBar

Callback = Callable[[RoundInfo], Any]


@dataclass(frozen=True)
class History:
    """What is known of each round that was run; empty where it was not computed.

    `training` is the loss after the round. `evals[set][metric]` are the metrics of the validation
    sets after it; `validation` is the one of them that decides early stopping, `decides` its set
    and metric, `greater_is_better` its direction. `weights` [round, 4] are those of
    AdaBoost: the shares W0, W+ and W- of the weight before the round, of rows that abstain, are
    voted right and wrong, and Z, the factor of the round on the training loss.
    """

    training: np.ndarray
    validation: np.ndarray
    weights: np.ndarray
    evals: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    decides: tuple[str, str] | None = None
    greater_is_better: bool = False

    @property
    def best_round(self) -> int | None:
        """The round, counted from 1, with the best `validation`; the first of equals."""
        if not len(self.validation):
            return None
        sign = -1.0 if self.greater_is_better else 1.0
        return int(np.argmin(sign * self.validation)) + 1

    @property
    def Z(self) -> np.ndarray:
        """The factor of each round on the training loss (AdaBoost)."""
        return self.weights[:, 3]

    def plot(self, ax: Any = None, *, metric: str | None = None) -> Any:
        """All curves, a panel a metric (plotting/curves.py); needs matplotlib. Returns the axes."""
        from ensemble_gpu.plotting.curves import plot_history

        return plot_history(self, metric=metric, ax=ax)


class TrainingLoss:
    """Asks the strategy for the training loss after each round."""

    def __init__(self, strategy: Strategy[Any]) -> None:
        self.strategy = strategy
        self.history: list[float] = []

    def __call__(self, n_rounds: int, round_: Any) -> None:
        self.history.append(self.strategy.training_loss(round_))


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
            evals=validation.latest() if validation else {},
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


class ProgressBar(TextBar):
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
        super().__init__(label, width, stream)

    def __call__(self, info: RoundInfo) -> None:
        self.show(info.round, info.n_rounds, "round")
