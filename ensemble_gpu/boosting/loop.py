"""The boosting loop: one for every loss, learner and strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ensemble_gpu.boosting.strategies import Strategy, Stump

# Called after each round with (rounds so far, the stump); a text means "stop, because ...".
Watcher = Callable[[int, Stump], str | None]


@dataclass
class Trace:
    """The rounds of a run and why it ended."""

    stumps: list[Stump] = field(default_factory=list)
    stop_reason: str = ""


def boost(strategy: Strategy, n_rounds: int, watchers: list[Watcher]) -> Trace:
    """F_0 = 0; for t = 1 ... n_rounds: take the best stump, add it, let the weights follow."""
    trace = Trace()
    while len(trace.stumps) < n_rounds:
        stump = strategy.best_stump()
        if stump is None:
            trace.stop_reason = strategy.reason
            return trace
        trace.stumps.append(stump)
        reasons = [watch(len(trace.stumps), stump) for watch in watchers]
        if stump.perfect:
            trace.stop_reason = "a stump classifies every row correctly"
            return trace
        if any(reasons):
            trace.stop_reason = next(reason for reason in reasons if reason)
            return trace
        if len(trace.stumps) < n_rounds:
            strategy.follow(stump)
    trace.stop_reason = f"all {n_rounds} rounds were run"
    return trace
