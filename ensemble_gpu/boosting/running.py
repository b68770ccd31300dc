"""The loop of one fit, with all who watch it: losses, callbacks, checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ensemble_gpu.boosting.loop import Refitted, Resumed, Trace, Watcher, boost
from ensemble_gpu.boosting.round_checks import check_rounds
from ensemble_gpu.boosting.round_records import read_rounds, written_rounds
from ensemble_gpu.boosting.strategy import Plan, Strategy
from ensemble_gpu.boosting.validation import Validation
from ensemble_gpu.boosting.warm_start import Run
from ensemble_gpu.boosting.watching import TrainingLoss, call_callbacks
from ensemble_gpu.estimators.checkpoint import Checkpoints, checkpoints_of, others_of
from ensemble_gpu.estimators.resuming import Origin, read_checkpoint
from ensemble_gpu.kernels.team import Journal, Team, current_team
from ensemble_gpu.saving.runs import write_run

# What following a round may raise that does not fit.
MISFITS = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


@dataclass(frozen=True)
class SavedRun:
    """A run from a file; of learners that no file can hold `rounds` are alpha and error [n, 2]."""

    path: str
    origin: Origin
    rounds: Sequence[Any] | np.ndarray

    @property
    def random_state(self) -> Any:
        return self.origin.random_state

    def strategy(self, fresh: Strategy[Any]) -> Strategy[Any]:
        """A fresh strategy that first goes the way of the run."""
        if isinstance(self.rounds, np.ndarray):
            return Refitted(fresh, self.rounds, self.path)
        return _FromFile(fresh, self.rounds, self.path)

    def check_rounds(self, plan: Plan) -> None:
        """Raise where a round does not fit the plan of the fit."""
        if isinstance(self.rounds, np.ndarray):
            return
        try:
            check_rounds(self.rounds, plan)
        except ValueError as error:
            raise ValueError(f"resume={self.path!r} does not fit: {error}.") from error


class _FromFile(Resumed[Any]):
    """Rounds that were read: what does not fit is an error of the file."""

    def __init__(self, strategy: Strategy[Any], rounds: Sequence[Any], path: str) -> None:
        super().__init__(strategy, rounds)
        self.path = path

    def follow(self, round_: Any, /) -> None:
        try:
            super().follow(round_)
        except MISFITS as error:
            raise ValueError(f"a round of resume={self.path!r} is none of this fit.") from error


def read_saved(path: Any) -> SavedRun | None:
    """The run of a checkpoint; None where there is no such file."""
    found = read_checkpoint(path)
    if found is None:
        return None
    try:
        rounds = read_rounds(found.told.get("rounds"), found.arrays)
    except ValueError as error:
        raise ValueError(f"resume={found.path!r} cannot be read: {error}.") from error
    return SavedRun(found.path, found.origin, rounds)


@dataclass(frozen=True)
class BrokenOff:
    """A fit of several workers that was broken off, and begins again."""

    journal: Journal

    @property
    def rounds(self) -> Sequence[Any]:
        return self.journal.earlier

    def strategy(self, fresh: Strategy[Any]) -> Strategy[Any]:
        return Resumed(fresh, self.rounds)


def _asked_once(tell: Watcher, team: Team) -> Watcher:
    """A watcher whose answer is that of the first worker."""
    return lambda n, round_: team.from_first(lambda: tell(n, round_))


class Running:
    """The loop of an estimator on a plan; the rounds of an `earlier` run are the first.

    Callbacks have seen those. `origin` is what a checkpoint says of the fit, where there are any.
    """

    def __init__(
        self,
        estimator: Any,
        plan: Plan,
        validation: Validation | None,
        earlier: Run | SavedRun | BrokenOff | None,
        origin: Origin | None,
    ) -> None:
        self.estimator, self.plan, self.validation = estimator, plan, validation
        self.earlier, self.origin = earlier, origin
        self.callbacks = others_of(estimator.callbacks)
        watched = validation is not None or self.callbacks
        self.training = TrainingLoss(plan.strategy) if plan.cheap_loss or watched else None
        self.rounds: list[Any] = []
        self.checkpoints = Checkpoints(checkpoints_of(estimator.callbacks), self._write_so_far)

    def __call__(self, n_rounds: int) -> Trace:
        team = current_team()
        if team.journal is not None and self.earlier is None:
            self.earlier = BrokenOff(team.journal)
        n_earlier = 0 if self.earlier is None else len(self.earlier.rounds)
        watchers: list[Any] = [w for w in (self.training, self.validation) if w]
        if self.callbacks:
            tell = call_callbacks(
                self.callbacks, n_rounds, self.plan, self.training, self.validation
            )
            if not team.alone:  # the first worker asks, for all of them
                tell = _asked_once(tell, team)
            watchers.append(lambda n, round_: tell(n, round_) if n > n_earlier else None)
        if self.checkpoints.schedules:
            self.checkpoints.begin(n_earlier)
            watchers.append(self._seen)
        if team.journal is not None:
            watchers.append(lambda n, round_: team.journal.found.append(round_))
        fresh = self.plan.strategy
        strategy = self.earlier.strategy(fresh) if self.earlier and n_earlier else fresh
        with self.checkpoints.watching(self.callbacks):
            return boost(strategy, n_rounds, watchers)

    def _seen(self, n_rounds: int, round_: Any) -> None:
        """After all others have seen a round."""
        self.rounds.append(round_)
        self.checkpoints(n_rounds)

    def _write_so_far(self, path: Path, n_rounds: int) -> None:
        """The model of the rounds so far, and the rounds."""
        model = copy(self.estimator)
        trace = Trace(self.rounds[:n_rounds], f"the fit has come to round {n_rounds}")
        model._keep(trace, self.plan, self.training, self.validation)
        model._calibrate(None, None)
        self._write(path, model)

    def _write(self, path: Path, estimator: Any) -> None:
        assert self.origin is not None
        origin, state = self.origin.written()
        rounds, arrays = written_rounds(self.rounds)
        write_run(path, estimator, {"origin": origin, "rounds": rounds}, {**state, **arrays})

    def let_go(self) -> None:
        """The rounds are done: what they needed is free again."""
        del self.plan, self.training, self.validation

    def end(self) -> None:
        """The estimator has its model."""
        self.checkpoints.write = lambda path, _: self._write(path, self.estimator)
        self.checkpoints.end(len(self.rounds))
