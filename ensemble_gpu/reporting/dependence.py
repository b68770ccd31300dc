"""What a feature does to the prediction.

A sum of stumps is a table a feature: its shape. Of any other model the partial dependence

    PD_f(v) = mean over rows i of F(x_i with v in place of x_if)

is taken, over some of the test rows and at some values of the feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.data.frames import table_of
from ensemble_gpu.metrics import CLASSIFICATION
from ensemble_gpu.reporting.subject import Column, Subject, on_host

MOST_ROWS, MOST_VALUES, MOST_CATEGORIES = 100, 20, 12
# Share of the rows that is outside of a picture.
TAIL = 0.005


@dataclass(frozen=True)
class Dependence:
    """values[i, output] at places[i]; of `steps` between places i and i + 1, one place more.

    `categories` are the names of the places, where they are categories. `missing[output]` is what
    a missing value adds, where it is known.
    """

    places: np.ndarray
    values: np.ndarray
    what: str
    steps: bool = False
    categories: list[str] | None = None
    missing: np.ndarray | None = None


def dependence(subject: Subject, feature: int, column: Column) -> Dependence | None:
    """The shape of a feature, or its partial dependence; None where rows hold nothing of it."""
    if not len(column.present):
        return None
    model: Any = getattr(subject.estimator, "model_", None)
    if hasattr(model, "shape_function"):
        return _shape(model.shape_function(feature), column)
    if is_sparse(subject.X):
        return None
    return _partial(subject, feature, column)


def _range(column: Column) -> tuple[float, float]:
    low, high = (float(q) for q in np.quantile(column.present, (TAIL, 1.0 - TAIL)))
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _shape(table: Any, column: Column) -> Dependence:
    low, high = _range(column)
    if not hasattr(table, "thresholds"):  # a spline
        places = np.linspace(low, high, 101)
        return Dependence(places, table(places)[:, None], "adds to F")
    inner = table.thresholds[(table.thresholds > low) & (table.thresholds < high)]
    values = table(np.concatenate([inner, [high]]))
    missing = table.missing if np.any(table.missing) else None
    places = np.concatenate([[low], inner, [high]])
    return Dependence(places, values, "adds to F", steps=True, missing=missing)


def _partial(subject: Subject, feature: int, column: Column) -> Dependence:
    n = subject.n_rows
    rows = np.unique(np.rint(np.linspace(0, n - 1, min(n, MOST_ROWS))).astype(int))
    names = None
    if column.categories is None:
        low, high = _range(column)
        places = np.unique(column.present)
        places = places[(places >= low) & (places <= high)]
        if len(places) > MOST_VALUES or not len(places):
            places = np.linspace(low, high, MOST_VALUES)
        given: list[Any] = places.tolist()
    else:
        codes, counts = np.unique(column.present.astype(np.int64), return_counts=True)
        chosen = np.sort(codes[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]])
        given, names = _given(subject, feature, chosen), [column.categories[c] for c in chosen]
        places = np.arange(len(chosen), dtype=np.float64)
    values = np.array([_mean(subject, _with(subject.X, rows, feature, v)) for v in given])
    classifies = subject.task == CLASSIFICATION
    what = "mean probability" if classifies else "mean prediction"
    return Dependence(places, values, what, categories=names)


def _given(subject: Subject, feature: int, chosen: np.ndarray) -> list[Any]:
    """Categories as X holds them."""
    table = table_of(subject.X)
    column = subject.column(feature)
    if table is not None and not table.is_plain(feature):
        labels, names = table.factors(feature)[1], column.categories
        assert names is not None
        by_name = {str(label): label for label in labels}
        return [by_name.get(names[c], names[c]) for c in chosen]
    categories = column.categories
    assert categories is not None
    return [float(categories[c]) for c in chosen]


def _with(X: Any, rows: np.ndarray, feature: int, value: Any) -> Any:
    """Some rows of X with one value for all in a feature."""
    table = table_of(X)
    if table is None:
        part = np.array(on_host(X)[rows], dtype=np.float64)
        part[:, feature] = value
        return part
    part = X.iloc[rows] if hasattr(X, "iloc") else X[rows.tolist()] if table.names else X[rows]
    inner = table_of(part)
    assert inner is not None
    if isinstance(value, str):
        return inner.replaced({feature: np.array([value] * len(rows), dtype=object)})
    return inner.replaced({feature: np.full(len(rows), value)})


def _mean(subject: Subject, X: Any) -> np.ndarray:
    """Mean prediction [outputs]; of two classes that of the second."""
    estimator = subject.estimator
    if subject.task == CLASSIFICATION and hasattr(estimator, "predict_proba"):
        p = on_host(estimator.predict_proba(X)).mean(axis=0)
        return p[1:] if len(p) == 2 else p
    found = on_host(estimator.predict(X)).astype(np.float64)
    return found.reshape(len(found), -1).mean(axis=0)
