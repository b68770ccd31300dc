"""Metrics of probabilities [n, K], given the index of every row's class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import Where, locate


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
    own = xp.sum(p * _own(index, p, where), axis=1)
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
    where = locate(p)
    xp = where.xp
    if p.ndim == 1 or p.shape[1] == 2:
        classes, columns = [1], [p if p.ndim == 1 else p[:, 1]]
    else:
        classes, columns = list(range(p.shape[1])), [p[:, k] for k in range(p.shape[1])]
    w = xp.ones_like(columns[0]) if weights is None else weights / xp.max(weights)
    areas = [
        _area(xp.astype(index == k, xp.float64), scores, w, where)
        for k, scores in zip(classes, columns, strict=True)
    ]
    known = [area for area in areas if area is not None]
    if not known:
        raise ValueError(
            "metric 'roc_auc' needs validation rows of at least two classes; they hold one."
        )
    return float(np.mean(known))


def _area(positive: Any, scores: Any, w: Any, where: Where) -> float | None:
    """Mean of [s_i > s_j] + [s_i = s_j] / 2 over pairs, i positive, j negative, by w_i w_j.

    A positive row is above the weight of the negative ones before its first equal in the order of
    the scores, and halfway above that of its equals. None where rows of a kind are missing.
    """
    xp = where.xp
    order = xp.argsort(scores)
    s, plus = xp.take(scores, order), xp.take(w * positive, order)
    minus = xp.take(w * (1.0 - positive), order)
    pairs = float(xp.sum(plus)) * float(xp.sum(minus))
    if pairs == 0.0:
        return None
    none = where.zeros(1, xp.float64)
    below = xp.concat([none, xp.cumulative_sum(minus, dtype=xp.float64)])
    first = xp.take(below, xp.searchsorted(s, s, side="left"))
    last = xp.take(below, xp.searchsorted(s, s, side="right"))
    return float(xp.sum(plus * (0.5 * (first + last)))) / pairs
