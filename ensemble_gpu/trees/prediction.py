"""What classifiers and regressors of trees do with y and with a fitted Forest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
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

    n_classes_: int

    _criteria = CLASS_CRITERIA

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_class_weight()

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """Index of every row's label, and its weight, times that of its class."""
        self.classes_, index, weights = self._read_labels(y, n_rows, w, where, 1)
        self.n_classes_ = len(self.classes_)
        return index, weights

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
