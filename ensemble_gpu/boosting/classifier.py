"""What every additive classifier does with a fitted model: arrays in, arrays out.

A subclass fits `classes_`, `n_features_in_`, `model_`, and `link_`: how the model's outputs become
probabilities (model/link.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, Where, check_same_place, is_array, locate
from ensemble_gpu.data.validation import (
    check_finite,
    check_length,
    check_numbers,
    check_shape,
    check_weights,
    naming,
)
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.link import probabilities

PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


class AdditiveClassifier(ClassifierMixin, BaseEstimator):
    """Predictions of a classifier whose `model_` is an AdditiveModel."""

    missing: str
    device: str | None
    n_jobs: int | None
    classes_: np.ndarray
    n_features_in_: int
    model_: AdditiveModel
    link_: str

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def _check_X(self, X: Any, *, reset: bool, name: str = "X") -> Any:
        """X as a float array where it lives; n_features_in_ and names set or compared."""
        if not reset and self._is_plain(X):
            check_finite(X, NUMPY, name, self.missing)
            return X
        place = locate(X)
        if place is NUMPY:
            with naming(name):
                X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=False)
        else:
            check_shape(X, name)
            if reset:
                self.n_features_in_ = X.shape[1]
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        X = check_numbers(X, place, name)
        check_finite(X, place, name, self.missing)
        return X

    def _is_plain(self, X: Any) -> bool:
        """A NumPy array that needs no conversion: the general checks would find nothing.

        They take longer than the prediction of a single row.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in PLAIN
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _inputs(self, X: Any) -> tuple[Any, Where, Where, Any]:
        """X as floats, where it came from, where to compute, the float dtype of the results."""
        if not hasattr(self, "model_"):
            check_is_fitted(self)
        place = locate(X)
        narrow = is_array(X) and X.dtype == place.xp.float32
        X = self._check_X(to_workplace(X, "cpu" if self.device == "cpu" else None), reset=False)
        here = locate(X)
        return X, place, here, here.xp.float32 if narrow else here.xp.float64

    def _margins(self, X: Any) -> tuple[Any, Where, Where]:
        X, place, here, dtype = self._inputs(X)
        return here.xp.astype(self.model_(X, n_jobs=self.n_jobs), dtype), place, here

    def _labels(self, F: Any, place: Where, here: Where) -> Any:
        """Labels of the largest probability; NumPy where only the host can hold them."""
        index = here.xp.argmax(probabilities(F, self.link_, here), axis=1)
        if self.classes_.dtype.kind in "biuf":
            return place.hand_over(here.xp.take(here.put(self.classes_), index))
        return self.classes_[here.host(index)]

    def decision_function(self, X: Any) -> Any:
        """F(x): [n] for two classes (positive: classes_[1]), [n, K] otherwise."""
        F, place, _ = self._margins(X)
        return place.hand_over(_flat(F))

    def predict(self, X: Any) -> Any:
        """The most probable label of every row: argmax of predict_proba, always."""
        return self._labels(*self._margins(X))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities [n, K] (model/link.py has the formulas).

        After many rounds margins are large and probabilities round to 0 and 1: rank by
        `decision_function`.
        """
        F, place, here = self._margins(X)
        return place.hand_over(probabilities(F, self.link_, here))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba; a probability that underflows counts as the least float."""
        F, place, here = self._margins(X)
        p = probabilities(F, self.link_, here)
        least = here.full(float(here.xp.finfo(p.dtype).smallest_normal), p.dtype)
        return place.hand_over(here.xp.log(here.xp.maximum(p, least)))

    def _staged(self, X: Any) -> Iterator[tuple[Any, Where, Where]]:
        X, place, here, dtype = self._inputs(X)
        for F in self.model_.staged(X):
            yield here.xp.astype(F, dtype), place, here

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """decision_function after 1, 2, ... rounds."""
        for F, place, _ in self._staged(X):
            yield place.hand_over(_flat(F))

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds."""
        for stage in self._staged(X):
            yield self._labels(*stage)

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """predict_proba after 1, 2, ... rounds."""
        for F, place, here in self._staged(X):
            yield place.hand_over(probabilities(F, self.link_, here))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows predicted right, weighted if weights are given."""
        predicted = self.predict(X)
        check_same_place(locate(predicted), y=y, sample_weight=sample_weight)
        predicted, y, sample_weight = map(to_workplace, (predicted, y, sample_weight))
        here = locate(predicted)
        xp = here.xp
        truth = y if is_array(y) else here.put(np.asarray(y))
        check_length("y", truth.shape[0], "X", predicted.shape[0])
        right = xp.astype(predicted == truth, xp.float64)
        weights = check_weights(sample_weight, right.shape[0], here, "sample_weight")
        return float(
            xp.mean(right) if weights is None else xp.sum(right * weights) / xp.sum(weights)
        )


def _flat(F: Any) -> Any:
    return F[:, 0] if F.shape[1] == 1 else F
