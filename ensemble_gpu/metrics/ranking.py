"""How well scores tell two kinds of rows apart: areas under ROC and precision-recall curves.

`scores` are [n], [n, K] (a column a class) or a stack [M, n] of M vectors, judged in one call. Of
two classes [n, 2] is a column a class, whatever n. Rows of weight zero are as if absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.metrics.areas import areas, placements, step_area
from ensemble_gpu.metrics.reading import (
    Ranked,
    Truth,
    answered,
    ranked,
    read_numbers,
    read_ranked,
    read_truth,
)

AVERAGES = ("macro", "weighted", "micro", "each")


class AreaInterval(NamedTuple):
    """An area, its standard error and the ends of its confidence interval."""

    area: Any
    standard_error: Any
    low: Any
    high: Any


class AreaDifference(NamedTuple):
    """The difference of two areas, its standard error, z = the quotient, and its p-value."""

    difference: float
    standard_error: float
    z: float
    p_value: float


def roc_auc(
    y: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str = "macro",
) -> Any:
    """Area under the ROC curve: P(f+ > f-) + P(f+ = f-) / 2.

    The share of pairs of a positive and a negative row that the scores put in order, equal scores
    half: (rank sum of the positive rows - P (P + 1) / 2) / (P N). Without weights it is exact, the
    quotient of two integers. More than two classes are judged one against the rest.

    Parameters
    ----------
    y : labels [n]
    scores : [n], higher for positive rows; [n, K], a column a class; or a stack [M, n] (of more
        than two classes [M, n, K])
    sample_weight : weights [n], or None
    pos_label : the positive label; None: the second of two
    labels : labels of the columns, in order; None: those of y, sorted
    average : of more than two classes: "macro" (mean), "weighted" (by the classes' weights),
        "micro" (all pairs of row and class as one problem) or "each" (an area a class)

    Returns
    -------
    float; an array [M] of the scores' library for a stack, [K] with average="each"
    """
    several = _many_classes(y, scores, sample_weight, pos_label, labels, average, "roc_auc")
    if several is not None:
        return several(_area)
    rows = read_ranked(y, scores, sample_weight, pos_label, "roc_auc")
    found = areas(rows.positive, rows.scores, rows.weights, rows.where)
    assert found is not None
    return rows.numbers(found)


def average_precision(
    y: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    pos_label: Any = None,
    labels: Any = None,
    average: str = "macro",
) -> Any:
    """sum_k (R_k - R_(k-1)) P_k over the thresholds, without interpolation.

    R and P are recall and precision of the rule f >= threshold. Parameters and result are those of
    `roc_auc`.
    """
    metric = "average_precision"
    several = _many_classes(y, scores, sample_weight, pos_label, labels, average, metric)
    if several is not None:
        return several(_precision)
    rows = read_ranked(y, scores, sample_weight, pos_label, metric)
    return rows.numbers([_precision(rows, vector) for vector in range(rows.scores.shape[0])])


def _area(rows: Ranked, vector: int) -> float:
    found = areas(rows.positive, rows.scores[vector, :][None, :], rows.weights, rows.where)
    assert found is not None
    return float(found[0])


def _precision(rows: Ranked, vector: int) -> float:
    return step_area(rows.positive, rows.scores[vector, :], rows.weights, rows.where)


def _many_classes(
    y: Any, scores: Any, sample_weight: Any, pos_label: Any, labels: Any, average: str, metric: str
) -> Callable[[Callable[[Ranked, int], float]], Any] | None:
    """One against the rest; None where there are two kinds of rows."""
    if average not in AVERAGES:
        allowed = ", ".join(map(repr, AVERAGES))
        raise ValueError(f"average must be one of {allowed}; got {average!r}.")
    given, home, where = read_numbers(scores, "scores")
    if pos_label is not None or given.ndim < 2:
        return None
    truth = read_truth(y, sample_weight, None, home, where, "scores")
    truth = truth if labels is None else truth.among(labels)
    n, K = truth.index.shape[0], len(truth.classes)
    if K < 3:
        return None
    stacked = given.ndim == 3
    if tuple(given.shape[-2:]) != (n, K):
        raise ValueError(
            f"scores must have shape ({n}, {K}) or (M, {n}, {K}): y has {n} rows of {K} classes; "
            f"got shape {tuple(given.shape)}."
        )
    stack = given if stacked else given[None, :, :]

    def mean(of: Callable[[Ranked, int], float]) -> Any:
        found = [_of_classes(of, truth, stack[m, :, :], average, metric)
                 for m in range(stack.shape[0])]  # fmt: skip
        if average == "each" and not stacked:
            return answered(found[0], True, home)
        return answered(found, stacked, home)

    return mean


def _of_classes(
    of: Callable[[Ranked, int], float], truth: Truth, p: Any, average: str, metric: str
) -> Any:
    xp = truth.where.xp
    K = len(truth.classes)
    if average == "micro":
        own = xp.concat([truth.index == k for k in range(K)])
        flat = xp.reshape(xp.permute_dims(p, (1, 0)), (1, -1))
        weights = truth.weights
        weights = None if weights is None else xp.concat([weights] * K)
        whole = Truth(truth.classes, truth.index, weights, truth.where, truth.home)
        return of(ranked(own, flat, False, whole, metric), 0)
    each, shares = [], []
    for k in range(K):
        rows = ranked(truth.index == k, p[:, k][None, :], False, truth, metric)
        each.append(of(rows, 0))
        own = xp.astype(rows.positive, xp.float64)
        shares.append(float(xp.sum(own if rows.weights is None else own * rows.weights)))
    if average == "each":
        return each
    return float(np.average(each, weights=shares if average == "weighted" else None))


def roc_auc_interval(
    y: Any, scores: Any, *, level: float = 0.95, pos_label: Any = None
) -> AreaInterval:
    """Confidence interval of `roc_auc` by DeLong's variance.

    A +- z s, within [0, 1]; s^2 = var(V_i) / P + var(V_j) / N, where V_i is the share of the
    negative rows below positive row i and V_j that of the positive rows above negative row j, equal
    scores half (DeLong, DeLong & Clarke-Pearson 1988). Rows are independent draws: no weights.

    Parameters
    ----------
    y, scores, pos_label : as of `roc_auc`; at least two rows of each kind
    level : the interval's coverage, between 0 and 1

    Returns
    -------
    AreaInterval(area, standard_error, low, high): floats, or arrays [M] for a stack
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    rows = read_ranked(y, scores, None, pos_label, "roc_auc_interval")
    area, covariance = _covariance(rows, "roc_auc_interval")
    error = np.sqrt(np.diagonal(covariance))
    reach = NormalDist().inv_cdf(0.5 + 0.5 * level) * error
    low, high = np.maximum(area - reach, 0.0), np.minimum(area + reach, 1.0)
    return AreaInterval(*(rows.numbers(values) for values in (area, error, low, high)))


def compare_roc_auc(
    y: Any, scores: Any, other_scores: Any, *, pos_label: Any = None
) -> AreaDifference:
    """Whether two classifiers' areas differ on the same rows: DeLong's test.

    z = (A - B) / sqrt(var A + var B - 2 cov(A, B)), p = P(|Z| >= |z|), two-sided. Equal rankings
    have z = 0, p = 1.

    Parameters
    ----------
    y : labels [n]
    scores, other_scores : [n] or [n, 2] each, of the same rows
    pos_label : the positive label; None: the second of two

    Returns
    -------
    AreaDifference(difference, standard_error, z, p_value)
    """
    one = read_ranked(y, scores, None, pos_label, "compare_roc_auc")
    two = read_ranked(y, other_scores, None, pos_label, "compare_roc_auc")
    if one.stacked or two.stacked:
        raise ValueError("compare_roc_auc takes two vectors of scores, not stacks of them.")
    both = one.beside(two)
    area, covariance = _covariance(both, "compare_roc_auc")
    difference = float(area[0] - area[1])
    variance = float(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    error = math.sqrt(max(variance, 0.0))
    if error == 0.0:
        z = 0.0 if difference == 0.0 else math.copysign(math.inf, difference)
    else:
        z = difference / error
    return AreaDifference(difference, error, z, math.erfc(abs(z) / math.sqrt(2.0)))


def _covariance(rows: Ranked, metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Areas [M] and DeLong's covariance of them [M, M]."""
    xp, where = rows.where.xp, rows.where
    total: Any = 0.0
    area = areas(rows.positive, rows.scores, None, where)
    assert area is not None
    for values in placements(rows.positive, rows.scores, where):
        n = values.shape[1]
        if n < 2:
            raise ValueError(f"{metric} needs at least two rows of each class; one holds {n}.")
        off = values - xp.mean(values, axis=1, keepdims=True)
        total = total + (off @ xp.matrix_transpose(off)) / (n * (n - 1.0))
    return area, where.host(total)
