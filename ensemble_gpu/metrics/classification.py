"""Metrics of probabilities [n, K], given the index of every row's class."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.metrics.areas import areas, step_area
from ensemble_gpu.metrics.tables import (
    correlation,
    counted,
    f_by_class,
    precision_by_class,
    recall_by_class,
    usual_mean,
)


def _own(index: Any, p: Any, where: Where) -> Any:
    """1 in the column of a row's class, 0 in the others."""
    xp = where.xp
    each = xp.arange(p.shape[1], dtype=xp.int64, device=where.device)
    return xp.astype(xp.astype(index, xp.int64)[:, None] == each[None, :], p.dtype)


def _right(index: Any, p: Any, where: Where) -> Any:
    xp = where.xp
    return xp.astype(xp.argmax(p, axis=1) == xp.astype(index, xp.int64), xp.float64)


def log_loss(index: Any, p: Any, weights: Any | None) -> float:
    """Mean of -ln p of the true class; a probability that underflows counts as the least float."""
    where = locate(p)
    xp = where.xp
    tiny = where.full(float(xp.finfo(p.dtype).smallest_normal), p.dtype)
    n, K = p.shape
    at = xp.arange(n, dtype=xp.int64, device=where.device) * K + xp.astype(index, xp.int64)
    own = xp.take(xp.reshape(p, (-1,)), at)
    return weighted_mean(-xp.log(xp.maximum(own, tiny)), weights, where)


def brier(index: Any, p: Any, weights: Any | None) -> float:
    """Mean of sum_k (p_k - [y = k])^2; half of it for two classes, as in scikit-learn."""
    where = locate(p)
    off = p - _own(index, p, where)
    total = weighted_mean(where.xp.sum(off * off, axis=1), weights, where)
    return 0.5 * total if p.shape[1] == 2 else total


def accuracy(index: Any, p: Any, weights: Any | None) -> float:
    """Share of the rows whose class has the largest probability."""
    where = locate(p)
    return weighted_mean(_right(index, p, where), weights, where)


def error(index: Any, p: Any, weights: Any | None) -> float:
    """Share of the rows whose class has not the largest probability."""
    where = locate(p)
    return weighted_mean(1.0 - _right(index, p, where), weights, where)


def balanced_accuracy(index: Any, p: Any, weights: Any | None) -> float:
    """Mean over the classes that the rows hold of the share of their rows that is right."""
    where = locate(p)
    xp, own = where.xp, _own(index, p, where)
    own = own if weights is None else own * (weights / xp.max(weights))[:, None]
    total = where.host(xp.sum(own, axis=0))
    right = where.host(xp.sum(own * _right(index, p, where)[:, None], axis=0))
    held = total > 0.0
    return float(np.mean(right[held] / total[held]))


def roc_auc(index: Any, p: Any, weights: Any | None) -> float:
    """Area under the ROC curve: the chance that a row of a class ranks above one of another.

    p are scores [n] of class 1, or probabilities [n, K]: for K > 2 the mean over the classes of
    one against the rest (scikit-learn's multi_class="ovr"). Classes that the rows do not hold are
    left out.
    """
    if p.ndim == 1 or p.shape[1] == 2:
        return roc_aucs(index, (p if p.ndim == 1 else p[:, 1])[None, :], weights)[0]
    where = locate(p)
    found = [
        areas(index == k, where.as_float64(p[:, k])[None, :], weights, where)
        for k in range(p.shape[1])
    ]
    known = [area for area in found if area is not None]
    return float(np.mean(known)) if known else _one_class_only()


def roc_aucs(index: Any, scores: Any, weights: Any | None) -> list[float]:
    """`roc_auc` of every vector of scores [M, n] of class 1."""
    where = locate(scores)
    found = areas(index == 1, where.as_float64(scores), weights, where)
    return _one_class_only() if found is None else found.tolist()


def _one_class_only() -> NoReturn:
    raise ValueError(
        "metric 'roc_auc' needs validation rows of at least two classes; they hold one."
    )


def average_precision(index: Any, p: Any, weights: Any | None) -> float:
    """sum_k (R_k - R_(k-1)) P_k over the thresholds; for K > 2 classes the mean over those held.

    p are scores [n] of class 1, or probabilities [n, K].
    """
    where = locate(p)
    if p.ndim == 1 or p.shape[1] == 2:
        columns = {1: p if p.ndim == 1 else p[:, 1]}
    else:
        columns = {k: p[:, k] for k in range(p.shape[1])}
    held = {k: index == k for k in columns}
    found = [
        step_area(held[k], scores, weights, where)
        for k, scores in columns.items()
        if bool(where.xp.any(held[k]))
    ]
    if not found:
        raise ValueError("metric 'average_precision' needs validation rows of the second class.")
    return float(np.mean(found))


def _table(index: Any, p: Any, weights: Any | None) -> np.ndarray:
    where = locate(p)
    predicted = where.xp.argmax(p, axis=1)
    return where.host(counted(index, predicted, p.shape[1], weights, where))


def precision(index: Any, p: Any, weights: Any | None) -> float:
    """Share of the positive predictions that are right; the mean over more than two classes."""
    return usual_mean(precision_by_class(_table(index, p, weights)))


def recall(index: Any, p: Any, weights: Any | None) -> float:
    """Share of the positive rows that are found; the mean over more than two classes."""
    return usual_mean(recall_by_class(_table(index, p, weights)))


def f1(index: Any, p: Any, weights: Any | None) -> float:
    """2 TP / (2 TP + FP + FN); the mean over more than two classes."""
    return usual_mean(f_by_class(_table(index, p, weights), 1.0))


def matthews(index: Any, p: Any, weights: Any | None) -> float:
    """The correlation of rows' and predicted classes."""
    return correlation(_table(index, p, weights))
