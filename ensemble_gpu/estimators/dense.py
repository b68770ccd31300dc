"""What estimators do with X that need every cell of it: no missing values, no sparse matrices."""

from __future__ import annotations

from typing import Any

from ensemble_gpu.arrays.devices import DEVICES, check_device
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.data.categories import Chosen
from ensemble_gpu.data.parameters import check_choice
from ensemble_gpu.data.validation import check_finite
from ensemble_gpu.estimators.base import ArrayEstimator


class DenseEstimator(ArrayEstimator):
    """Finite numbers, as they are; a subclass has the parameter `device`."""

    missing = "error"
    n_jobs = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _check_parameters(self) -> None:
        check_choice("device", self.device, DEVICES)
        check_device(self.device)

    def _device_of_rows(self) -> str | None:
        return self.device

    def _read_features(self, X: Any) -> tuple[Any, Chosen]:
        return self._check_X(X, reset=True), Chosen([], {})

    def _check_X(self, X: Any, *, reset: bool, name: str = "X") -> Any:
        check_dense(X, type(self).__name__)
        return super()._check_X(X, reset=reset, name=name)

    def _check_finite(self, X: Any, where: Where, name: str) -> None:
        check_finite(X, where, name, None)
        if bool(where.xp.any(where.xp.isnan(X))):
            raise ValueError(
                f"Input {name} contains NaN, which {type(self).__name__} cannot take; drop the "
                "rows, or fill the cells in."
            )
