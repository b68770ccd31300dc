"""Validation rows: followed round by round, measured, and asked when to stop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.evaluation import Evaluation, Watched, decider, watched_metrics
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.kernels.team import current_team

# Cells of a validation set up to which it is copied so that features lie side by side.
COPIED_CELLS = 1 << 23


def _by_column(X: Any) -> Any:
    """Rows of which a stump reads one feature: on the host that one in a piece, if they are few."""
    few = isinstance(X, np.ndarray) and X.size <= COPIED_CELLS
    return np.asfortranarray(X) if few else X


class EvalSet:
    """Follows the outputs F of the rows of one validation set.

    In a team the first worker has these rows, and tells the others what it finds.
    """

    def __init__(
        self,
        name: str,
        plan: Plan,
        X: Any,
        offset: Any | None,
        evaluate: Evaluation | None,
        where: Where,
    ) -> None:
        self.name, self.plan, self.evaluate, self.where = name, plan, evaluate, where
        self.team = current_team()
        self.X = _by_column(X) if plan.learner.by_feature else X
        zeros = where.zeros((X.shape[0], len(plan.start)), where.xp.float64)
        self.F = zeros + where.put(plan.start)[None, :]
        if offset is not None:
            self.F = self.F + offset

    def values(self, round_: Any) -> list[float]:
        """All metrics after a round."""
        return self.team.from_first(lambda: self._values(round_))

    def _values(self, round_: Any) -> list[float]:
        assert self.evaluate is not None
        self.F = self.F + self.plan.learner.added(round_, self.X, self.where)
        return [float(value) for value in self.evaluate(self.F)]


class Validation:
    """All metrics of all sets after each round; `history` is the one that decides when to stop."""

    def __init__(
        self,
        sets: Sequence[EvalSet],
        metrics: Sequence[Watched],
        decides: tuple[int, int],
        patience: int | None,
    ) -> None:
        self.sets, self.metrics, self.patience = sets, metrics, patience
        own, metric = sets[decides[0]], metrics[decides[1]]
        self.decides, self.greater_is_better = (own.name, metric.name), metric.greater_is_better
        self.sign = -1.0 if metric.greater_is_better else 1.0
        self.evals: dict[str, dict[str, list[float]]] = {
            one.name: {metric.name: [] for metric in metrics} for one in sets
        }
        self.best, self.best_round = math.inf, 1

    @property
    def history(self) -> list[float]:
        return self.evals[self.decides[0]][self.decides[1]]

    def best_of_first(self, n_rounds: int) -> int:
        """The best of the first rounds, the first of equals."""
        if self.best_round <= n_rounds:
            return self.best_round
        signed = [self.sign * value for value in self.history[:n_rounds]]
        return 1 + min(range(n_rounds), key=signed.__getitem__, default=0)

    def latest(self) -> dict[str, dict[str, float]]:
        return {
            name: {metric: values[-1] for metric, values in of_set.items()}
            for name, of_set in self.evals.items()
        }

    def __call__(self, n_rounds: int, round_: Any) -> str | None:
        for one in self.sets:
            values = zip(self.metrics, one.values(round_), strict=True)
            for metric, value in values:
                self.evals[one.name][metric.name].append(value)
        latest = self.sign * self.history[-1]
        if latest < self.best:
            self.best, self.best_round = latest, n_rounds
        waited = n_rounds - self.best_round
        if self.patience is not None and waited >= self.patience:
            return f"{' '.join(self.decides)} has not improved for {waited} rounds"
        return None


def watch_sets(
    estimator: Any,
    plan: Plan,
    held_out: dict[str, Rows],
    stop_on: Any,
    patience: int | None,
    where: Where,
    home: Where,
) -> Validation | None:
    """The metrics of an estimator on named sets of rows, which are in `where`; None without any."""
    if not held_out:
        if stop_on is not None:
            raise ValueError(
                "stop_on is for validation rows: give eval_set, X_val and y_val, or "
                f"early_stopping=True; got {stop_on!r}."
            )
        return None
    metrics = watched_metrics(estimator.metric, estimator._task, estimator._quantile)
    decides = decider(stop_on, list(held_out), metrics)
    first = current_team().first

    def evaluation(rows: Rows) -> Evaluation | None:
        return Evaluation(estimator, metrics, plan, rows, where, home) if first else None

    sets = [
        EvalSet(name, plan, rows.X, rows.offset, evaluation(rows), where)
        for name, rows in held_out.items()
    ]
    return Validation(sets, metrics, decides, patience)
