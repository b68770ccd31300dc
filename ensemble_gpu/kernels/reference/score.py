"""The best split of all, from sums: the formulas of kernels/cpu/score.py in array-API calls.

Sums may have been added up by anybody: those of several workers, or of rows and folds, are added or
subtracted first, exactly, and the choice is made from the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    CONFIDENCE,
    LEFT,
    MAJORITY,
    RIGHT,
    TIE,
    Criterion,
    Split,
)


def choose(
    sums: Any, largest: np.ndarray, scale: np.ndarray, criterion: Criterion, where: Where
) -> Split | None:
    """The best split of integer sums [group, feature, code]: what `Histograms.split` finds.

    `largest[g]` is a bound on the integer weights of a group.
    """
    xp, width = where.xp, sums.shape[2]
    n = int(max(criterion.n_thresholds, default=0))
    if n == 0:
        return None
    left = xp.cumulative_sum(sums[:, :, : width - 1], axis=2, dtype=xp.int64)
    total = left[:, :, -1:]
    missing = sums[:, :, width - 1 :]
    left = left[:, :, :n]
    scales = where.put(scale)[:, None, None]

    def cost(left: Any, total: Any) -> Any:
        weights_left = scales * xp.astype(left, xp.float64)
        weights_right = scales * xp.astype(total - left, xp.float64)
        return _cost(xp, criterion.kind, weights_left, weights_right)

    if criterion.learn_missing:
        every = total + missing
        sides = [cost(left + missing, every), cost(left, every)]
    else:
        abstention = where.put(criterion.abstention)[:, None, None]
        apart = _running_total(abstention * xp.astype(missing, xp.float64))
        sides = [cost(left, total) + apart]
    costs = xp.stack(sides, axis=2)
    tried = where.put(np.arange(n))[None, :] < where.put(criterion.n_thresholds)[:, None]
    costs = xp.where(tried[:, :, None], costs, where.full(xp.inf))
    flat = xp.reshape(costs, (-1,))
    lowest = xp.min(flat)
    at = int(where.host(xp.argmax(xp.astype(flat <= lowest * TIE, xp.int64))))
    score = float(where.host(flat[at]))
    feature, rest = divmod(at, n * len(sides))
    last_bin, side = divmod(rest, len(sides))
    missing_leaf = side if criterion.learn_missing else ABSTAIN
    leaf_sums = _leaf_sums(where.host(sums[:, feature, :]), last_bin, missing_leaf)
    return Split(score, feature, last_bin, missing_leaf, leaf_sums, largest)


def _running_total(parts: Any) -> Any:
    """Sum over the first axis, one after the other: the order that the other engines use."""
    total = parts[0, ...]
    for g in range(1, parts.shape[0]):
        total = total + parts[g, ...]
    return total


def _cost(xp: Any, kind: int, left: Any, right: Any) -> Any:
    """Score of every (feature, threshold) from leaf weights [group, feature, threshold]."""
    if kind == MAJORITY:
        left_cost = _running_total(left) - xp.max(left, axis=0)
        return left_cost + (_running_total(right) - xp.max(right, axis=0))
    pairs = [
        _pair_cost(xp, kind, left[g, ...], left[g + 1, ...])
        + _pair_cost(xp, kind, right[g, ...], right[g + 1, ...])
        for g in range(0, left.shape[0], 2)
    ]
    total = pairs[0]
    for pair in pairs[1:]:
        total = total + pair
    return total


def _pair_cost(xp: Any, kind: int, plus: Any, minus: Any) -> Any:
    if kind == CONFIDENCE:
        return xp.sqrt(plus * minus)
    whole = plus + minus
    filled = whole > 0.0
    return xp.where(
        filled, plus * minus / xp.where(filled, whole, xp.ones_like(whole)), xp.zeros_like(whole)
    )


def _leaf_sums(column: np.ndarray, last_bin: int, missing_leaf: int) -> np.ndarray:
    """Integer weight per (group, leaf) of one feature's sums [group, code]."""
    sums = np.zeros((column.shape[0], 3), dtype=np.int64)
    sums[:, LEFT] = column[:, : last_bin + 1].sum(axis=1)
    sums[:, RIGHT] = column[:, last_bin + 1 : -1].sum(axis=1)
    sums[:, missing_leaf] += column[:, -1]
    return sums
