"""The boosting loop: one for every loss, learner and strategy; and its watchers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.strategy import Plan, R, Strategy
from ensemble_gpu.boosting.watching import Callback, RoundInfo, TrainingLoss

# Called after each round with (rounds so far, the round); a text means "stop, because ...".
Watcher = Callable[[int, Any], str | None]


@dataclass
class Trace(Generic[R]):
    """The rounds of a run, and why it ended."""

    rounds: list[R] = field(default_factory=list)
    stop_reason: str = ""

    @property
    def n_rounds(self) -> int:
        return len(self.rounds)


def boost(strategy: Strategy[R], n_rounds: int, watchers: list[Watcher]) -> Trace[R]:
    """F_0 = constant; for t = 1 ... n_rounds: take the best one, add it, let the rows follow."""
    trace: Trace[R] = Trace()
    while trace.n_rounds < n_rounds:
        best = strategy.best_stump()
        if best is None:
            trace.stop_reason = strategy.reason
            return trace
        trace.rounds.append(best)
        reasons = [watch(trace.n_rounds, best) for watch in watchers]
        if best.perfect:
            trace.stop_reason = f"a {best.name} classifies every row correctly"
            return trace
        if any(reasons):
            trace.stop_reason = next(reason for reason in reasons if reason)
            return trace
        if trace.n_rounds < n_rounds:
            strategy.follow(best)
    trace.stop_reason = f"all {n_rounds} rounds were run"
    return trace


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
        self.F = self.F + self.plan.added(round_, self.X, self.where)
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
) -> Watcher:
    """A watcher that tells every callback; any that returns True stops the fit."""

    def watch(number: int, round_: Any) -> str | None:
        info = RoundInfo(
            round=number,
            n_rounds=n_rounds,
            error=round_.error,
            alpha=round_.alpha,
            validation_loss=validation.history[-1] if validation else None,
            training_loss=training.history[-1] if training else None,
            **plan.told(round_),
        )
        answers = [callback(info) for callback in callbacks]
        return "a callback asked to stop" if any(a is True for a in answers) else None

    return watch
