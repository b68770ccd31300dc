"""What classifiers and regressors of trees do with y and with a fitted Forest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.labels import check_labels
from ensemble_gpu.data.parameters import check_not_negative
from ensemble_gpu.data.validation import check_target, check_weights
from ensemble_gpu.estimators.classifier import ArrayClassifier
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.trees.fitting import TreeEstimator
from ensemble_gpu.trees.statistics import (
    CLASS_CRITERIA,
    REAL_CRITERIA,
    Statistics,
    class_statistics,
    real_statistics,
)


class TreeClassifier(ArrayClassifier, TreeEstimator):
    """Outputs are the shares of the classes in the leaves, averaged over trees."""

    class_weight: Any
    n_classes_: int
    _class_factor: np.ndarray

    _criteria = CLASS_CRITERIA
    _class_weights: tuple[str, ...] = ("balanced",)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = self.class_weight
        if given is not None and not isinstance(given, Mapping):
            known = isinstance(given, str) and given in self._class_weights
            if not known:
                names = ", ".join(map(repr, self._class_weights))
                raise ValueError(
                    f"class_weight must be None, {names} or a dict of labels; got {given!r}."
                )

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """Index of every row's label, and its weight, times that of its class."""
        classes, index = check_labels(y, n_rows, where, 1, "y")
        self.classes_, self.n_classes_ = classes, len(classes)
        weights = check_weights(w, n_rows, where, "sample_weight")
        self._class_factor = self._class_factors(index, weights, where)
        if (self._class_factor == 1.0).all():
            return index, weights
        own = where.xp.take(where.put(self._class_factor), index)
        own = own if weights is None else own * weights
        if not bool(where.xp.any(own > 0.0)):
            raise ValueError(
                "Weights are zero for every row: sample_weight times class_weight, which is "
                f"{self.class_weight!r}; at least one must be > 0."
            )
        return index, own

    def _class_factors(self, index: Any, weights: Any, where: Where) -> np.ndarray:
        """The weight of each class."""
        given = self.class_weight
        if given == "balanced":
            return self._balanced(index, weights, where)
        if isinstance(given, Mapping):
            labels = self.classes_.tolist()
            unknown = [label for label in given if label not in labels]
            if unknown:
                raise ValueError(
                    f"class_weight names labels that y does not hold: {unknown!r}; labels of y: "
                    f"{labels!r}."
                )
            for label, weight in given.items():
                check_not_negative(f"class_weight[{label!r}]", weight)
            return np.array([float(given.get(label, 1.0)) for label in labels])
        return np.ones(self.n_classes_)

    def _balanced(self, index: Any, weights: Any, where: Where) -> np.ndarray:
        """n / (K n_k) of the n rows that have weight, n_k of each of the K classes."""
        xp = where.xp
        index = index if weights is None else index[weights > 0.0]
        sizes = [int(xp.sum(xp.astype(index == k, xp.int64))) for k in range(self.n_classes_)]
        return sum(sizes) / (sum(map(bool, sizes)) * np.maximum(sizes, 1))

    def _statistics(self, target: Any, weights: Any, engine: Engine) -> Statistics:
        return class_statistics(self.criterion, target, self.n_classes_, weights, engine)

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes [n, K] in the leaf of every row, averaged over trees."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F)

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba; -inf where it is 0."""
        F, home, where = self._outputs(X)
        with np.errstate(divide="ignore"):
            return home.hand_over(where.xp.log(F))

    def predict(self, X: Any) -> Any:
        """The most probable label of every row: argmax of predict_proba, always."""
        F, home, where = self._outputs(X)
        return home.hand_over(self._take_labels(where.xp.argmax(F, axis=1), where))


class TreeRegressor(ArrayRegressor, TreeEstimator):
    """The output is the mean of y in the leaves, averaged over trees."""

    _criteria = REAL_CRITERIA

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.criterion == "poisson"
        return tags

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        target = check_target(y, n_rows, where, "y")
        weights = check_weights(w, n_rows, where, "sample_weight")
        if self.criterion == "poisson":
            heavy = target if weights is None else target[weights > 0.0]
            low, total = float(where.xp.min(heavy)), float(where.xp.sum(heavy))
            if low < 0.0 or total <= 0.0:
                raise ValueError(
                    "y must be >= 0, and not all 0, for criterion='poisson'; the lowest value is "
                    f"{low:g}, the sum {total:g}."
                )
        return target, weights

    def _statistics(self, target: Any, weights: Any, engine: Engine) -> Statistics:
        return real_statistics(self.criterion, target, weights, engine)

    def predict(self, X: Any) -> Any:
        """The predicted value of every row, in the namespace and on the device of X."""
        F, home, _ = self._outputs(X)
        return home.hand_over(F[:, 0])
