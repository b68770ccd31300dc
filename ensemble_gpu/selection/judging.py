"""What a fitted estimator is worth on held-out rows, after some or all of its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import Where, is_array, locate
from ensemble_gpu.data.bins import PartBins
from ensemble_gpu.data.groups import Groups, read_groups, read_weights
from ensemble_gpu.data.labels import check_labels
from ensemble_gpu.data.validation import check_target, check_weights
from ensemble_gpu.metrics import (
    CLASSIFICATION,
    RANKING,
    REGRESSION,
    Metric,
    metric_named,
    metric_value,
)
from ensemble_gpu.selection.splits import n_rows, take_rows

# Scores of outcomes that are judged together.
TOGETHER = 1 << 20

DEFAULTS = {CLASSIFICATION: "log_loss", REGRESSION: "rmse", RANKING: "ndcg@10"}


def task_of(estimator: Any, qid: Any) -> str:
    """What an estimator predicts; `qid` is for those that rank."""
    ranks = getattr(estimator, "_task", None) == RANKING
    if ranks and qid is None:
        raise ValueError(
            "qid must say which query each row belongs to: "
            f"{type(estimator).__name__} ranks rows of queries; got None."
        )
    if not ranks and qid is not None:
        raise ValueError(
            f"qid is for estimators that rank; {type(estimator).__name__} does not. groups= holds "
            "out groups of rows as a whole."
        )
    if ranks:
        return RANKING
    return CLASSIFICATION if is_classifier(estimator) else REGRESSION


@dataclass(frozen=True)
class Judge:
    """A metric under its name: a named one, or the user's function(y, prediction)."""

    name: str
    greater_is_better: bool
    source: Metric | Callable[..., float]


def judges(given: Any, task: str, estimator: Any) -> list[Judge]:
    """The parameter `metrics`: None (see DEFAULTS), a name, a callable, or a list of them."""
    given = DEFAULTS[task] if given is None else given
    found: list[Judge] = []
    for one in given if isinstance(given, list | tuple) else [given]:
        if isinstance(one, str):
            metric = metric_named(one, task, quantile=getattr(estimator, "_quantile", None))
            found.append(Judge(metric.name, metric.greater_is_better, metric))
        elif callable(one):
            name = getattr(one, "__name__", type(one).__name__)
            greater = getattr(one, "greater_is_better", False) is True
            found.append(Judge(name, greater, one))
        else:
            raise TypeError(
                "metrics must be names, callables metric(y, prediction) -> float, or a list of "
                f"these; got {given!r}."
            )
    names = [judge.name for judge in found]
    if not found or len(set(names)) != len(names):
        raise ValueError(f"metrics must be a list of different metrics, not empty; got {given!r}.")
    return found


@dataclass(frozen=True)
class Held:
    """Rows to be judged by: as the user gave them, and as metrics take them.

    They are the rows `at` of `all_X` (None: all), which are taken when they are needed.
    Of rankings `qid` are the queries, and weights may be those of queries: of `groups` alone then.
    """

    all_X: Any
    y: Any
    weights: Any | None
    target: Any
    checked_weights: Any | None
    where: Where
    home: Where
    at: np.ndarray | None = None
    qid: Any = None
    groups: Groups | None = None

    @property
    def n(self) -> int:
        return int(self.target.shape[0])

    @cached_property
    def X(self) -> Any:
        return self.all_X if self.at is None else take_rows(self.all_X, self.at)

    @property
    def stand_in(self) -> Any:
        """As many rows of the same kind, without a copy: for fits that look at no value."""
        return self.all_X[: self.n, ...]

    def take(self, at: np.ndarray) -> Held:
        y, weights = (take_rows(part, at) for part in (self.y, self.weights))
        target, checked = (take_rows(part, at) for part in (self.target, self.checked_weights))
        groups = self.groups
        if groups is not None:
            groups = Groups(take_rows(groups.index, at), groups.weights)
        qid = take_rows(self.qid, at)
        return Held(self.X, y, weights, target, checked, self.where, self.home, at, qid, groups)

    def in_blocks(self, n: int) -> Iterator[Held]:
        """The rows alone, some at a time unless they have been taken: no copy of all is needed."""
        if self.at is None or "X" in vars(self) or self.n <= n:
            yield self
            return
        bare = replace(self, y=None, weights=None, checked_weights=None, qid=None, groups=None)
        for a in range(0, self.n, n):
            b = min(a + n, self.n)
            yield replace(bare, target=self.target[a:b, ...], at=self.at[a:b])

    def to_fit(self) -> dict[str, Any]:
        """What `fit` takes besides X and y."""
        if self.groups is None:
            return {} if self.weights is None else {"sample_weight": self.weights}
        weights = self.weights
        if self.groups.weights is not None:
            weights = self.groups.weights[np.unique(self.where.host(self.groups.index))]
        more = {} if weights is None else {"sample_weight": weights}
        return {"qid": self.qid, **more}


