"""What every regressor does with targets: read them, and score predictions."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.means import magnitude
from ensemble_gpu.arrays.namespace import Where, check_same_place, locate
from ensemble_gpu.data.validation import check_target, check_weights
from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.kernels.team import current_team


class ArrayRegressor(RegressorMixin, ArrayEstimator):
    """A real target; a subclass has `predict`."""

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        target = check_target(y, n_rows, where, "y")
        return target, check_weights(w, n_rows, where, "sample_weight", current_team())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 = 1 - sum w (y - prediction)^2 / sum w (y - mean)^2, at most 1."""
        predicted, y, weights, where = self._to_score(X, y, sample_weight)
        xp = where.xp
        w = xp.ones_like(y) if weights is None else weights / xp.max(weights)
        unit = magnitude(y, where)
        y, predicted = y / unit, predicted / unit
        mean = xp.sum(w * y) / xp.sum(w)
        left = float(xp.sum(w * (y - predicted) ** 2))
        spread = float(xp.sum(w * (y - mean) ** 2))
        if spread == 0.0:
            return 1.0 if left == 0.0 else 0.0
        return 1.0 - left / spread

    def _to_score(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any, Where]:
        """Predictions as float64, y and weights, validated, and where they are."""
        predicted = self.predict(X)
        check_same_place(locate(predicted), y=y, sample_weight=sample_weight)
        predicted, y, sample_weight = map(to_workplace, (predicted, y, sample_weight))
        where = locate(predicted)
        y = check_target(y, predicted.shape[0], where, "y")
        weights = check_weights(sample_weight, y.shape[0], where, "sample_weight")
        return where.as_float64(predicted), y, weights, where
