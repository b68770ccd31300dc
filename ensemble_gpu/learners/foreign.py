"""Estimators with scikit-learn's interface as learners: which are taken, and how one is cloned.

What boosting and bagging both need of an estimator that somebody else may have written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.data.categories import Categories

# However small its share of the weight, a row is still seen by a learner.
LEAST_WEIGHT = 1e-300
# However light or heavy all rows are together, a learner can add their weights.
LEAST_TOTAL, MOST_TOTAL = 1e-100, 1e100
METHODS = ("fit", "predict", "get_params")
# Types whose values nobody can change.
PLAIN = (bool, int, float, str, type(None))


def check_learner(estimator: Any, kinds: tuple[str | None, ...], default: str) -> None:
    """Raise unless the parameter `estimator` is an instance with `METHODS` of the right kind.

    The first of `kinds`, "classifier" or "regressor", is the one that is wanted; None among them
    lets estimators pass that do not say what they are. `default` is what None stands for.
    """
    kind = kinds[0]
    if isinstance(estimator, type):
        raise TypeError(
            f"estimator must be an instance of a {kind}; got the class {estimator.__name__}: write "
            f"{estimator.__name__}()."
        )
    missing = [method for method in METHODS if not hasattr(estimator, method)]
    if missing:
        raise TypeError(
            f"estimator must have a method {missing[0]} (a {kind} as in scikit-learn, with fit and "
            f"predict, or None for {default}); got {estimator!r}."
        )
    tags = tags_of(estimator)
    found = None if tags is None else tags.estimator_type
    if found not in kinds:
        what = "which does not say what it is" if found is None else f"a {found}"
        wanted = " or a ".join(kind for kind in kinds if kind is not None)
        raise TypeError(f"estimator must be a {wanted}; got {estimator!r}, {what}.")


def tags_of(estimator: Any) -> Any:
    """scikit-learn's tags, or None for an estimator that has none."""
    return get_tags(estimator) if hasattr(estimator, "__sklearn_tags__") else None


def takes_weights(estimator: Any) -> bool:
    """Whether `fit` has an argument sample_weight."""
    return has_fit_parameter(estimator, "sample_weight")


def total_weight(weights: np.ndarray | None, n_rows: int) -> float:
    """The sum of the sample weights, n where there are none; neither so small nor so large that a
    learner could not add up shares of it.
    """
    if weights is None:
        return float(n_rows)
    return max(float(np.minimum(weights, MOST_TOTAL).sum()), LEAST_TOTAL)


def fit_unchanged(learner: Any, X: Any, y: Any, weights: Any | None) -> Any:
    """The learner, fitted to an X that it must not change: every round needs the same.

    A dense X of the host cannot be written to; of a sparse one the entries are compared.
    """
    before = X.data.copy() if is_sparse(X) else None
    more = {} if weights is None else {"sample_weight": weights}
    try:
        learner.fit(_not_writeable(X), y, **more)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise ValueError(_changes(learner)) from error
    if before is not None and not np.array_equal(before, X.data, equal_nan=True):
        raise ValueError(_changes(learner))
    return learner


def _not_writeable(X: Any) -> Any:
    if not isinstance(X, np.ndarray):
        return X
    X = X.view()
    X.flags.writeable = False
    return X


def _changes(learner: Any) -> str:
    return (
        f"estimator {type(learner).__name__} writes to the X that it is fitted to, and every round "
        "needs the same X; let it work on a copy."
    )


def told_of(categories: Categories, learner: Any) -> Any:
    """The learner, with the features that are categories where there are any: codes 0, 1, ..."""
    if not categories.values:
        return learner
    return clone(learner).set_params(categorical_features=sorted(categories.values))


class Clones:
    """Clones of an estimator; each gets random states of its own.

    `clone` of scikit-learn copies the parameters, calls the constructor with them, and compares.
    Where they are plain values there is nothing to copy, and the constructor alone takes a tenth of
    the time: of a round on 1,000 rows that is a share of 10 % else (bench/foreign.py).
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = clone(estimator)
        names = sorted(self.estimator.get_params(deep=True))
        self.random = [name for name in names if name.split("__")[-1] == "random_state"]
        self.plain = _plain_parameters(self.estimator)

    def __call__(
        self, seed: Callable[[int], int], parameters: Mapping[str, Any] = MappingProxyType({})
    ) -> Any:
        """A clone with some parameters set, and with seed(0), seed(1), ... as its random states.

        They are asked for in the order of the names of these, those of nested estimators included.
        """
        given = {**parameters, **{name: seed(number) for number, name in enumerate(self.random)}}
        if self.plain is not None:
            return type(self.estimator)(**{**self.plain, **given})
        made = clone(self.estimator)
        return made.set_params(**given) if given else made


def _plain_parameters(estimator: Any) -> dict[str, Any] | None:
    """The parameters, where a constructor called with them makes an equal estimator for sure."""
    own = type(estimator)
    if not isinstance(estimator, BaseEstimator) or any(
        getattr(own, name) is not getattr(BaseEstimator, name)
        for name in ("__sklearn_clone__", "set_params", "get_params")
    ):
        return None
    parameters = estimator.get_params(deep=False)
    if not all(isinstance(value, PLAIN) for value in parameters.values()):
        return None
    # a clone may carry more than parameters, such as what metadata it asks for
    return parameters if vars(own(**parameters)).keys() == vars(estimator).keys() else None