def read_held(X: Any, y: Any, sample_weight: Any, task: str, qid: Any = None) -> tuple[Held, Any]:
    """All rows, and their labels in order (None: there are none)."""
    home, n = locate(X), n_rows(X)
    where = locate(to_workplace(X))
    classes = None
    if task == CLASSIFICATION:
        classes, target = check_labels(to_workplace(y), n, where, 2, "y")
    else:
        target = check_target(to_workplace(y), n, where, "y")
    if task != RANKING:
        weights = check_weights(to_workplace(sample_weight), n, where, "sample_weight")
        return Held(X, y, sample_weight, target, weights, where, home), classes
    index, n_groups = read_groups(to_workplace(qid), n, where)
    weights, of_groups = read_weights(
        to_workplace(sample_weight), n, n_groups, where, "sample_weight"
    )
    given = None if weights is None else sample_weight
    groups = Groups(index, of_groups)
    qid = qid if is_array(qid) else np.asarray(qid)
    return Held(X, y, given, target, weights, where, home, None, qid, groups), classes


@dataclass(frozen=True)
class Outcome:
    """Predictions, made when they are asked for, and scores of two classes (None: there are none).

    Predictions are probabilities [n, K] or numbers [n].
    """

    make: Callable[[], Any]
    scores: Any | None = None

    @cached_property
    def prediction(self) -> Any:
        return self.make()

    def at(self, rows: np.ndarray) -> Outcome:
        """The same for some of the rows."""
        return Outcome(lambda: take_rows(self.prediction, rows), take_rows(self.scores, rows))


def outcomes(estimator: Any, held: Held, rounds: Sequence[int] | None) -> Iterator[Outcome]:
    """What an estimator says of the rows, after each of `rounds` (None: all)."""
    classifier = is_classifier(estimator)
    if hasattr(estimator, "_staged"):
        last = estimator.n_estimators_
        for F, _, where in estimator._staged(held.X, [last] if rounds is None else rounds):
            scores = F[:, 0] if classifier and F.shape[1] == 1 else None
            yield Outcome(partial(_from_outputs, estimator, F, where), scores)
        return
    predict = estimator.predict_proba if classifier else estimator.predict
    yield Outcome(lambda: _checked(to_workplace(predict(held.X)), classifier))


def _from_outputs(estimator: Any, F: Any, where: Where) -> Any:
    classifier = is_classifier(estimator)
    return _checked(
        estimator._probabilities(F, where) if classifier else estimator._mean(F), classifier
    )


def _checked(prediction: Any, classifier: bool) -> Any:
    prediction = locate(prediction).as_float64(prediction)
    if not classifier and prediction.ndim != 1:
        raise ValueError(
            "cross-validation is for one prediction a row; the estimator has several (quantiles)."
        )
    return prediction


def outcomes_of_each(models: Sequence[Any], held: Held) -> Iterator[Outcome]:
    """The same of several models, which may share the work."""
    if len(models) > 1 and hasattr(models[0], "_outputs_of_each"):
        classifier = is_classifier(models[0])
        for F, _ in models[0]._outputs_of_each(models, held.X):
            yield Outcome(partial(_checked, F if classifier else F[:, 0], classifier))
        return
    for model in models:
        yield from outcomes(model, held, None)


