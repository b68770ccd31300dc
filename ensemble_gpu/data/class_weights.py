"""Weights of classes: the parameter `class_weight` of every classifier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.parameters import check_not_negative
from ensemble_gpu.kernels.team import ALONE, Team

BALANCED = ("balanced",)


def check_class_weight(given: Any, names: tuple[str, ...] = BALANCED) -> None:
    """None, one of the names, or a dict of labels."""
    known = isinstance(given, str) and given in names
    if given is not None and not known and not isinstance(given, Mapping):
        options = ", ".join(map(repr, names))
        raise ValueError(
            f"class_weight must be None, {options} or a dict of labels; got {given!r}."
        )


def class_factors(
    given: Any,
    classes: np.ndarray,
    index: Any,
    weights: Any | None,
    where: Where,
    team: Team = ALONE,
) -> np.ndarray:
    """The weight of each class: 1 where nothing is said of it.

    "balanced" is n / (K n_k) of the n rows that have weight, n_k of each of the K classes; how much
    weight they have does not count, as in scikit-learn.
    """
    if isinstance(given, str) and given == "balanced":
        xp = where.xp
        index = index if weights is None else index[weights > 0.0]
        own = [int(xp.sum(xp.astype(index == k, xp.int64))) for k in range(len(classes))]
        sizes = team.sum(own).tolist()
        return sum(sizes) / (sum(map(bool, sizes)) * np.maximum(sizes, 1))
    if not isinstance(given, Mapping):
        return np.ones(len(classes))
    labels = classes.tolist()
    unknown = [label for label in given if label not in labels]
    if unknown:
        raise ValueError(
            f"class_weight names labels that y does not hold: {unknown!r}; labels of y: {labels!r}."
        )
    for label, weight in given.items():
        check_not_negative(f"class_weight[{label!r}]", weight)
    return np.array([float(given.get(label, 1.0)) for label in labels])


def times_class_weights(
    given: Any,
    factors: np.ndarray,
    index: Any,
    weights: Any | None,
    where: Where,
    team: Team = ALONE,
) -> Any | None:
    """Weights of the rows, times those of their classes (None: all equal)."""
    if (factors == 1.0).all():
        return weights
    own = where.xp.take(where.put(factors), index)
    own = own if weights is None else own * weights
    if not team.any(bool(where.xp.any(own > 0.0))):
        raise ValueError(
            "Weights are zero for every row: sample_weight times class_weight, which is "
            f"{given!r}; at least one must be > 0."
        )
    return own
