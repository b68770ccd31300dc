"""Metrics by name, with their direction: those that estimators watch and choose by.

A metric is a function(y, prediction, weights) -> float of arrays of one namespace and device;
`weights` is None or [n]. For classes y is the index of each row's class and the prediction are
probabilities [n, K]; for numbers both are [n]. Those of rankings take the queries besides:
function(y, scores, weights, groups).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ensemble_gpu.metrics import by_query as queries
from ensemble_gpu.metrics import classification as classes
from ensemble_gpu.metrics import regression as numbers

CLASSIFICATION, REGRESSION, RANKING = "classification", "regression", "ranking"


@dataclass(frozen=True)
class Metric:
    """A named function with its direction; one that `ranks` also takes scores [n] of two classes.

    Scores tell rows apart whose probabilities round to the same number. One that is `scale_free`
    only asks for the order of the scores of two classes, or which class is the most probable.
    `up_to`: the function of the first k ranks, for names such as "ndcg@5". `of_stack`: the function
    of several vectors of scores [M, n] of two classes, a value each.
    """

    name: str
    function: Callable[..., float]
    greater_is_better: bool = False
    ranks: bool = False
    scale_free: bool = False
    up_to: Callable[[int], Callable[..., float]] | None = None
    of_stack: Callable[..., list[float]] | None = None


def _table(*metrics: Metric) -> dict[str, Metric]:
    return {metric.name: metric for metric in metrics}


def _ranking(name: str, function: Callable[[Any, Any, Any], float]) -> Metric:
    return Metric(name, function, greater_is_better=True, ranks=True, scale_free=True)


def _deciding(name: str, function: Callable[[Any, Any, Any], float]) -> Metric:
    return Metric(name, function, greater_is_better=True, scale_free=True)


METRICS: dict[str, dict[str, Metric]] = {
    CLASSIFICATION: _table(
        Metric("log_loss", classes.log_loss),
        replace(_ranking("roc_auc", classes.roc_auc), of_stack=classes.roc_aucs),
        Metric("error", classes.error, scale_free=True),
        _deciding("accuracy", classes.accuracy),
        _deciding("balanced_accuracy", classes.balanced_accuracy),
        Metric("brier", classes.brier),
        _ranking("average_precision", classes.average_precision),
        _deciding("precision", classes.precision),
        _deciding("recall", classes.recall),
        _deciding("f1", classes.f1),
        _deciding("matthews", classes.matthews),
    ),
    REGRESSION: _table(
        Metric("rmse", numbers.rmse),
        Metric("mse", numbers.mse),
        Metric("mae", numbers.mae),
        Metric("mape", numbers.mape),
        Metric("r2", numbers.r2, greater_is_better=True),
        Metric("poisson_deviance", numbers.poisson_deviance),
        Metric("quantile_loss", partial(numbers.quantile_loss, quantile=0.5)),
    ),
    RANKING: _table(
        Metric("ndcg", queries.ndcg(), greater_is_better=True, up_to=queries.ndcg),
        Metric(
            "map", queries.average_precision(), greater_is_better=True,
            up_to=queries.average_precision,
        ),
        Metric(
            "mrr", queries.reciprocal_rank(), greater_is_better=True, up_to=queries.reciprocal_rank
        ),
        Metric("pairwise_error", queries.pairwise_error),
    ),
}  # fmt: skip
# What scikit-learn, LightGBM and XGBoost call them.
ALIASES: dict[str, dict[str, str]] = {
    CLASSIFICATION: {
        "auc": "roc_auc",
        "logloss": "log_loss",
        "binary_logloss": "log_loss",
        "multi_logloss": "log_loss",
        "cross_entropy": "log_loss",
        "zero_one_loss": "error",
        "binary_error": "error",
        "multi_error": "error",
        "brier_score": "brier",
        "auc_pr": "average_precision",
        "f_score": "f1",
    },
    REGRESSION: {
        "root_mean_squared_error": "rmse",
        "mean_squared_error": "mse",
        "squared_error": "mse",
        "l2": "mse",
        "mean_absolute_error": "mae",
        "absolute_error": "mae",
        "l1": "mae",
        "mean_absolute_percentage_error": "mape",
        "mean_poisson_deviance": "poisson_deviance",
        "mean_pinball_loss": "quantile_loss",
        "quantile": "quantile_loss",
    },
    RANKING: {
        "average_precision": "map",
        "average_precision_by_query": "map",
        "reciprocal_rank": "mrr",
    },
}


def metric_named(
    name: str, task: str, others: tuple[str, ...] = (), quantile: float | None = None
) -> Metric:
    """The metric of a name or alias; `others` are names that the caller knows besides.

    `quantile` is that of "quantile_loss" (None: the median).
    """
    named, aliases = METRICS[task], ALIASES[task]
    bare, at, ranks = name.partition("@")
    found = named.get(aliases.get(bare, bare))
    if found is not None and at:
        found = _up_to(found, ranks)
    if found is None:
        allowed = ", ".join(map(repr, [*others, *named]))
        also = ", ".join(f"{alias!r} ({own!r})" for alias, own in aliases.items())
        raise ValueError(
            f"metric must be one of {allowed} for {task}, or a callable metric(y, prediction) -> "
            f"float; got {name!r}. Aliases: {also}."
        )
    if found.name == "quantile_loss" and quantile is not None:
        return replace(found, function=partial(numbers.quantile_loss, quantile=quantile))
    return found


def _up_to(metric: Metric, ranks: str) -> Metric | None:
    """The metric of the first ranks: "ndcg@5"."""
    if metric.up_to is None or not ranks.isdecimal() or int(ranks) < 1:
        return None
    return replace(metric, name=f"{metric.name}@{int(ranks)}", function=metric.up_to(int(ranks)))


def metric_value(answer: Any) -> float:
    """What a user's metric returned, as a number; an error that names `metric` where it is none."""
    wrong = f"metric must return a number; got {answer!r}."
    if isinstance(answer, str):
        raise TypeError(wrong)
    try:
        value = float(answer)
    except (TypeError, ValueError) as error:
        raise TypeError(wrong) from error
    if math.isnan(value):
        raise ValueError(wrong)
    return value
