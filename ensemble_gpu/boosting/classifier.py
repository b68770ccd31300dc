"""What every additive classifier does with a fitted model: labels, probabilities, stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import Where, check_same_place, is_array, locate
from ensemble_gpu.boosting.additive import AdditiveEstimator
from ensemble_gpu.boosting.fitting import BoostedStumps
from ensemble_gpu.data.validation import (
    check_labels,
    check_length,
    check_weights,
    weighty_classes,
)
from ensemble_gpu.model.link import probabilities

Rounds = Sequence[int] | None


class AdditiveClassifier(ClassifierMixin, AdditiveEstimator):
    """Predictions of a classifier; a subclass fits `classes_` as well."""

    classes_: np.ndarray

    def _labels(self, F: Any, place: Where, here: Where) -> Any:
        """Labels of the largest probability; NumPy where only the host can hold them."""
        index = here.xp.argmax(probabilities(F, self.link_, here), axis=1)
        return place.hand_over(self._take_labels(index, here))

    def _take_labels(self, index: Any, here: Where) -> Any:
        if self.classes_.dtype.kind in "biuf":
            return here.xp.take(here.put(self.classes_), index)
        return self.classes_[here.host(index)]

    def decision_function(self, X: Any) -> Any:
        """F(x): [n] for two classes (positive: classes_[1]), [n, K] otherwise."""
        F, place, _ = self._outputs(X)
        return place.hand_over(_flat(F))

    def predict(self, X: Any) -> Any:
        """The most probable label of every row: argmax of predict_proba, always."""
        return self._labels(*self._outputs(X))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities [n, K] (model/link.py has the formulas).

        After many rounds margins are large and probabilities round to 0 and 1: rank by
        `decision_function`.
        """
        F, place, here = self._outputs(X)
        return place.hand_over(probabilities(F, self.link_, here))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba; a probability that underflows counts as the least float."""
        F, place, here = self._outputs(X)
        p = probabilities(F, self.link_, here)
        least = here.full(float(here.xp.finfo(p.dtype).smallest_normal), p.dtype)
        return place.hand_over(here.xp.log(here.xp.maximum(p, least)))

    def staged_decision_function(self, X: Any, rounds: Rounds = None) -> Iterator[Any]:
        """decision_function after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for F, place, _ in self._staged(X, rounds):
            yield place.hand_over(_flat(F))

    def staged_predict(self, X: Any, rounds: Rounds = None) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for stage in self._staged(X, rounds):
            yield self._labels(*stage)

    def staged_predict_proba(self, X: Any, rounds: Rounds = None) -> Iterator[Any]:
        """predict_proba after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for F, place, here in self._staged(X, rounds):
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


class BoostedClassifier(AdditiveClassifier, BoostedStumps):
    """How a boosted classifier reads labels."""

    def _read_target(self, y: Any, n_rows: int, w: Any, place: Where) -> tuple[Any, Any]:
        """Index of every row's label; classes_ are the labels that have any weight."""
        classes, index = check_labels(y, n_rows, place, 2, "y")
        weights = check_weights(w, n_rows, place, "sample_weight")
        if weights is not None:
            classes, index = weighty_classes(classes, index, weights, place)
        self.classes_ = classes
        return index, weights

    def _read_validation_target(self, y: Any, n_rows: int, place: Where) -> Any:
        classes, index = check_labels(y, n_rows, place, 1, "y_val")
        known = {label: k for k, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in classes.tolist() if label not in known]
        if unknown:
            raise ValueError(
                f"y_val holds labels that y does not: {unknown!r}; labels of y: {list(known)!r}."
            )
        numbers = np.array([known[label] for label in classes.tolist()], dtype=np.int64)
        return place.xp.take(place.put(numbers), index)

    def _n_strata(self) -> int:
        return len(self.classes_)

    def _metric_arguments(self, F: Any, target: Any, here: Where) -> tuple[Any, Any]:
        """Labels and probabilities."""
        return self._take_labels(target, here), probabilities(F, self.link_, here)
