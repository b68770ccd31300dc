"""What a report is about: a fitted estimator, test rows and what it predicts for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ensemble_gpu.arrays.namespace import is_array, to_numpy
from ensemble_gpu.arrays.sparse import column as sparse_column
from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.data.frames import count_columns, frame_of, table_of
from ensemble_gpu.metrics import CLASSIFICATION, RANKING, REGRESSION


def on_host(array: Any) -> np.ndarray:
    return np.asarray(to_numpy(array) if is_array(array) else array)


@dataclass(frozen=True)
class Column:
    """Values of a feature in the test rows: numbers, or positions among `categories`.

    NaN is missing.
    """

    values: np.ndarray
    categories: list[str] | None

    @property
    def present(self) -> np.ndarray:
        return self.values[~np.isnan(self.values)]

    def text(self, row: int, number: Any) -> str:
        """The value of a row as text; `number` makes text of numbers."""
        value = self.values[row]
        if np.isnan(value):
            return "missing"
        return number(value) if self.categories is None else self.categories[int(value)]


@dataclass(frozen=True)
class Subject:
    """The estimator with test rows; predictions are made once, on the host."""

    estimator: Any
    X: Any
    y: np.ndarray
    task: str
    qid: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return int(self.estimator.n_features_in_)

    @cached_property
    def names(self) -> list[str]:
        given = getattr(self.estimator, "feature_names_in_", None)
        if given is None:
            return [f"feature {f}" for f in range(self.n_features)]
        return [str(name) for name in given]

    @cached_property
    def classes(self) -> np.ndarray:
        return np.asarray(self.estimator.classes_)

    @cached_property
    def class_names(self) -> list[str]:
        return [str(label) for label in self.classes.tolist()]

    @cached_property
    def own(self) -> np.ndarray:
        """The position of each row's label in `classes`."""
        return np.searchsorted(self.classes, self.y)

    @cached_property
    def probabilities(self) -> np.ndarray | None:
        """[n, K] of a classifier that has them."""
        if not hasattr(self.estimator, "predict_proba"):
            return None
        return on_host(self.estimator.predict_proba(self.X)).astype(np.float64)

    @cached_property
    def prediction(self) -> np.ndarray:
        """Labels [n], numbers [n], quantiles [n, K] or scores of a ranking [n]."""
        return on_host(self.estimator.predict(self.X))

    @cached_property
    def scores(self) -> np.ndarray | None:
        """What ranks the rows: [n] of two classes, else [n, K]; None where there is nothing."""
        if hasattr(self.estimator, "decision_function"):
            return on_host(self.estimator.decision_function(self.X)).astype(np.float64)
        p = self.probabilities
        return p if p is None or p.shape[1] > 2 else p[:, 1]

    @cached_property
    def importances(self) -> np.ndarray | None:
        """Shares of the features; None where the estimator has none, or all are zero."""
        found = getattr(self.estimator, "feature_importances_", None)
        if found is None:
            return None
        found = on_host(found).astype(np.float64)
        return found if np.isfinite(found).all() and found.sum() > 0.0 else None

    def top(self, most: int) -> list[int]:
        """The most important features that matter at all; without importances the first ones."""
        if self.importances is None:
            return list(range(min(most, self.n_features)))
        order = np.argsort(-self.importances, kind="stable")[:most]
        return [int(f) for f in order if self.importances[f] > 0.0]

    @cached_property
    def _labels(self) -> dict[int, list]:
        """Names of the categories of each categorical feature, in the order of training."""
        known = getattr(self.estimator, "_categories", None)
        return {} if known is None else {f: known.names(f) for f in known.values}

    def column(self, feature: int) -> Column:
        """The values of a feature on the host."""
        frame = frame_of(self.X)
        table = frame if frame is not None else table_of(self.X)
        if table is not None and not table.is_plain(feature):
            codes, labels = table.factors(feature)
            numeric = feature not in self._labels and _are_numbers(labels)
            if numeric:
                return Column(np.array([*map(float, labels), np.nan])[codes], None)
            return _as_categories(codes, labels, self._labels.get(feature, []))
        values = self._numbers(feature)
        if feature not in self._labels:
            return Column(values, None)
        found, codes = np.unique(values, return_inverse=True)
        codes = np.where(np.isnan(values), -1, codes.reshape(-1))
        return _as_categories(codes, found[~np.isnan(found)].tolist(), self._labels[feature])

    def _numbers(self, feature: int) -> np.ndarray:
        if is_sparse(self.X):
            return np.asarray(sparse_column(self.X, feature), dtype=np.float64)
        frame = frame_of(self.X)
        if frame is not None:
            column = frame.frame[frame.names[feature]]
            return np.asarray(column.to_numpy(), dtype=np.float64)
        X = self.X if hasattr(self.X, "shape") else np.asarray(self.X)
        return on_host(X[:, feature]).astype(np.float64)


def _are_numbers(labels: Sequence) -> bool:
    return all(isinstance(label, int | float | np.number) for label in labels)


def _as_categories(codes: np.ndarray, labels: list, known: list) -> Column:
    """Positions among the categories of training, then those that only the test rows have."""
    every = [*known, *(label for label in labels if label not in set(known))]
    place = {label: k for k, label in enumerate(every)}
    positions = np.array([*(float(place[label]) for label in labels), np.nan])
    return Column(positions[codes], [_category(label) for label in every])


def _category(label: Any) -> str:
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else str(label)


def read_subject(estimator: Any, X: Any, y: Any, qid: Any) -> Subject:
    """Checked arguments of `report_html`."""
    check_is_fitted(estimator)
    ranks = getattr(estimator, "_task", None) == RANKING
    if qid is not None and not ranks:
        raise ValueError(f"qid is for estimators that rank; {type(estimator).__name__} does not.")
    if ranks and qid is None:
        raise ValueError(
            "qid must say which query each row belongs to: "
            f"{type(estimator).__name__} ranks rows of queries; got None."
        )
    task = RANKING if ranks else CLASSIFICATION if is_classifier(estimator) else REGRESSION
    y, n = on_host(y), X.shape[0] if hasattr(X, "shape") else len(X)
    if y.shape != (n,) or not n:
        raise ValueError(
            f"y_test must be one-dimensional with a value for each of the {n} rows of X_test, one "
            f"at least; got shape {y.shape}."
        )
    if count_columns(X) != estimator.n_features_in_:
        raise ValueError(
            f"X_test has {count_columns(X)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    if task == CLASSIFICATION:
        unknown = sorted(set(y.tolist()) - set(np.asarray(estimator.classes_).tolist()), key=str)
        if unknown:
            raise ValueError(
                f"y_test holds labels that the estimator has not seen: {unknown!r}; it knows "
                f"{np.asarray(estimator.classes_).tolist()!r}."
            )
    else:
        y = y.astype(np.float64)
    return Subject(estimator, X, y, task, None if qid is None else on_host(qid))
