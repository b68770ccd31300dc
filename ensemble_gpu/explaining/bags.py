"""Bags of trees: the mean of the learners' explanations.

That is the explanation of the bag where its answer is the mean of theirs: predictions of
regressors, probabilities of tree classifiers, or the votes of single trees.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.arrays.sparse import take_columns
from ensemble_gpu.explaining.explain import NotExplainableError, explained
from ensemble_gpu.model.forest import Forest

HARD = "hard"


def check_bag(bag: Any) -> None:
    """Raise where the bag is no mean of sums over trees."""
    for learner in bag.estimators_:
        if not _is_constant(learner) and not _is_additive(bag, learner):
            what = f"{type(bag).__name__} of {type(learner).__name__}"
            raise NotExplainableError(what)


def _is_constant(learner: Any) -> bool:
    """The learner of a bag with a single class."""
    return not hasattr(learner, "model_") and hasattr(learner, "label")


def _is_additive(bag: Any, learner: Any) -> bool:
    model = getattr(learner, "model_", None)
    if hasattr(bag, "classes_"):  # probabilities are outputs of trees only
        if not isinstance(model, Forest) or hasattr(learner, "link_"):
            return False
        return bag.voting != HARD or model.n_trees == 1
    if getattr(learner, "link_", "identity") != "identity" or not hasattr(learner, "_explained"):
        return False
    return isinstance(model, Forest) or hasattr(learner, "background_")


def explain_bag(bag: Any, X: Any) -> tuple[Any, np.ndarray]:
    """Values [n, features, outputs] of rows where they are worked on, and base values."""
    where = locate(X)
    total: Any = None
    base: Any = 0.0
    for values, own in _explanations(bag, X, where):
        total, base = values if total is None else total + values, base + own
    return total / len(bag.estimators_), base / len(bag.estimators_)


def _explanations(bag: Any, X: Any, where: Where) -> Iterator[tuple[Any, np.ndarray]]:
    """Of the learners, in terms of the bag's features and classes."""
    xp, p = where.xp, X.shape[1]
    classes = np.arange(len(bag.classes_)) if hasattr(bag, "classes_") else None
    for learner, features in zip(bag.estimators_, bag.estimators_features_, strict=True):
        if _is_constant(learner):
            assert classes is not None
            yield (
                where.zeros((*X.shape, len(classes)), xp.float64),
                (classes == learner.label).astype(np.float64),
            )
            continue
        values, base = _of_learner(learner, X, features, getattr(bag, "voting", None) == HARD)
        place = (np.asarray(features)[:, None] == np.arange(p)).astype(np.float64)
        values = xp.matmul(xp.permute_dims(values, (0, 2, 1)), where.put(place))
        if classes is not None and values.shape[1] < len(classes):
            spread = (np.asarray(learner.classes_)[:, None] == classes).astype(np.float64)
            values = xp.matmul(where.put(np.ascontiguousarray(spread.T))[None, :, :], values)
            base = base @ spread
        yield xp.permute_dims(values, (0, 2, 1)), base


def _of_learner(learner: Any, X: Any, features: np.ndarray, votes: bool) -> tuple[Any, np.ndarray]:
    same = np.array_equal(features, np.arange(X.shape[1]))
    X, _, _, _ = learner._inputs(X if same else take_columns(X, features))
    if votes:
        return explained(learner.model_.voting(), None, X, learner.n_jobs, "a tree")
    return learner._explained(X)
