"""The table of true and predicted classes, and what is read off it.

table[j, k] is the weight of the rows of class j that were taken for k. It is small: everything but
the counting itself is done on the host.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where

# Cells whose numbers fit two bytes: NumPy sorts those by digits.
SMALL = 1 << 15


def counted(index: Any, predicted: Any, n_classes: int, weights: Any | None, where: Where) -> Any:
    """The table [K, K]; integers where there are no weights."""
    xp = where.xp
    cells = n_classes * n_classes
    cell = xp.astype(index, xp.int64) * n_classes + xp.astype(predicted, xp.int64)
    each = xp.arange(cells, dtype=xp.int64, device=where.device)
    if cells < SMALL:
        cell, each = xp.astype(cell, xp.int16), xp.astype(each, xp.int16)
    if weights is None:
        s = xp.sort(cell)
        first, last = (xp.searchsorted(s, each, side=side) for side in ("left", "right"))
        return xp.reshape(xp.astype(last - first, xp.int64), (n_classes, n_classes))
    order = xp.argsort(cell)
    s = xp.take(cell, order)
    sums = xp.concat([where.zeros(1, xp.float64), xp.cumulative_sum(xp.take(weights, order))])
    first, last = (xp.take(sums, xp.searchsorted(s, each, side=side)) for side in ("left", "right"))
    return xp.reshape(last - first, (n_classes, n_classes))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below; 0 where nothing is below."""
    return np.divide(above, below, out=np.zeros(len(below)), where=below > 0.0)


def precision_by_class(table: np.ndarray) -> np.ndarray:
    """TP / (TP + FP)."""
    return _ratio(np.diagonal(table), table.sum(axis=0))


def recall_by_class(table: np.ndarray) -> np.ndarray:
    """TP / (TP + FN)."""
    return _ratio(np.diagonal(table), table.sum(axis=1))


def f_by_class(table: np.ndarray, beta: float) -> np.ndarray:
    """(1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP)."""
    square = beta * beta
    right = (1.0 + square) * np.diagonal(table)
    return _ratio(right, square * table.sum(axis=1) + table.sum(axis=0))


def usual_mean(values: np.ndarray) -> float:
    """That of the second of two classes, the mean of more."""
    return float(values[1]) if len(values) == 2 else float(np.mean(values))


def right_share(table: np.ndarray) -> float:
    return float(np.trace(table) / table.sum())


def balanced_share(table: np.ndarray) -> float:
    """Mean of the recall over the classes that rows have."""
    held = table.sum(axis=1) > 0.0
    return float(np.mean(recall_by_class(table)[held]))


def correlation(table: np.ndarray) -> float:
    """(c s - sum_k p_k t_k) / sqrt((s^2 - sum p_k^2) (s^2 - sum t_k^2)); 0 where that is 0 / 0.

    c: weight of the rows that are right, s: of all, t_k: of class k, p_k: taken for k.
    """
    table = table.astype(np.float64) / float(table.sum())
    true, taken, right = table.sum(axis=1), table.sum(axis=0), float(np.trace(table))
    if np.count_nonzero(true) < 2 or np.count_nonzero(taken) < 2:
        return 0.0
    below = (1.0 - float(taken @ taken)) * (1.0 - float(true @ true))
    return (right - float(true @ taken)) / math.sqrt(below)
