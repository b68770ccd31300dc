"""Curves of two kinds of rows as the threshold moves: ROC, its hull, precision and recall."""

from __future__ import annotations

from typing import Any, NamedTuple

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.metrics.areas import Groups, groups
from ensemble_gpu.metrics.reading import Ranked, read_ranked


class RocCurve(NamedTuple):
    """FP / N and TP / P of the rule f >= threshold; thresholds fall from infinity."""

    fpr: Any
    tpr: Any
    thresholds: Any


class PrecisionRecallCurve(NamedTuple):
    """TP / (TP + FP) and TP / P of the rule f >= threshold; thresholds rise.

    The last point, precision 1 at recall 0, has no threshold.
    """

    precision: Any
    recall: Any
    thresholds: Any


def roc_curve(y: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None) -> Any:
    """FPR = FP / N and TPR = TP / P of the rule f >= threshold, at every distinct score.

    Rows of equal scores are one point, so that their order does not matter. The first point is
    (0, 0), with threshold infinity; the last is (1, 1).

    Parameters
    ----------
    y : labels [n]
    scores : [n], higher for positive rows; [n, K], a column a class; or a stack [M, n]
    sample_weight : weights [n], or None
    pos_label : the positive label; None: the second of two. With it y may hold more labels: the
        rest is negative

    Returns
    -------
    RocCurve(fpr, tpr, thresholds), arrays of the scores' library; a list of M for a stack
    """
    rows = read_ranked(y, scores, sample_weight, pos_label, "roc_curve")
    return rows.answer([_roc(found, rows) for found in _each(rows)])


def precision_recall_curve(
    y: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None
) -> Any:
    """Precision TP / (TP + FP) and recall TP / P of the rule f >= threshold, at every score.

    In the order of scikit-learn: thresholds rise, recall falls from 1, and a last point (1, 0) has
    no threshold. Parameters are those of `roc_curve`.

    Returns
    -------
    PrecisionRecallCurve(precision, recall, thresholds); a list of M for a stack
    """
    rows = read_ranked(y, scores, sample_weight, pos_label, "precision_recall_curve")
    return rows.answer([_precision_recall(found, rows) for found in _each(rows)])


def roc_convex_hull(
    y: Any, scores: Any, *, sample_weight: Any = None, pos_label: Any = None
) -> Any:
    """The corners of the least concave curve above the ROC curve.

    What is below it no costs of errors would choose: for any cost_fp and cost_fn a corner has the
    lowest expected cost (Provost & Fawcett 2001). Parameters and result are those of `roc_curve`.
    """
    rows = read_ranked(y, scores, sample_weight, pos_label, "roc_convex_hull")
    return rows.answer([_roc(found, rows, hull=True) for found in _each(rows)])


def _each(rows: Ranked) -> list[Groups]:
    return [
        groups(rows.positive, rows.scores[m, :], rows.weights, rows.where)
        for m in range(rows.scores.shape[0])
    ]


def _roc(found: Groups, rows: Ranked, hull: bool = False) -> RocCurve:
    where, home = rows.where, rows.home
    xp = where.xp
    s = xp.concat([xp.full(1, xp.inf, dtype=xp.float64, device=where.device), found.thresholds])
    plus, minus = (xp.concat([xp.zeros_like(w[:1]), w]) for w in (found.plus, found.minus))
    if hull:
        kept = _corners(minus, plus, where)
        s, plus, minus = (xp.take(array, kept) for array in (s, plus, minus))
    fpr, tpr = (where.as_float64(w) / where.as_float64(w[-1]) for w in (minus, plus))
    return RocCurve(*map(home.hand_over, (fpr, tpr, s)))


def _corners(x: Any, y: Any, where: Where) -> Any:
    """Which points of an ascending curve are corners of its upper hull.

    A point that is not above the line between its neighbours is none: all such points are left
    out at once, until there are none.
    """
    xp = where.xp
    kept = xp.arange(x.shape[0], device=where.device)
    while kept.shape[0] > 2:
        a, b = xp.take(x, kept), xp.take(y, kept)
        before = (b[1:-1] - b[:-2]) * (a[2:] - a[1:-1])
        after = (b[2:] - b[1:-1]) * (a[1:-1] - a[:-2])
        one = xp.ones(1, dtype=xp.bool, device=where.device)
        corner = xp.concat([one, before > after, one])
        if bool(xp.all(corner)):
            break
        kept = xp.take(kept, xp.nonzero(corner)[0])
    return kept


def _precision_recall(found: Groups, rows: Ranked) -> PrecisionRecallCurve:
    where, home = rows.where, rows.home
    xp = where.xp
    plus, minus = where.as_float64(found.plus), where.as_float64(found.minus)
    one, none = where.full(1.0)[None], where.full(0.0)[None]
    last = plus.shape[0] - 1
    upwards = xp.arange(last, -1, -1, device=where.device)
    precision = xp.concat([xp.take(plus / (plus + minus), upwards), one])
    recall = xp.concat([xp.take(plus / plus[-1], upwards), none])
    thresholds = xp.take(found.thresholds, upwards)
    return PrecisionRecallCurve(*map(home.hand_over, (precision, recall, thresholds)))
