"""What a fitted estimator is worth on held-out rows, after some or all of its rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
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

    def take(self, at: np.ndarray) -> Held:
        y, weights = (take_rows(part, at) for part in (self.y, self.weights))
        target, checked = (take_rows(part, at) for part in (self.target, self.checked_weights))
        groups = self.groups
        if groups is not None:
            groups = Groups(take_rows(groups.index, at), groups.weights)
        qid = take_rows(self.qid, at)
        return Held(self.X, y, weights, target, checked, self.where, self.home, at, qid, groups)

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


def outcomes(
    estimator: Any, held: Held, rounds: Sequence[int] | None
) -> Iterator[tuple[Any, Any | None]]:
    """Predictions and scores (None: there are none), after each of `rounds` (None: all).

    Predictions are probabilities [n, K] or numbers [n].
    """
    classifier = is_classifier(estimator)
    if hasattr(estimator, "_staged"):
        last = estimator.n_estimators_
        for F, _, where in estimator._staged(held.X, [last] if rounds is None else rounds):
            if classifier:
                p = estimator._probabilities(F, where)
                yield where.as_float64(p), F[:, 0] if F.shape[1] == 1 else None
            else:
                yield _column(where.as_float64(estimator._mean(F))), None
        return
    if not classifier:
        prediction = to_workplace(estimator.predict(held.X))
        yield _column(locate(prediction).as_float64(prediction)), None
        return
    p = to_workplace(estimator.predict_proba(held.X))
    yield locate(p).as_float64(p), None


def outcomes_of_each(models: Sequence[Any], held: Held) -> Iterator[tuple[Any, Any | None]]:
    """The same of several models, which may share the work."""
    if len(models) > 1 and hasattr(models[0], "_outputs_of_each"):
        for F, where in models[0]._outputs_of_each(models, held.X):
            F = where.as_float64(F)
            yield (F if is_classifier(models[0]) else _column(F[:, 0])), None
        return
    for model in models:
        yield from outcomes(model, held, None)


def squares_from_tables(
    model: Any, held: Held, judged: Sequence[Judge], stages: Sequence[int], bins: PartBins
) -> np.ndarray | None:
    """MSE or RMSE [stages, metrics] of held-out rows without a pass over them; None: not so."""
    names = [judge.name for judge in judged if isinstance(judge.source, Metric)]
    if (
        not hasattr(model, "_held_out_squares")
        or len(names) < len(judged)
        or not set(names) <= {"mse", "rmse"}
        or held.weights is not None
    ):
        return None
    after = model._held_out_squares(bins, held.target, len(stages))
    if after is None or len(after) < max(stages):
        return None
    mse = after[np.array(stages) - 1]
    return np.stack([np.sqrt(mse) if name == "rmse" else mse for name in names], axis=1)


def _column(prediction: Any) -> Any:
    if prediction.ndim != 1:
        raise ValueError(
            "cross-validation is for one prediction a row; the estimator has several (quantiles)."
        )
    return prediction


def values(judged: Sequence[Judge], outcome: tuple[Any, Any | None], held: Held) -> list[float]:
    """What every metric says of one outcome."""
    prediction, scores = outcome
    queries = () if held.groups is None else (held.groups,)
    found = []
    for judge in judged:
        source = judge.source
        if isinstance(source, Metric):
            taken = scores if source.ranks and scores is not None else prediction
            found.append(source.function(held.target, taken, held.checked_weights, *queries))
        else:
            found.append(
                metric_value(source(held.y, held.home.hand_over(prediction), **held.to_fit()))
            )
    return found
