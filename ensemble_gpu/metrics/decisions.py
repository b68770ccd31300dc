"""What predicted labels are worth. 0 / 0 is 0 throughout, as in scikit-learn."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.arrays.devices import to_workplace
from ensemble_gpu.arrays.namespace import check_same_place, is_array, locate
from ensemble_gpu.data.labels import check_label_column, check_labels, kinds_of
from ensemble_gpu.data.validation import check_weights
from ensemble_gpu.metrics.reading import Truth, answered, rows_of
from ensemble_gpu.metrics.tables import (
    balanced_share,
    correlation,
    counted,
    f_by_class,
    precision_by_class,
    recall_by_class,
    right_share,
)

AVERAGES = ("auto", "macro", "weighted", "micro", "each")


def _counted(y: Any, predicted: Any, sample_weight: Any, labels: Any = None) -> tuple[Any, Truth]:
    """The table of true and predicted labels, and who they are."""
    home = locate(predicted)
    check_same_place(home, "predicted", y=y, sample_weight=sample_weight)
    predicted, y = to_workplace(predicted), to_workplace(y)
    n = rows_of(predicted, "predicted")
    where = locate(predicted)
    if rows_of(y, "y") != n:
        raise ValueError(f"y has {rows_of(y, 'y')} rows, predicted has {n}; they must be as many.")
    both = [check_label_column(part, n, where, name)
            for part, name in ((y, "y"), (predicted, "predicted"))]  # fmt: skip
    on_device = [is_array(part) and not isinstance(part, np.ndarray) for part in both]
    if on_device[0] != on_device[1]:
        raise ValueError(
            "y and predicted must be labels of one library: strings are on the host, so both must "
            f"be; y is {locate(both[0])}, predicted is {locate(both[1])}."
        )
    true, taken = (" and ".join(sorted(kinds_of(part))) for part in both)
    if true != taken:
        raise ValueError(
            f"predicted holds {taken}, y holds {true}; labels of two kinds never agree."
        )
    joined = (where.xp if on_device[0] else np).concat(both)
    classes, index = check_labels(joined, 2 * n, where, 1, "y")
    weights = check_weights(to_workplace(sample_weight), n, where, "sample_weight")
    truth = Truth(classes, index, weights, where, home)
    if labels is not None:
        truth = truth.among(labels)
    index, other = truth.index[:n], truth.index[n:]
    return counted(index, other, len(truth.classes), weights, where), truth


def _host(y: Any, predicted: Any, sample_weight: Any) -> tuple[np.ndarray, Truth]:
    table, truth = _counted(y, predicted, sample_weight)
    return truth.where.host(table), truth


def confusion_matrix(
    y: Any, predicted: Any, *, sample_weight: Any = None, labels: Any = None
) -> Any:
    """table[j, k]: rows (or their weight) of label j that were taken for label k.

    Parameters
    ----------
    y, predicted : labels [n]
    sample_weight : weights [n], or None
    labels : the labels in the order wanted, all that occur at least; None: those of y and
        predicted, sorted

    Returns
    -------
    array [K, K] of the predictions' library: int64, float64 with weights
    """
    table, truth = _counted(y, predicted, sample_weight, labels)
    return truth.home.hand_over(table)


def accuracy(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Share of the rows whose label was predicted, by weight."""
    return right_share(_host(y, predicted, sample_weight)[0])


def error(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Share of the rows whose label was not predicted: 1 - accuracy."""
    table = _host(y, predicted, sample_weight)[0]
    return float((table.sum() - np.trace(table)) / table.sum())


def balanced_accuracy(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Mean over the labels of y of the share of their rows that is right: the mean recall."""
    return balanced_share(_host(y, predicted, sample_weight)[0])


def precision(
    y: Any, predicted: Any, *, sample_weight: Any = None, pos_label: Any = None,
    average: str = "auto",
) -> Any:  # fmt: skip
    """TP / (TP + FP): the share of the positive predictions that is right.

    Parameters
    ----------
    y, predicted : labels [n]
    sample_weight : weights [n], or None
    pos_label : the positive label; None: the second of two
    average : "auto": the positive label's value where there are two labels or pos_label is given,
        else the mean; "macro" (mean over labels), "weighted" (by the weight of their rows), "micro"
        (of the sums of TP, FP, FN over labels), "each" (an array [K])

    Returns
    -------
    float, or an array
    """
    table, truth = _host(y, predicted, sample_weight)
    return _averaged(precision_by_class(table), table, truth, pos_label, average)


def recall(
    y: Any, predicted: Any, *, sample_weight: Any = None, pos_label: Any = None,
    average: str = "auto",
) -> Any:  # fmt: skip
    """TP / (TP + FN): the share of the positive rows that is found.

    Parameters are those of `precision`.
    """
    table, truth = _host(y, predicted, sample_weight)
    return _averaged(recall_by_class(table), table, truth, pos_label, average)


def f_score(
    y: Any, predicted: Any, beta: float = 1.0, *, sample_weight: Any = None, pos_label: Any = None,
    average: str = "auto",
) -> Any:  # fmt: skip
    """(1 + b^2) P R / (b^2 P + R), P precision and R recall; b = 1 is their harmonic mean.

    `beta` > 0: how many times recall counts as much as precision. The other parameters are those of
    `precision`.
    """
    if not (beta > 0.0 and math.isfinite(beta)):
        raise ValueError(f"beta must be finite and > 0; got {beta!r}.")
    table, truth = _host(y, predicted, sample_weight)
    return _averaged(f_by_class(table, float(beta)), table, truth, pos_label, average)


def matthews(y: Any, predicted: Any, *, sample_weight: Any = None) -> float:
    """Matthews' correlation: (TP TN - FP FN) / sqrt((TP+FP) (TP+FN) (TN+FP) (TN+FN)).

    Of more labels (c s - sum_k p_k t_k) / sqrt((s^2 - sum p_k^2) (s^2 - sum t_k^2)): c rows are
    right of s, t_k have label k, p_k are taken for it.
    """
    return correlation(_host(y, predicted, sample_weight)[0])


def _averaged(
    values: np.ndarray, table: np.ndarray, truth: Truth, pos_label: Any, average: str
) -> Any:
    if average not in AVERAGES:
        allowed = ", ".join(map(repr, AVERAGES))
        raise ValueError(f"average must be one of {allowed}; got {average!r}.")
    if average == "auto":
        if pos_label is not None:
            return float(values[truth.position(pos_label, "pos_label")])
        return float(values[1]) if len(values) == 2 else float(np.mean(values))
    if pos_label is not None:
        raise ValueError(f"pos_label is for average='auto'; got average={average!r}.")
    if average == "each":
        return answered(values, True, truth.home)
    if average == "micro":  # FP and FN of all labels are as many: precision = recall = F
        return right_share(table)
    own = table.sum(axis=1)
    return float(np.average(values, weights=own if average == "weighted" else None))
