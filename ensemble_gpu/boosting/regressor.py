"""What a boosted regressor does: targets in, predictions in the namespace of X out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.fitting import BoostedEstimator
from ensemble_gpu.data.validation import check_target
from ensemble_gpu.estimators.regressor import ArrayRegressor
from ensemble_gpu.kernels.team import current_team
from ensemble_gpu.losses.base import array_exp
from ensemble_gpu.metrics import REGRESSION
from ensemble_gpu.model.link import INCREASING, LINKS

# Range of a target at most: gains are sums of squares of it.
WIDEST = 1e150


class BoostedRegressor(ArrayRegressor, BoostedEstimator):
    """Predictions of a regressor whose `model_` has one output, or one a quantile."""

    def _mean(self, F: Any) -> Any:
        """The prediction by the inverse link: [n] from outputs [n, 1]; quantiles [n, K] stay so."""
        return LINKS[self.link_].mean(F if self.link_ == INCREASING else F[:, 0], array_exp)

    def predict(self, X: Any) -> Any:
        """The predicted value of every row [n], in the namespace and on the device of X.

        Of several quantiles [n, K], in the order in which they were given: ascending in every row.
        """
        F, home, _ = self._outputs(X)
        return home.hand_over(self._mean(F))

    def staged_predict(self, X: Any, rounds: Sequence[int] | None = None) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for F, home, _ in self._staged(X, rounds):
            yield home.hand_over(self._mean(F))

    _task = REGRESSION

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        target, weights = super()._read_target(y, n_rows, w, where)
        xp = where.xp
        low, high = current_team().ends(float(xp.min(target)), float(xp.max(target)))
        if high - low > WIDEST:
            raise ValueError(
                f"y must have a range of at most {WIDEST:g}, so that squares of its residuals are "
                f"finite; got values from {low:g} to {high:g}. Divide y by a constant."
            )
        return target, weights

    def _read_validation_target(self, y: Any, n_rows: int, where: Where, name: str) -> Any:
        return check_target(y, n_rows, where, name)

    def _n_strata(self) -> int:
        return 1

    def _n_outputs(self) -> int:
        return 1

    def _metric_truth(self, target: Any, where: Where) -> Any:
        return target

    def _prediction(self, F: Any, target: Any, where: Where) -> Any:
        return self._mean(F)
