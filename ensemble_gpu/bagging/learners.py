"""The learners in the bags: where they work, how one is made and fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.parallel import Parallel, delayed

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.sparse import take_columns, take_rows
from ensemble_gpu.data.bags import Bags, learner_seed
from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.learners.foreign import Clones, takes_weights


class OneClass(ClassifierMixin, BaseEstimator):
    """The learner of a bag with one class, which it predicts. Many learners refuse such a bag."""

    takes_any_array = True

    def __init__(self, label: int = 0):
        self.label = label

    def fit(self, X: Any, y: Any) -> OneClass:
        self.classes_ = np.array([self.label])
        return self

    def predict(self, X: Any) -> Any:
        where = locate(X)
        return where.zeros(X.shape[0], where.xp.int64) + self.label

    def predict_proba(self, X: Any) -> Any:
        where = locate(X)
        return where.zeros((X.shape[0], 1), where.xp.float64) + 1.0


def make_learner(estimator: Any, seed: int, learner: int, parameters: dict[str, Any]) -> Any:
    """A clone with some parameters set; each of its random_state gets a number of its own."""
    return Clones(estimator)(partial(learner_seed, seed, learner), parameters)


def take_features(X: Any, features: np.ndarray) -> Any:
    """The columns of a learner; X itself where it uses all, each once."""
    same = np.array_equal(features, np.arange(X.shape[1]))
    return X if same else take_columns(X, features)


def fit_learner(
    learner: Any, X: Any, target: Any, bags: Bags, counts: np.ndarray, *, absent: int
) -> Any:
    """Fit on a bag: counts as weights, or else rows repeated. `absent` classes are not in it."""
    where = locate(X)
    if takes_weights(learner):
        weights = bags.weights(counts)
        if absent and not isinstance(learner, ArrayEstimator):
            # to ours rows of weight zero are absent; others may divide by a class's weight
            rows = np.flatnonzero(counts)
            weights = weights[rows]
            X, target = (take_rows(a, where.put(rows)) for a in (X, target))
        return learner.fit(X, target, sample_weight=where.put(weights))
    if (counts == 1).all():
        return learner.fit(X, target)
    rows = where.put(bags.in_order(counts))
    return learner.fit(take_rows(X, rows), take_rows(target, rows))


def in_threads(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Any]:
    """Results in the order of the calls, made in `n_jobs` threads of joblib."""
    context = copy_context()  # the engine that the caller has chosen, and its streams
    context.run(gpu.remember_streams)
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
    return parallel(delayed(context.copy().run)(function, *call) for call in calls)
