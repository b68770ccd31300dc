"""What every additive classifier does with a fitted model: arrays in, arrays out.

A subclass fits `classes_`, `n_features_in_` and `model_`, and says by `_votes` how margins become
probabilities (model/link.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ensemble_gpu.arrays.namespace import NUMPY, Where, check_same_place, is_array, locate
from ensemble_gpu.data.validation import as_float_numpy, check_features, check_weights
from ensemble_gpu.kernels.select import engine_for, engine_view
from ensemble_gpu.model.additive import AdditiveModel
from ensemble_gpu.model.link import probabilities


class AdditiveClassifier(ClassifierMixin, BaseEstimator):
    """Predictions of a classifier whose `model_` is an AdditiveModel."""

    missing: str
    n_jobs: int | None
    classes_: np.ndarray
    n_features_in_: int
    model_: AdditiveModel

    def _votes(self) -> bool:
        """Whether the model's outputs are votes for classes, not margins."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        """X as a float array where it lives; n_features_in_ and names set or compared."""
        allow_nan = self.missing != "error"
        place = locate(X)
        if place is NUMPY:
            finite = "allow-nan" if allow_nan else True
            X = validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite=finite)
            return as_float_numpy(X)
        X = check_features(X, place, allow_nan)
        if reset:
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return X

    def _inputs(self, X: Any) -> tuple[Any, Where, Where, Any]:
        """X as floats, where it lives, where to compute, and the float dtype of the results."""
        check_is_fitted(self)
        place = locate(X)
        narrow = is_array(X) and X.dtype == place.xp.float32
        X = self._check_X(X, reset=False)
        engine = engine_for(place, self.n_jobs)
        here = NUMPY if engine.name == "cpu" else place
        dtype = here.xp.float32 if narrow else here.xp.float64
        return engine_view(engine, X), place, here, dtype

    def _margins(self, X: Any) -> tuple[Any, Where, Where]:
        X, place, here, dtype = self._inputs(X)
        return here.xp.astype(self.model_(X, n_jobs=self.n_jobs), dtype), place, here

    def _labels(self, F: Any, place: Where, here: Where) -> Any:
        """Labels of the largest probability; NumPy where only the host can hold them."""
        index = here.xp.argmax(probabilities(F, self._votes(), here), axis=1)
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
        return place.hand_over(probabilities(F, self._votes(), here))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba; a probability that underflows counts as the least float."""
        F, place, here = self._margins(X)
        p = probabilities(F, self._votes(), here)
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
            yield place.hand_over(probabilities(F, self._votes(), here))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows predicted right, weighted if weights are given."""
        predicted = self.predict(X)
        place = locate(predicted)
        check_same_place(place, y=y, sample_weight=sample_weight)
        if place is NUMPY:
            right = np.asarray(predicted) == np.asarray(y)
            weights = None if sample_weight is None else np.asarray(sample_weight)
            return float(np.average(right, weights=weights))
        xp = place.xp
        truth = y if is_array(y) else place.put(np.asarray(y))
        right = xp.astype(predicted == xp.astype(truth, predicted.dtype), xp.float32)
        if sample_weight is None:
            return float(xp.mean(right))
        weights = check_weights(sample_weight, right.shape[0], place, "sample_weight")
        return float(xp.sum(xp.astype(right, weights.dtype) * weights) / xp.sum(weights))


def _flat(F: Any) -> Any:
    return F[:, 0] if F.shape[1] == 1 else F
