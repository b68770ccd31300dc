"""Losses by name: tables of names and aliases, and the loss that one stands for."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.losses.base import Loss
from ensemble_gpu.losses.margin import (
    Exponential,
    Hinge,
    Logistic,
    LogitBoost,
    SquaredMargin,
    TruncatedSquared,
)
from ensemble_gpu.losses.multinomial import Multinomial
from ensemble_gpu.losses.regression import Absolute, Huber, Poisson, Quantile, Squared

CLASSIFICATION: dict[str, type[Loss]] = {
    "exponential": Exponential,
    "logistic": Logistic,
    "squared": SquaredMargin,
    "truncated_squared": TruncatedSquared,
    "hinge": Hinge,
}
REGRESSION: dict[str, type[Loss]] = {
    "squared": Squared,
    "absolute": Absolute,
    "huber": Huber,
    "quantile": Quantile,
    "poisson": Poisson,
}

# Losses over pairs (losses/pairwise.py, losses/by_query.py, losses/lambdas.py); which class it is
# depends on how pairs are given.
RANKING = ("exponential", "logistic", "lambda")

# What scikit-learn and LightGBM call them.
CLASSIFICATION_ALIASES = {
    "log_loss": "logistic",
    "logloss": "logistic",
    "cross_entropy": "logistic",
    "binary": "logistic",
    "multiclass": "logistic",
    "softmax": "logistic",
}
REGRESSION_ALIASES = {
    "squared_error": "squared",
    "mean_squared_error": "squared",
    "mse": "squared",
    "l2": "squared",
    "regression": "squared",
    "regression_l2": "squared",
    "absolute_error": "absolute",
    "mean_absolute_error": "absolute",
    "mae": "absolute",
    "l1": "absolute",
    "regression_l1": "absolute",
}
# What LightGBM, XGBoost and the papers call them.
RANKING_ALIASES = {
    "rankboost": "exponential",
    "ranknet": "logistic",
    "pairwise": "logistic",
    "rank:pairwise": "logistic",
    "lambdarank": "lambda",
    "lambdamart": "lambda",
    "rank:ndcg": "lambda",
}


def classification_loss(loss: str | Loss, n_classes: int) -> Loss:
    """The loss of a name or alias, or the one given, for this number of classes."""
    found = _resolve(loss, CLASSIFICATION, CLASSIFICATION_ALIASES, "classification")
    return for_classes(found, n_classes)


def regression_loss(loss: str | Loss) -> Loss:
    """The loss of a name or alias, or the one given."""
    return _resolve(loss, REGRESSION, REGRESSION_ALIASES, "regression")


def ranking_loss(loss: Any) -> str:
    """The name of a loss over pairs."""
    name = RANKING_ALIASES.get(loss, loss) if isinstance(loss, str) else loss
    if name not in RANKING:
        also = ", ".join(f"{alias!r} ({own!r})" for alias, own in RANKING_ALIASES.items())
        raise ValueError(
            f"loss must be one of {', '.join(map(repr, RANKING))}; got {loss!r}. Aliases: {also}."
        )
    return name


def for_classes(loss: Loss, n_classes: int) -> Loss:
    """The form of a loss for K classes.

    The logistic ones have one output for K = 2, and K for more (`Multinomial`). Another loss of
    the margin stays what it is: with K outputs it takes one class against the rest.
    """
    if not isinstance(loss, Logistic | LogitBoost | Multinomial):
        return loss
    if isinstance(loss, Multinomial) and loss.n_classes not in (None, n_classes):
        raise ValueError(f"loss is {loss!r}, but y holds {n_classes} classes.")
    if n_classes > 2:
        return Multinomial(n_classes, exp=loss.exp)
    return Logistic(exp=loss.exp) if isinstance(loss, Multinomial) else loss


def _resolve(loss: Any, named: dict[str, type[Loss]], aliases: dict[str, str], task: str) -> Loss:
    allowed = f"one of {', '.join(map(repr, named))} or a Loss for {task}"
    if isinstance(loss, str):
        name = aliases.get(loss, loss)
        if name not in named:
            also = ", ".join(f"{alias!r} ({name!r})" for alias, name in aliases.items())
            raise ValueError(f"loss must be {allowed}; got {loss!r}. Aliases: {also}.")
        return named[name]()
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be {allowed}; got {loss!r}.")
    if loss.task != task:
        raise ValueError(f"loss must be {allowed}; got {loss!r}, which is for {loss.task}.")
    return loss