def squares_from_tables(
    model: Any, held: Held, judged: Sequence[Judge], stages: Sequence[int], bins: Any
) -> np.ndarray | None:
    """MSE or RMSE [stages, metrics] of held-out rows without a pass over them; None: not so."""
    if not isinstance(bins, PartBins) or not hasattr(model, "_held_out_squares"):
        return None
    if not _squares(judged, held):
        return None
    return _at_stages(model._held_out_squares(bins, held.target, len(stages)), judged, stages)


def squares_in_training(
    model: Any, rows: Held, judged: Sequence[Judge], stages: Sequence[int] | None
) -> np.ndarray | None:
    """The same of the rows that were trained on, where the fit has kept their loss.

    Without stages, after all rounds.
    """
    if not hasattr(model, "_training_squares") or not _squares(judged, rows):
        return None
    return _at_stages(model._training_squares(), judged, stages)


def _squares(judged: Sequence[Judge], rows: Held) -> bool:
    """Whether the mean of squares says it all."""
    known = all(isinstance(one.source, Metric) and one.name in ("mse", "rmse") for one in judged)
    return known and rows.weights is None


def _at_stages(
    squares: np.ndarray | None, judged: Sequence[Judge], stages: Sequence[int] | None
) -> np.ndarray | None:
    """Metrics [stages, metrics] from the mean squares after rounds 1, 2, ... (None: after all)."""
    if squares is None or len(squares) == 0:
        return None
    stages = [len(squares)] if stages is None else stages
    if len(squares) < max(stages):
        return None
    mse = squares[np.array(stages) - 1]
    return np.stack([np.sqrt(mse) if one.name == "rmse" else mse for one in judged], axis=1)


def values(judged: Sequence[Judge], outcome: Outcome, held: Held) -> list[float]:
    """What every metric says of one outcome."""
    return [_values(judge, [outcome], held)[0] for judge in judged]


def values_of_each(
    judged: Sequence[Judge], found: Iterable[Outcome], held: Held
) -> Iterator[list[float]]:
    """The same of several outcomes, as many at a time as a metric takes together."""
    for together in _together(found, held.n):
        columns = [_values(judge, together, held) for judge in judged]
        yield from map(list, zip(*columns, strict=True))


def values_of_parts(
    judged: Sequence[Judge],
    outcomes_of: Callable[[Held], Iterable[Outcome]],
    every: Held,
    parts: Sequence[Held],
) -> list[np.ndarray]:
    """Metrics [outcomes, metrics] of the parts, each of some rows of `every`.

    Parts of most rows share the outcomes of all.
    """
    if len(parts) <= 1 or 2 * sum(part.n for part in parts) < every.n:
        return [np.array(list(values_of_each(judged, outcomes_of(part), part))) for part in parts]
    found: list[list[list[float]]] = [[] for _ in parts]
    for together in _together(outcomes_of(every), every.n):
        for rows, part in zip(found, parts, strict=True):
            assert part.at is not None
            rows += values_of_each(judged, [one.at(part.at) for one in together], part)
    return [np.array(rows) for rows in found]


def _together(found: Iterable[Outcome], n: int) -> Iterator[list[Outcome]]:
    """Outcomes of n rows, some at a time."""
    left, most = iter(found), max(1, TOGETHER // max(1, n))
    while together := list(islice(left, most)):
        yield together


def _values(judge: Judge, found: Sequence[Outcome], held: Held) -> list[float]:
    """What one metric says of each outcome."""
    source, weights = judge.source, held.checked_weights
    if not isinstance(source, Metric):
        predictions = (held.home.hand_over(one.prediction) for one in found)
        return [metric_value(source(held.y, one, **held.to_fit())) for one in predictions]
    scores = [one.scores for one in found if source.ranks and one.scores is not None]
    if len(scores) == len(found) and source.of_stack is not None:
        return source.of_stack(held.target, held.where.xp.stack(scores), weights)
    queries = () if held.groups is None else (held.groups,)
    taken = scores if len(scores) == len(found) else [one.prediction for one in found]
    return [source.function(held.target, one, weights, *queries) for one in taken]
