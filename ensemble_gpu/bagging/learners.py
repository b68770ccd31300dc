"""The learners in the bags: which estimators are taken, where they work, how one is fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from ensemble_gpu.arrays import cupy as gpu
from ensemble_gpu.arrays.namespace import NUMPY, Where, locate
from ensemble_gpu.bagging.bags import Bags, learner_seed
from ensemble_gpu.estimators.base import ArrayEstimator


class OneClass(ClassifierMixin, BaseEstimator):
    """What a bag with one class teaches: that class. Many learners refuse such a bag."""

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


def check_learner(estimator: Any, kind: str) -> None:
    """An instance with fit, predict and get_params that is no other kind of estimator."""
    missing = [m for m in ("fit", "predict", "get_params") if not hasattr(estimator, m)]
    if missing:
        raise TypeError(
            f"estimator must have a method {missing[0]} (an estimator as in scikit-learn, or None "
            f"for a decision tree); got {estimator!r}."
        )
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance, {estimator.__name__}(); got the class.")
    found = tags_of(estimator).estimator_type if tags_of(estimator) else None
    if found not in (None, kind):
        raise TypeError(f"estimator must be a {kind}; got {estimator!r}, a {found}.")


def tags_of(estimator: Any) -> Any:
    """scikit-learn's tags, or None for an estimator that has none."""
    return get_tags(estimator) if hasattr(estimator, "__sklearn_tags__") else None


def check_reach(estimator: Any, where: Where) -> None:
    """Our estimators work where X is; others work on the host's memory."""
    if where is NUMPY or isinstance(estimator, ArrayEstimator | OneClass):
        return
    raise ValueError(
        f"X is {where}, but {type(estimator).__name__} works on NumPy arrays, and nothing is moved "
        "silently. device='cpu' copies X and y to the host; an estimator of this package works "
        "where X is."
    )


def make_learner(estimator: Any, seed: int, learner: int, told: dict[str, Any]) -> Any:
    """A clone, `told` some parameters; each of its random_state gets a number of its own."""
    made = clone(estimator)
    names = sorted(made.get_params(deep=True))
    random = [name for name in names if name.split("__")[-1] == "random_state"]
    states = {name: learner_seed(seed, learner, which) for which, name in enumerate(random)}
    told = told | states
    return made.set_params(**told) if told else made


def take_features(X: Any, features: np.ndarray) -> Any:
    """The columns of a learner; X itself where it uses all, each once."""
    if np.array_equal(features, np.arange(X.shape[1])):
        return X
    where = locate(X)
    return where.xp.take(X, where.put(features), axis=1)


def takes_weights(estimator: Any) -> bool:
    return has_fit_parameter(estimator, "sample_weight")


def fit_learner(
    learner: Any, X: Any, target: Any, bags: Bags, counts: np.ndarray, *, absent: int
) -> Any:
    """Fit on a bag: counts as weights, or else rows repeated. `absent` classes are not in it."""
    where = locate(X)
    xp = where.xp
    if takes_weights(learner):
        weights = bags.weights(counts)
        if absent and not isinstance(learner, ArrayEstimator):
            # to ours rows of weight zero are absent; others may divide by a class's weight
            rows = np.flatnonzero(counts)
            weights = weights[rows]
            X, target = (xp.take(a, where.put(rows), axis=0) for a in (X, target))
        return learner.fit(X, target, sample_weight=where.put(weights))
    if (counts == 1).all():
        return learner.fit(X, target)
    rows = where.put(bags.in_order(counts))
    return learner.fit(xp.take(X, rows, axis=0), xp.take(target, rows, axis=0))


def in_threads(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], n_jobs: int | None
) -> Iterator[Any]:
    """Results in the order of the calls, made in `n_jobs` threads of joblib."""
    context = copy_context()  # the engine that the caller has chosen, and its streams
    context.run(gpu.remember_streams)
    parallel = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
    return parallel(delayed(context.copy().run)(function, *call) for call in calls)
