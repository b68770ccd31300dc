"""More rounds on the same data: what a fit keeps, and what the next one may change.

A fit with warm_start=True keeps its rounds. The next one takes them again, one by one, into a fresh
strategy (boosting/loop.py: Resumed) and goes on where they end, so that model and history are
those of a single run. Its validation rows and metrics are its own: they are evaluated for
the old rounds as well, and early stopping that has ended a fit ends it again.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ensemble_gpu.boosting.loop import Resumed
from ensemble_gpu.boosting.strategy import Plan, Strategy
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.estimators.contents import Contents, contents_of
from ensemble_gpu.estimators.described import binding_parameters
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.estimators.shape import Shape

# What may change between the fits: no round depends on it, or the data would show it.
FREE = {
    "n_estimators", "n_iter_no_change", "early_stopping", "validation_fraction", "metric",
    "callbacks", "warm_start",
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A fit that can be continued: all its rounds, and what must be the same for more of them.

    `resolved` are the values of parameters that were left to the estimator: to spell one is no
    change.
    """

    rounds: Sequence[Any]
    parameters: dict[str, Any]
    resolved: dict[str, Any]
    random_state: Any
    shape: Shape
    contents: Contents

    def check_parameters(self, estimator: Any) -> None:
        """Raise where parameters would give another run, or fewer rounds."""
        now, resolved = parameters_of(estimator), estimator._resolved()
        changed = [
            name
            for name in now
            if not _same(self.parameters.get(name), now[name])
            and not (name in resolved and _same(self.resolved.get(name), resolved[name]))
        ]
        if changed:
            told = ", ".join(
                f"{name} was {self.parameters.get(name)!r} and is {now[name]!r}" for name in changed
            )
            raise ValueError(
                f"warm_start=True adds rounds to those of the last fit, whose {told}. Use "
                "warm_start=False to fit anew."
            )
        asked = estimator.n_estimators
        if isinstance(asked, numbers.Integral) and int(asked) < len(self.rounds):
            raise ValueError(
                f"n_estimators must be at least {len(self.rounds)}, the rounds of the last fit, "
                f"with warm_start=True; got {asked}."
            )

    def strategy(self, fresh: Strategy[Any]) -> Strategy[Any]:
        """A fresh strategy that first goes the way of the run."""
        return Resumed(fresh, self.rounds)

    def check_data(self, now: Run) -> None:
        """Raise where the rows are not those of the rounds."""
        self.shape.check(now.shape)
        changed = self.contents.changes(now.contents, now.shape.names)
        if changed:
            raise ValueError(
                "warm_start=True adds rounds on the training rows of the last fit; what has "
                f"changed: {', '.join(changed)}. Use warm_start=False to fit anew, or init_score "
                "to go on from a model."
            )


def parameters_of(estimator: Any) -> dict[str, Any]:
    """The parameters that rounds depend on; of an estimator among them its class and its own."""
    return {
        name: type(value) if hasattr(value, "get_params") else _copied(value)
        for name, value in binding_parameters(estimator, FREE).items()
    }


def _copied(value: Any) -> Any:
    """A copy that a change of the original does not reach; fitted members of a list stay theirs."""
    if isinstance(value, list | tuple) and any(hasattr(one, "predict") for one in value):
        return type(value)(value)
    return deepcopy(value)


def state_of(random_state: Any) -> Any:
    """A random_state from which the same is drawn again, whatever is drawn from this one."""
    if isinstance(random_state, numbers.Integral):
        return random_state
    try:
        return deepcopy(check_random_state(random_state))
    except ValueError:
        return random_state  # refused where it is drawn from


def contents(data: TrainingData, plan: Plan) -> Contents:
    """Digests of the training rows, binned where the learner sees them so."""
    learner = getattr(plan.learner, "learners", [plan.learner])[0]  # of the first of several bags
    matrix = getattr(learner, "matrix", None)
    matrix = matrix if isinstance(matrix, BinnedMatrix) else None
    return contents_of(data.rows, data.keep, data.where, matrix, data.engine)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
