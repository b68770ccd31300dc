"""Permutation importance: how much worse a metric becomes when a feature's values are shuffled.

    importance_f = m(F, y) - mean over repeats of m(F with column f permuted, y)

for a metric m of which more is better; with the other sign for one of which less is (Breiman 2001).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import Where, check_same_place, locate
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.data.labels import check_label_kinds, check_labels
from ensemble_gpu.data.parameters import check_integer
from ensemble_gpu.data.validation import check_target, check_weights
from ensemble_gpu.metrics import CLASSIFICATION, RANKING, REGRESSION, metric_named, metric_value


@dataclass(frozen=True, eq=False)
class Permutation:
    """The importance of every feature.

    Attributes
    ----------
    metric : name
    baseline : float, the metric of the rows as they are
    values : array [features, repeats], how much worse it becomes
    """

    metric: str
    baseline: float
    values: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        return self.values.mean(axis=1)

    @property
    def std(self) -> np.ndarray:
        return self.values.std(axis=1)


def permutation_importance(
    estimator: Any, X: Any, y: Any, metric: Any, sample_weight: Any, n_repeats: int, seed: int
) -> Permutation:
    """Of a fitted estimator on rows X, y."""
    check_integer("n_repeats", n_repeats, 1)
    check_integer("random_state", seed, 0)
    check_dense(X, "permutation importance")
    check_same_place(locate(X), y=y, sample_weight=sample_weight)
    X, home, where, _ = estimator._inputs(X)
    name, better, judge = _judge(estimator, X, y, metric, sample_weight, where, home)
    sign = 1.0 if better else -1.0
    baseline = judge(X)
    xp, (n, p) = where.xp, X.shape
    found = np.zeros((p, n_repeats))
    for f in range(p):
        generator = np.random.default_rng([seed, f])
        for repeat in range(n_repeats):
            order = where.put(generator.permutation(n))
            column = xp.take(X[:, f], order)[:, None]
            shuffled = xp.concat([X[:, :f], column, X[:, f + 1 :]], axis=1)
            found[f, repeat] = sign * (baseline - judge(shuffled))
    return Permutation(name, baseline, found)


def _judge(
    estimator: Any, X: Any, y: Any, metric: Any, weights: Any, where: Where, home: Where
) -> tuple[str, bool, Callable[[Any], float]]:
    """Name, whether greater is better, and the function from rows to the metric."""
    if getattr(estimator, "_task", None) == RANKING:
        raise ValueError(
            "y is for the permutation importance of classifiers and regressors; "
            f"{type(estimator).__name__} ranks rows within queries. Give X alone."
        )
    n = X.shape[0]
    checked = check_weights(to_workplace(weights), n, where, "sample_weight")
    if metric is not None and not isinstance(metric, str):
        if not callable(metric):
            raise TypeError(
                f"metric must be a name, or a callable metric(y, prediction); got {metric!r}."
            )
        more = {} if weights is None else {"sample_weight": weights}

        def given(rows: Any) -> float:
            prediction = home.hand_over(_predicted(estimator, rows, where)[0])
            return metric_value(metric(y, prediction, **more))

        greater = getattr(metric, "greater_is_better", False) is True
        return getattr(metric, "__name__", type(metric).__name__), greater, given
    classifier = is_classifier(estimator)
    task, default = (CLASSIFICATION, "log_loss") if classifier else (REGRESSION, "rmse")
    named = metric_named(metric or default, task, quantile=getattr(estimator, "_quantile", None))
    if classifier:
        target = _classes(estimator, to_workplace(y), n, where)
    else:
        target = check_target(to_workplace(y), n, where, "y")

    def judged(rows: Any) -> float:
        prediction, scores = _predicted(estimator, rows, where)
        if not classifier and prediction.ndim != 1:
            raise ValueError(
                f"metric {named.name!r} is for one prediction a row; the estimator has several "
                "(quantiles). Give a callable metric(y, prediction)."
            )
        taken = scores if named.ranks and scores is not None else prediction
        return float(named.function(target, taken, checked))

    return named.name, named.greater_is_better, judged


def _predicted(estimator: Any, X: Any, where: Where) -> tuple[Any, Any | None]:
    """Probabilities [n, K] or numbers [n], and scores [n] of two classes where there are any."""
    F = where.as_float64(estimator._outputs_at(X))
    if hasattr(estimator, "_probabilities"):
        return estimator._probabilities(F, where), F[:, 0] if F.shape[1] == 1 else None
    if is_classifier(estimator):
        return F, None
    return estimator._mean(F) if hasattr(estimator, "_mean") else F[:, 0], None


def _classes(estimator: Any, y: Any, n: int, where: Where) -> Any:
    """The index of every row's class among those of the estimator."""
    classes, index = check_labels(y, n, where, 1, "y")
    check_label_kinds(classes, estimator.classes_, "y")
    known = {label: k for k, label in enumerate(estimator.classes_.tolist())}
    unknown = [label for label in classes.tolist() if label not in known]
    if unknown:
        raise ValueError(
            f"y holds labels that were not there in fit: {unknown!r}; known: {list(known)!r}."
        )
    numbers = np.array([known[label] for label in classes.tolist()], dtype=np.int64)
    return where.xp.take(where.put(numbers), index)
