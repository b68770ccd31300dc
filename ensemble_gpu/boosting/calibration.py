"""Outputs for rows that a model has not been trained on, to learn the scale of probabilities from.

The rows are cut into folds by their keys (data/sampling.py), stratified by class. A model is fitted
to all folds but one and evaluated there, fold after fold, until enough rows have been evaluated:
one number is learnt from them. With many rows one fold is enough, which costs 1 - 1 / N_FOLDS of a
fit; with few all folds are needed, N_FOLDS - 1 fits of few rows. Nothing is random: folds do not
depend on a seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ensemble_gpu.boosting.loop import boost
from ensemble_gpu.boosting.rows import (
    items_and_classes,
    set_aside_for_first,
    weight_left,
)
from ensemble_gpu.data.matrix import sort_by_class
from ensemble_gpu.data.rows import Rows, positions
from ensemble_gpu.data.sampling import Items, fold_of_items
from ensemble_gpu.estimators.reading import TrainingData
from ensemble_gpu.kernels.sparse import evaluate_forest
from ensemble_gpu.model.calibration import best_scale
from ensemble_gpu.model.forest import Forest

N_FOLDS = 5
ENOUGH_ROWS = 2_000
FOLD_SEED = 0

# The rows of a fold, in order of their items; in a team the numbers of those, else None.
Held = tuple[np.ndarray, np.ndarray | None]


class Folds:
    """The folds of training rows, found once.

    None where a class has a single item: it would be missing in training.
    """

    def __init__(self, data: TrainingData, n_classes: int) -> None:
        self.data, self.n_classes = data, n_classes
        self._cut: tuple[Items, list[Held]] | None = None

    def foresee(self, n_ranges: int) -> None:
        """Tell rows that are read in passes (arrays/streamed.py) which ones the first fold leaves,
        binned in so many ranges: what their edges need is read along with codes of all rows.
        """
        self.data.rows.X.foresee(lambda: self._first_rest(n_ranges))

    def _first_rest(self, n_ranges: int) -> Any | None:
        """Positions of the rows that are trained on beside the first fold, in order."""
        items, folds = self._found
        if not folds:
            return None
        rows, where = self._rows, self.data.where
        rest = weight_left(rows, items, folds[0][0]) > 0
        order = where.xp.nonzero(where.put(rest))[0]
        if n_ranges > 1:
            order = sort_by_class(rows.target, n_ranges, where.put(rest), where).rows
        kept = positions(self.data.rows, self.data.keep)
        return order if kept is None else where.xp.take(kept, order)

    @cached_property
    def _rows(self) -> Rows:
        return self.data.taking_part()

    @property
    def _found(self) -> tuple[Items, list[Held]]:
        """How rows are items (without which item is of which row), and as many folds as needed."""
        if self._cut is None:
            self._cut = self._find()
        return self._cut

    def _find(self) -> tuple[Items, list[Held]]:
        data, n_classes = self.data, self.n_classes
        where, team, at = data.where, data.engine.team, positions(data.rows, data.keep)
        host = None if at is None else where.host(at)
        items, index = items_and_classes(self._rows, n_classes, where, team, host)
        label = index[items.rows]
        if team.sum([int((label == c).sum()) for c in range(n_classes)]).min() < 2:
            return items, []
        fold = fold_of_items(index, items, n_classes, N_FOLDS, FOLD_SEED, team)
        folds, n_seen = list[Held](), 0
        for chosen in (fold == k for k in range(N_FOLDS)):
            n = team.count(int(chosen.sum()))
            if n and n_seen < ENOUGH_ROWS:
                n_seen += n
                numbers = None if items.numbers is None else items.numbers[chosen]
                folds.append((items.rows[chosen], numbers))
        return replace(items, rows=items.rows[:0].copy(), numbers=None), folds

    def __iter__(self) -> Iterator[tuple[Rows, Rows, Any]]:
        """(rows of a fold, all rows with the weight that is left, which have any) of each.

        In a team the first worker has the rows of the fold, and `rest` are all rows of the worker.
        """
        data, (items, folds) = self.data, self._found
        where, team = data.where, data.engine.team
        for held, numbers in folds:
            apart, rest, keep = set_aside_for_first(self._rows, items, held, numbers, where, team)
            if numbers is not None:
                rest, keep = self._among_all(rest, keep)
            yield apart, rest, keep

    def _among_all(self, rest: Rows, keep: Any) -> tuple[Rows, Any]:
        """All rows of a worker with the weights of `rest`; which of them take part."""
        data, where = self.data, self.data.where
        at = positions(data.rows, data.keep)
        if at is None:
            return rest, keep

        def spread(array: Any, kind: Any) -> Any:
            every = np.zeros(data.rows.X.shape[0], dtype=kind)
            every[where.host(at)] = where.host(array)
            return where.put(every)

        weights = None if rest.weights is None else spread(rest.weights, np.float64)
        return replace(data.rows, weights=weights), spread(keep, bool)


def learnt_scale(estimator: Any, folds: Folds, held_out: Rows | None, n_rounds: int) -> float:
    """The scale of an estimator's outputs after `n_rounds`; 1 where it cannot be learnt.

    `held_out` are rows that its model has not been trained on already. It cannot be learnt from a
    model without rounds, nor without them where a class has a single row.
    """
    parts: list[tuple[Any, Any, Any]] = []
    data, where, team = folds.data, folds.data.where, folds.data.engine.team
    if n_rounds == 0:
        return 1.0

    def note(model: Any, held: Rows) -> None:
        if team.first:  # who has the rows that are held out
            F = _outputs(model, held.X, data, estimator.n_jobs)
            parts.append((F, held.target, held.weights))

    n_seen = 0
    if held_out is not None:
        note(estimator.model_, held_out)
        n_seen = held_out.X.shape[0]
    for held, rest, keep in folds:
        if team.each(n_seen)[0] >= ENOUGH_ROWS:
            break
        plan = estimator._plan(replace(data, rows=rest, keep=keep))
        rounds = boost(plan.strategy, n_rounds, []).rounds
        model = plan.learner.outcome(rounds, plan.start, plan.constant).model
        del plan  # and the memory of its rows
        note(model, held)
        n_seen += held.X.shape[0]

    def learnt() -> float:
        return best_scale(*_joined(parts, where), estimator.link_, where) if parts else 1.0

    return team.from_first(learnt)


def _outputs(model: Any, X: Any, data: TrainingData, n_jobs: int | None) -> Any:
    """F of encoded rows; a forest would encode them itself."""
    if isinstance(model, Forest):
        return evaluate_forest(data.engine, X, model.packed)
    return model(X, n_jobs=n_jobs)


def _joined(parts: list[tuple[Any, Any, Any]], where: Any) -> tuple[Any, Any, Any]:
    """One after the other; weights of 1 where some have weights and others none."""
    xp = where.xp
    F, index = (xp.concat([part[k] for part in parts]) for k in (0, 1))
    if all(part[2] is None for part in parts):
        return F, index, None
    ones = [where.zeros(part[0].shape[0], xp.float64) + 1.0 for part in parts]
    weights = [one if part[2] is None else part[2] for one, part in zip(ones, parts, strict=True)]
    return F, index, xp.concat(weights)
