"""What a boosted regressor does: targets in, predictions in the namespace of X out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sklearn.base import RegressorMixin

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import Where, check_same_place, locate
from ensemble_gpu.boosting.fitting import BoostedStumps
from ensemble_gpu.data.validation import check_target, check_weights
from ensemble_gpu.losses.base import array_exp
from ensemble_gpu.losses.links import LINKS


class BoostedRegressor(RegressorMixin, BoostedStumps):
    """Predictions of a regressor whose `model_` is an AdditiveModel with one output."""

    def _mean(self, F: Any) -> Any:
        """The prediction [n] from outputs [n, 1], by the inverse link."""
        return LINKS[self.link_].mean(F[:, 0], array_exp)

    def predict(self, X: Any) -> Any:
        """The predicted value of every row, in the namespace and on the device of X."""
        F, place, _ = self._outputs(X)
        return place.hand_over(self._mean(F))

    def staged_predict(self, X: Any, rounds: Sequence[int] | None = None) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for F, place, _ in self._staged(X, rounds):
            yield place.hand_over(self._mean(F))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R^2 = 1 - sum w (y - prediction)^2 / sum w (y - mean)^2, at most 1."""
        predicted = self.predict(X)
        check_same_place(locate(predicted), y=y, sample_weight=sample_weight)
        predicted, y, sample_weight = map(to_workplace, (predicted, y, sample_weight))
        here = locate(predicted)
        xp = here.xp
        y = check_target(y, predicted.shape[0], here, "y")
        weights = check_weights(sample_weight, y.shape[0], here, "sample_weight")
        w = xp.ones_like(y) if weights is None else weights / xp.max(weights)
        mean = xp.sum(w * y) / xp.sum(w)
        left = float(xp.sum(w * (y - here.as_float64(predicted)) ** 2))
        spread = float(xp.sum(w * (y - mean) ** 2))
        if spread == 0.0:
            return 1.0 if left == 0.0 else 0.0
        return 1.0 - left / spread

    def _read_target(self, y: Any, n_rows: int, w: Any, place: Where) -> tuple[Any, Any]:
        target = check_target(y, n_rows, place, "y")
        return target, check_weights(w, n_rows, place, "sample_weight")

    def _read_validation_target(self, y: Any, n_rows: int, place: Where) -> Any:
        return check_target(y, n_rows, place, "y_val")

    def _n_strata(self) -> int:
        return 1

    def _metric_arguments(self, F: Any, target: Any, here: Where) -> tuple[Any, Any]:
        return target, self._mean(F)
