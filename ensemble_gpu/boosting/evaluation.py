"""Validation sets and what they are judged by: any number of sets, any number of metrics.

    fit(X, y, eval_set=[(X1, y1), (X2, y2, w2), ...])    or X_val, y_val for a single one
    metric=["roc_auc", "log_loss", my_function]          names, callables, None for the loss

The first metric of the last set decides early stopping, unless `stop_on` of fit names others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.estimators.reading import GivenRows
from ensemble_gpu.metrics import Metric, metric_named, metric_value

LOSS = "loss"
# What the only set is called: given as X_val, or held out.
VALIDATION = "validation"


@dataclass(frozen=True)
class Watched:
    """A metric under the name that it has in the history; no source: the estimator's loss."""

    name: str
    greater_is_better: bool
    source: Metric | Callable[..., float] | None

    @property
    def ranks(self) -> bool:
        """Whether it takes the one output of two classes as well as probabilities."""
        return isinstance(self.source, Metric) and self.source.ranks


def watched_metrics(given: Any, task: str, quantile: float | None = None) -> list[Watched]:
    """The parameter `metric`: None, a name, a callable, or a list of them.

    `quantile` is that of the estimator, for the metric "quantile_loss" (None: the median).
    """
    found: list[Watched] = []
    for one in given if isinstance(given, list | tuple) else [given]:
        watched = _watched(one, given, task, quantile)
        taken = [other.name for other in found]
        if watched.name in taken:
            if isinstance(watched.source, Metric) or watched.source is None:
                raise ValueError(f"metric names {watched.name!r} twice: {given!r}.")
            name = next(
                name for i in range(2, len(taken) + 3)
                if (name := f"{watched.name} {i}") not in taken
            )  # fmt: skip
            watched = Watched(name, watched.greater_is_better, watched.source)
        found.append(watched)
    if not found:
        raise ValueError(f"metric must not be an empty list; None is the loss; got {given!r}.")
    return found


def _watched(one: Any, given: Any, task: str, quantile: float | None) -> Watched:
    if one is None or (isinstance(one, str) and one == LOSS):
        return Watched(LOSS, False, None)
    if isinstance(one, str):
        metric = metric_named(one, task, (LOSS,), quantile)
        return Watched(metric.name, metric.greater_is_better, metric)
    if not callable(one):
        raise TypeError(
            "metric must be None (the loss), a name, a callable metric(y, prediction) -> float, or "
            f"a list of these; got {given!r}."
        )
    name = getattr(one, "__name__", type(one).__name__)
    greater = getattr(one, "greater_is_better", False) is True
    return Watched("metric" if name == "<lambda>" else name, greater, one)


class Evaluation:
    """Values of all metrics for the outputs F of one set, from one prediction."""

    def __init__(
        self, estimator: Any, metrics: Sequence[Watched], plan: Plan, rows: Rows, where: Where,
        home: Where,
    ) -> None:  # fmt: skip
        self.estimator, self.metrics, self.plan, self.rows = estimator, metrics, plan, rows
        self.where, self.home = where, home
        self.queries = () if rows.groups is None else (rows.groups,)
        watched = getattr(plan.loss, "watched", None)
        self.loss = watched and watched(rows.target, rows.weights, *self.queries)

    def __call__(self, F: Any) -> list[float]:
        one = F.shape[1] == 1
        needed = not all(m.source is None or (m.ranks and one) for m in self.metrics)
        prediction = self.estimator._prediction(F, self.rows.target, self.where) if needed else None
        return [self._value(metric, F, prediction) for metric in self.metrics]

    def _value(self, metric: Watched, F: Any, prediction: Any) -> float:
        target, weights, source = self.rows.target, self.rows.weights, metric.source
        if source is None:
            return self.loss(F) if self.loss else self.plan.loss(F, target, weights)
        if isinstance(source, Metric):
            scores = F[:, 0] if metric.ranks and F.shape[1] == 1 else prediction
            return source.function(target, scores, weights, *self.queries)
        # copies: the user's function may keep or change them, and torch warns of read-only views
        hand_over = self.home.hand_over
        truth = self.estimator._metric_truth(target, self.where)
        more = {} if weights is None else {"sample_weight": hand_over(_copy(weights))}
        for groups in self.queries:
            more["qid"] = hand_over(_copy(groups.index))
        return metric_value(source(hand_over(_copy(truth)), hand_over(_copy(prediction)), **more))


