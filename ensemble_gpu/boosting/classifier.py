"""What every additive classifier does with a fitted model: labels, probabilities, stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.fitting import BoostedEstimator
from ensemble_gpu.boosting.staged import StagedEstimator
from ensemble_gpu.data.labels import check_labels
from ensemble_gpu.estimators.classifier import ArrayClassifier
from ensemble_gpu.metrics import CLASSIFICATION
from ensemble_gpu.model.link import probabilities

Rounds = Sequence[int] | None


class AdditiveClassifier(ArrayClassifier, StagedEstimator):
    """Predictions of a classifier; a subclass fits `classes_` as well."""

    def _labels(self, F: Any, home: Where, where: Where) -> Any:
        """Labels of the largest probability; NumPy where only the host can hold them."""
        index = where.xp.argmax(self._probabilities(F, where), axis=1)
        return home.hand_over(self._take_labels(index, where))

    def _probabilities(self, F: Any, where: Where) -> Any:
        """[n, K] of outputs F; `scale_` is there where the model is calibrated."""
        return probabilities(F, self.link_, where, getattr(self, "scale_", 1.0))

    def decision_function(self, X: Any) -> Any:
        """F(x): [n] for two classes (positive: classes_[1]), [n, K] otherwise."""
        F, home, _ = self._outputs(X)
        return home.hand_over(_flat(F))

    def predict(self, X: Any) -> Any:
        """The most probable label of every row: argmax of predict_proba, always."""
        return self._labels(*self._outputs(X))

    def predict_proba(self, X: Any) -> Any:
        """Probabilities [n, K] (model/link.py has the formulas).

        After many rounds margins are large and probabilities round to 0 and 1: rank by
        `decision_function`.
        """
        F, home, where = self._outputs(X)
        return home.hand_over(self._probabilities(F, where))

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of predict_proba; a probability that underflows counts as the least float."""
        F, home, where = self._outputs(X)
        p = self._probabilities(F, where)
        least = where.full(float(where.xp.finfo(p.dtype).smallest_normal), p.dtype)
        return home.hand_over(where.xp.log(where.xp.maximum(p, least)))

    def staged_decision_function(self, X: Any, rounds: Rounds = None) -> Iterator[Any]:
        """decision_function after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for F, home, _ in self._staged(X, rounds):
            yield home.hand_over(_flat(F))

    def staged_predict(self, X: Any, rounds: Rounds = None) -> Iterator[Any]:
        """Predict after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for stage in self._staged(X, rounds):
            yield self._labels(*stage)

    def staged_predict_proba(self, X: Any, rounds: Rounds = None) -> Iterator[Any]:
        """predict_proba after 1, 2, ... rounds, or after the chosen `rounds` (ascending)."""
        for F, home, where in self._staged(X, rounds):
            yield home.hand_over(self._probabilities(F, where))


def _flat(F: Any) -> Any:
    return F[:, 0] if F.shape[1] == 1 else F


class BoostedClassifier(AdditiveClassifier, BoostedEstimator):
    """How a boosted classifier reads labels."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if getattr(self.estimator, "two_classes", False):
            tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_class_weight()

    _task = CLASSIFICATION

    def _read_validation_target(self, y: Any, n_rows: int, where: Where, name: str) -> Any:
        classes, index = check_labels(y, n_rows, where, 1, name)
        known = {label: k for k, label in enumerate(self.classes_.tolist())}
        unknown = [label for label in classes.tolist() if label not in known]
        if unknown:
            raise ValueError(
                f"{name} holds labels that y does not: {unknown!r}; labels of y: {list(known)!r}."
            )
        numbers = np.array([known[label] for label in classes.tolist()], dtype=np.int64)
        return where.xp.take(where.put(numbers), index)

    def _n_strata(self) -> int:
        return len(self.classes_)

    def _n_outputs(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _metric_truth(self, target: Any, where: Where) -> Any:
        return self._take_labels(target, where)

    def _prediction(self, F: Any, target: Any, where: Where) -> Any:
        return probabilities(F, self.link_, where)
