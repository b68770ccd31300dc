"""Watchers of the loop: validation loss with early stopping, and the user's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.rows import Rows
from ensemble_gpu.boosting.rules import Rule
from ensemble_gpu.boosting.strategies import Stump
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.model.additive import stump_values
from ensemble_gpu.model.link import log_loss


@dataclass(frozen=True)
class RoundInfo:
    """What a callback sees after a round."""

    round: int
    n_rounds: int
    feature: int
    threshold: float
    error: float
    alpha: float
    validation_loss: float | None


Callback = Callable[[RoundInfo], Any]


class Validation:
    """Follows the margins of held-out rows; their log-loss after each round is `history`."""

    def __init__(
        self,
        rows: Rows,
        rule: Rule,
        matrix: BinnedMatrix,
        where: Where,
        patience: int | None,
    ) -> None:
        self.rows, self.link = rows, rule.link
        self.matrix, self.where, self.patience = matrix, where, patience
        self.F = where.zeros((rows.X.shape[0], rule.n_outputs), where.xp.float64)
        self.history: list[float] = []

    @property
    def best_round(self) -> int:
        """Rounds of the lowest loss so far, the first of equals."""
        return self.history.index(min(self.history)) + 1

    def __call__(self, n_rounds: int, stump: Stump) -> str | None:
        rows, where = self.rows, self.where
        x, threshold = rows.X[:, stump.feature], self.matrix.threshold(stump.feature, stump.bin)
        self.F = self.F + stump_values(x, threshold, stump.missing_leaf, stump.values, where)
        self.history.append(log_loss(self.F, rows.index, rows.weights, self.link, where))
        waited = n_rounds - self.best_round
        if self.patience is not None and waited >= self.patience:
            return f"validation loss has not improved for {waited} rounds"
        return None


def call_callbacks(
    callbacks: Iterable[Callback], n_rounds: int, matrix: BinnedMatrix, validation: Any
) -> Callable[[int, Stump], str | None]:
    """A watcher that tells every callback; any that returns True stops the fit."""

    def watch(round_: int, stump: Stump) -> str | None:
        info = RoundInfo(
            round_,
            n_rounds,
            stump.feature,
            matrix.threshold(stump.feature, stump.bin),
            stump.error,
            stump.alpha,
            validation.history[-1] if validation else None,
        )
        answers = [callback(info) for callback in callbacks]
        return "a callback asked to stop" if any(a is True for a in answers) else None

    return watch


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
