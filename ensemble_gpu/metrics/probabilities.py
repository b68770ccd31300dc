"""What predicted probabilities are worth: [n] of the second of two labels, or [n, K]."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.metrics import classification as formulas
from ensemble_gpu.metrics.reading import Truth, read_numbers, read_ranked, read_truth

STRATEGIES = ("uniform", "quantile")


class CalibrationCurve(NamedTuple):
    """Share of positive rows and mean probability in each bin that has rows, and their weight."""

    observed: Any
    predicted: Any
    weight: Any


def _read(y: Any, p: Any, sample_weight: Any, labels: Any) -> tuple[Any, Truth]:
    """Probabilities [n, K], and the truth."""
    p, home, where = read_numbers(p, "p")
    xp = where.xp
    if p.ndim not in (1, 2):
        raise ValueError(f"p must have shape (n,) or (n, K); got shape {tuple(p.shape)}.")
    if bool(xp.any(p < 0.0)) or bool(xp.any(p > 1.0)):
        low, high = float(xp.min(p)), float(xp.max(p))
        raise ValueError(f"p must hold probabilities, 0 to 1; got {low:g} to {high:g}.")
    truth = read_truth(y, sample_weight, p.shape[0], home, where, "p")
    if labels is not None:
        truth = truth.among(labels)
    if p.ndim == 1:
        p = xp.stack([1.0 - p, p], axis=1)
    if p.shape[1] != len(truth.classes):
        raise ValueError(
            f"p has a column for each of {p.shape[1]} labels, but y holds {len(truth.classes)}: "
            f"{truth.classes.tolist()!r}. Give all labels, in the order of the columns, as labels."
        )
    return p, truth


def log_loss(y: Any, p: Any, *, sample_weight: Any = None, labels: Any = None) -> float:
    """Mean of -ln p of the row's label; a probability of 0 counts as the least float.

    Parameters
    ----------
    y : labels [n]
    p : probabilities [n] of the second of two labels, or [n, K]
    sample_weight : weights [n], or None
    labels : labels of the columns, in order; None: those of y, sorted
    """
    p, truth = _read(y, p, sample_weight, labels)
    return formulas.log_loss(truth.index, p, truth.weights)


def brier(y: Any, p: Any, *, sample_weight: Any = None, labels: Any = None) -> float:
    """Mean of (p - [y = 1])^2; of more labels that of sum_k (p_k - [y = k])^2.

    Parameters are those of `log_loss`.
    """
    p, truth = _read(y, p, sample_weight, labels)
    return formulas.brier(truth.index, p, truth.weights)


def calibration_curve(
    y: Any, p: Any, *, n_bins: int = 10, strategy: str = "uniform", sample_weight: Any = None,
    pos_label: Any = None,
) -> Any:  # fmt: skip
    """Share of positive rows beside the mean probability, in bins of the probability.

    A calibrated classifier has both equal. Bins without rows are left out.

    Parameters
    ----------
    y : labels [n]
    p : probabilities [n] of the positive label, [n, K], or a stack [M, n]
    n_bins : number of bins, at least 1
    strategy : "uniform": bins of equal width on [0, 1]; "quantile": of equally many rows (weights
        do not move the edges)
    sample_weight : weights [n], or None
    pos_label : the positive label; None: the second of two

    Returns
    -------
    CalibrationCurve(observed, predicted, weight), arrays of p's library; a list of M for a stack
    """
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {STRATEGIES!r}; got {strategy!r}.")
    if not isinstance(n_bins, int | np.integer) or n_bins < 1:
        raise ValueError(f"n_bins must be an integer >= 1; got {n_bins!r}.")
    rows = read_ranked(y, p, sample_weight, pos_label, "calibration_curve", "p")
    xp, where = rows.where.xp, rows.where
    if bool(xp.any(rows.scores < 0.0)) or bool(xp.any(rows.scores > 1.0)):
        raise ValueError("p must hold probabilities, 0 to 1.")
    positive = xp.astype(rows.positive, xp.float64)
    w = xp.ones_like(positive) if rows.weights is None else rows.weights

    def one(m: int) -> CalibrationCurve:
        q = rows.scores[m, :]
        if strategy == "uniform":
            edges = where.put(np.linspace(0.0, 1.0, int(n_bins) + 1)[1:-1])
        else:
            edges = _quantiles(xp.sort(q), int(n_bins), where)
        order = (
            xp.argsort(xp.searchsorted(edges, q))
            if n_bins > 1
            else xp.arange(q.shape[0], device=where.device)
        )
        bins = xp.take(xp.searchsorted(edges, q), order) if n_bins > 1 else xp.zeros_like(order)
        each = xp.arange(int(n_bins), dtype=bins.dtype, device=where.device)
        first, last = (xp.searchsorted(bins, each, side=side) for side in ("left", "right"))

        def total(values: Any) -> Any:
            sums = xp.cumulative_sum(xp.take(values, order))
            sums = xp.concat([where.zeros(1, xp.float64), sums])
            return xp.take(sums, last) - xp.take(sums, first)

        held = xp.nonzero(last > first)[0]
        weight, right, mean = (xp.take(total(v), held) for v in (w, w * positive, w * q))
        hand_over = rows.home.hand_over
        return CalibrationCurve(*map(hand_over, (right / weight, mean / weight, weight)))

    return rows.answer([one(m) for m in range(rows.scores.shape[0])])


def _quantiles(s: Any, n_bins: int, where: Any) -> Any:
    """Inner edges of bins of equally many of the ascending values, between neighbours by line."""
    xp = where.xp
    at = np.linspace(0.0, 1.0, n_bins + 1)[1:-1] * (s.shape[0] - 1)
    low = np.floor(at).astype(np.int64)
    a = xp.take(s, where.put(low))
    b = xp.take(s, where.put(np.minimum(low + 1, s.shape[0] - 1)))
    return a + (b - a) * where.put(at - low)
