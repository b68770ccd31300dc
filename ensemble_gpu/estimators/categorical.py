"""What every estimator does with categorical features: choose them, and know them again."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.plain import unmasked
from ensemble_gpu.arrays.sparse import check_dense
from ensemble_gpu.data.categories import Categories, Chosen, choose, known_to_all, number
from ensemble_gpu.data.parameters import check_signs
from ensemble_gpu.data.validation import naming
from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.kernels.team import current_team

CATEGORICAL_SPLITS = ("subset", "single")


class CategoricalEstimator(ArrayEstimator):
    """Features are chosen when X is read, their categories learnt from the rows that are kept.

    One without the parameter `categorical_features` has none.
    """

    max_bins: int | None
    monotonic_cst: Any
    _categories: Categories

    def _feature_parameter(self, name: str) -> Any:
        """A parameter about features (None: there is none); a bag of learners has its learner's."""
        return getattr(self, name, None)

    def _device_of_rows(self) -> str | None:
        return self.device

    def _read_features(self, X: Any) -> tuple[Any, Chosen]:
        """X of fit as floats, numbers in place of labels; and which features are categories."""
        chosen = choose(X, self._feature_parameter("categorical_features"))
        chosen = known_to_all(chosen, current_team())
        if chosen.features:
            check_dense(X, f"categorical_features (here features {chosen.features})")
        return self._check_X(number(X, chosen.labels), reset=True), chosen

    def _read_features_again(self, X: Any, chosen: Chosen, name: str) -> Any:
        """More rows as floats; `name` is for errors."""
        return self._check_X(self._numbered(X, chosen.labels, name), reset=False, name=name)

    def _numbered(self, X: Any, labels: dict[int, list], name: str = "X") -> Any:
        """X with numbers in place of labels, once its columns are known to be those of fit."""
        if labels and hasattr(X, "columns"):
            with naming(name):
                validate_data(self, X, reset=False, skip_check_array=True)
        return number(X, labels)

    def _inputs(self, X: Any) -> tuple[Any, Where, Where, Any]:
        X = unmasked(X)
        if hasattr(self, "_categories") and self._categories.values:
            check_dense(X, f"a model with categories (features {list(self._categories.values)})")
            X = self._numbered(X, self._categories.labels)
        return super()._inputs(X)

    def _signs(self) -> np.ndarray:
        """monotonic_cst as a sign for every feature; categories have no order to go by."""
        p = self.n_features_in_
        signs = check_signs(self.monotonic_cst, p, getattr(self, "feature_names_in_", None))
        at = np.flatnonzero(self._categories.mask(p) & (signs != 0)).tolist()
        if at:
            raise ValueError(
                f"monotonic_cst must be 0 for categorical features; it is not for features {at}."
            )
        return signs
