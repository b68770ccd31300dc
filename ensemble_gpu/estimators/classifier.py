"""What every classifier does with labels: read them, return them, score predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import NUMPY, Where, check_same_place, locate
from ensemble_gpu.data.class_weights import (
    BALANCED,
    check_class_weight,
    class_factors,
    times_class_weights,
)
from ensemble_gpu.data.labels import (
    check_label_column,
    check_label_kinds,
    check_labels,
    classes_with_weight,
)
from ensemble_gpu.data.validation import check_weights
from ensemble_gpu.estimators.base import ArrayEstimator
from ensemble_gpu.kernels.team import current_team


class ArrayClassifier(ClassifierMixin, ArrayEstimator):
    """Labels of any kind; a subclass has `predict`."""

    classes_: np.ndarray
    class_weight: Any = None

    # Labels that a fit needs at the least; names that `class_weight` may be.
    _fewest_classes = 2
    _class_weights: tuple[str, ...] = BALANCED
    # Weight of each label of y, in order.
    _class_factor: np.ndarray

    def _check_class_weight(self) -> None:
        check_class_weight(self.class_weight, self._class_weights)

    def _read_labels(
        self, y: Any, n_rows: int, w: Any, where: Where, fewest: int
    ) -> tuple[np.ndarray, Any, Any]:
        """Labels, the index of every row's, and its weight, times that of its class."""
        team = current_team()
        classes, index = check_labels(y, n_rows, where, fewest, "y", team)
        weights = check_weights(w, n_rows, where, "sample_weight", team)
        given = self.class_weight
        self._class_factor = class_factors(given, classes, index, weights, where, team)
        weights = times_class_weights(given, self._class_factor, index, weights, where, team)
        return classes, index, weights

    def _read_target(self, y: Any, n_rows: int, w: Any, where: Where) -> tuple[Any, Any]:
        """Index of every row's label, and weights; classes_ are the labels that have any weight."""
        classes, index, weights = self._read_labels(y, n_rows, w, where, self._fewest_classes)
        if weights is not None:
            classes, index = classes_with_weight(classes, index, weights, where, current_team())
        self.classes_ = classes
        return index, weights

    def _take_labels(self, index: Any, where: Where) -> Any:
        if self.classes_.dtype.kind in "biuf":
            return where.xp.take(where.put(self.classes_), index)
        return self.classes_[where.host(index)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows predicted right, weighted if weights are given.

        y holds labels as in `fit`; one that was not there counts as wrong, one of another kind
        (a string where labels are numbers) is an error.
        """
        predicted = self.predict(X)
        check_same_place(locate(predicted), y=y, sample_weight=sample_weight)
        predicted, y, sample_weight = map(to_workplace, (predicted, y, sample_weight))
        where = locate(predicted)
        xp = where.xp
        truth = check_label_column(y, predicted.shape[0], where, "y")
        check_label_kinds(truth, self.classes_, "y")
        right = xp.astype(_equal(predicted, truth, where), xp.float64)
        weights = check_weights(sample_weight, right.shape[0], where, "sample_weight")
        return float(
            xp.mean(right) if weights is None else xp.sum(right * weights) / xp.sum(weights)
        )


def _equal(predicted: Any, truth: Any, where: Where) -> Any:
    """Row by row, where the predictions are; labels that only the host holds are compared there."""
    if where is NUMPY:
        return predicted == truth
    if isinstance(truth, np.ndarray):
        if truth.dtype.kind not in "biuf":
            return where.put(where.host(predicted) == truth)
        truth = where.put(truth)
    xp = where.xp
    whole = xp.isdtype(predicted.dtype, ("integral", "bool")) and xp.isdtype(
        truth.dtype, ("integral", "bool")
    )
    common = xp.int64 if whole else xp.float64
    return xp.astype(predicted, common) == xp.astype(truth, common)
