"""The boosting loop: one for every loss, learner and strategy; and how a run is taken up again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from ensemble_gpu.boosting.strategy import InBlocks, Skipping, Strategy, one_by_one
from ensemble_gpu.learners.protocol import R

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


def boost(
    strategy: Strategy[R], n_rounds: int, watchers: Sequence[Watcher], earlier: Sequence[R] = ()
) -> Trace[R]:
    """F_0 = constant; for t = 1 ... n_rounds: take the best one, add it, let the rows follow.

    `earlier` rounds, which the strategy has followed, count as the first.
    """
    trace: Trace[R] = Trace(list(earlier))
    for best in rounds_of(strategy, n_rounds - trace.n_rounds):
        trace.rounds.append(best)
        reasons = [watch(trace.n_rounds, best) for watch in watchers]
        if best.perfect:
            trace.stop_reason = f"a {best.name} classifies every row correctly"
            return trace
        if any(reasons):
            trace.stop_reason = next(reason for reason in reasons if reason)
            return trace
    done = trace.n_rounds >= n_rounds
    trace.stop_reason = f"all {n_rounds} rounds were run" if done else strategy.reason
    return trace


def rounds_of(strategy: Strategy[R], most: int) -> Iterator[R]:
    """Best, follow, best, ... of up to `most` rounds; the last is not followed."""
    if isinstance(strategy, InBlocks):
        return strategy.rounds(most)
    return one_by_one(strategy, most)


class Resumed(Generic[R]):
    """A fresh strategy that first finds the rounds of an earlier run, and then its own.

    Whoever watches the loop sees a single run.
    """

    def __init__(self, strategy: Strategy[R], rounds: Sequence[R]) -> None:
        self.strategy, self.earlier = strategy, rounds

    @property
    def reason(self) -> str:
        return self.strategy.reason

    def rounds(self, most: int) -> Iterator[R]:
        strategy, earlier = self.strategy, self.earlier[:most]
        n_skipped = strategy.n_skipped(earlier) if isinstance(strategy, Skipping) else 0
        for number, round_ in enumerate(earlier):
            yield round_
            most -= 1
            if isinstance(strategy, Skipping) and number < n_skipped:
                strategy.skip(round_)
            elif most > 0:
                self.follow(round_)
        yield from rounds_of(self.strategy, most)

    def best(self) -> R | None:
        return self.strategy.best()

    def follow(self, round_: R, /) -> None:
        self.strategy.follow(round_)

    def training_loss(self, round_: R, /) -> float:
        return self.strategy.training_loss(round_)


class Refitted(Resumed[R]):
    """A fresh strategy that finds the rounds of an earlier run once more.

    For learners that could not be kept: `known` [round, 2] are alpha and error of each, which must
    come out the same.
    """

    def __init__(self, strategy: Strategy[R], known: np.ndarray, path: str) -> None:
        super().__init__(strategy, ())
        self.known, self.path = known.tolist(), path

    def rounds(self, most: int) -> Iterator[R]:
        left = iter(self.known[:most])
        for number, best in enumerate(rounds_of(self.strategy, most)):
            self._compare(number, next(left, None), [best.alpha, best.error])
            yield best
        self._compare(most, next(left, None), None)

    def _compare(self, number: int, then: list[float] | None, now: list[float] | None) -> None:
        if then is not None and then != now:
            raise ValueError(
                f"round {number + 1} of resume={self.path!r} had alpha and error {then}, and comes "
                f"out with {now}: the learner is not deterministic, or not the same as then."
            )


def replay(strategy: Strategy[R], rounds: Sequence[R]) -> None:
    """Bring a fresh strategy to where a run stood after these rounds.

    Its next `best` finds, bit for bit, what the uninterrupted run finds.
    """
    for round_ in rounds:
        strategy.follow(round_)