def _copy(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array.copy()
    return locate(array).xp.asarray(array, copy=True)


@dataclass(frozen=True)
class GivenSet:
    """A validation set as the user gave it, and its name in the history."""

    name: str
    rows: GivenRows


# The parts of a set in `eval_set`, the last two of which may be left out; those of a ranking.
PARTS = ("X", "y", "sample_weight", "init_score")
QUERY_PARTS = ("X", "y", "qid", "sample_weight", "init_score")


def given_sets(
    eval_set: Any, eval_names: Any, short: GivenRows, parts: tuple[str, ...] = PARTS
) -> list[GivenSet]:
    """The sets of `fit`: `eval_set`, or `short`, that is X_val, y_val and what belongs to them."""
    if eval_set is None:
        if eval_names is not None:
            raise ValueError(f"eval_names is for eval_set, which is None; got {eval_names!r}.")
        if short.X is None:
            short.check_nothing_given()
            return []
        return [GivenSet(VALIDATION, short)]
    if short.X is not None:
        raise ValueError(
            "eval_set and X_val were both given; X_val, y_val are one set of eval_set."
        )
    short.check_nothing_given()
    if not isinstance(eval_set, list | tuple) or not eval_set:
        raise TypeError(
            f"eval_set must be a list of tuples {_forms(parts)}; got {_brief(eval_set)}."
        )
    names = _names(eval_names, len(eval_set))
    return [
        GivenSet(name, _given_rows(one, i, parts))
        for i, (name, one) in enumerate(zip(names, eval_set, strict=True))
    ]


def _forms(parts: tuple[str, ...]) -> str:
    """(X, y), (X, y, sample_weight) or (X, y, sample_weight, init_score)."""
    *first, last = [f"({', '.join(parts[:n])})" for n in range(len(parts) - 2, len(parts) + 1)]
    return f"{', '.join(first)} or {last}"


def _given_rows(one: Any, i: int, parts: tuple[str, ...]) -> GivenRows:
    if not isinstance(one, list | tuple) or not len(parts) - 2 <= len(one) <= len(parts):
        raise TypeError(f"eval_set[{i}] must be a tuple {_forms(parts)}; got {_brief(one)}.")
    if one[0] is None:
        raise ValueError(f"eval_set[{i}][0] must be the features of the rows; got None.")
    given = dict(zip(parts, [*one, None, None], strict=False))
    called = {part: f"eval_set[{i}][{j}]" for j, part in enumerate(parts)}
    order = (*PARTS, "qid")
    return GivenRows(**given, names=tuple(called.get(part, "") for part in order))


def _names(given: Any, n_sets: int) -> list[str]:
    if given is None:
        return [f"{VALIDATION}_{i}" for i in range(n_sets)]
    names = list(given) if isinstance(given, list | tuple) else [given]
    if len(names) != n_sets or len({*map(str, names)}) != n_sets:
        raise ValueError(
            f"eval_names must be {n_sets} different names, one for each of eval_set; got {given!r}."
        )
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"eval_names must hold strings; got {name!r}.")
    return names


def _brief(given: Any) -> str:
    if isinstance(given, list | tuple):
        return f"a {type(given).__name__} of {len(given)}"
    return f"{given!r}" if given is None or isinstance(given, str) else f"a {type(given).__name__}"


def decider(stop_on: Any, sets: Sequence[str], metrics: Sequence[Watched]) -> tuple[int, int]:
    """Positions of the set and the metric that early stopping goes by.

    `stop_on` is the name of a set, of a metric, or a pair (set, metric); what is not named is the
    last set and the first metric.
    """
    names = [metric.name for metric in metrics]
    set_, metric = len(sets) - 1, 0
    if stop_on is None:
        return set_, metric
    pair = stop_on if isinstance(stop_on, tuple | list) and len(stop_on) == 2 else None
    if pair is not None and pair[0] in sets and pair[1] in names:
        return list(sets).index(pair[0]), names.index(pair[1])
    if isinstance(stop_on, str) and stop_on in sets:
        return list(sets).index(stop_on), metric
    if isinstance(stop_on, str) and stop_on in names:
        return set_, names.index(stop_on)
    raise ValueError(
        f"stop_on must be None, the name of a set {list(sets)!r}, of a metric {names!r}, or a pair "
        f"(set, metric); got {stop_on!r}."
    )
