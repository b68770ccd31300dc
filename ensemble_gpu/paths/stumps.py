"""All stumps as a dictionary that is never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu.kernels.protocol import LEFT, RIGHT
from ensemble_gpu.model.additive import AdditiveModel, Rounds
from ensemble_gpu.paths.columns import EITHER, PathRows


class Stumps:
    """+1 where x_f > threshold, -1 elsewhere, for thresholds between distinct values.

    The sums of v in the bins of a feature, added up, are the sums up to its thresholds:

        sum_i h_i v_i = sum of v - 2 (sum of v up to the threshold)

    A feature has at most max_bins - 1 thresholds, at even quantiles. All that is kept of the
    dictionary are the rows of each bin, in chunks of equal length; an empty place holds row n,
    where v is continued with a 0. `at` is the last chunk up to each threshold.

    The features may be numbers that were made of those of the user: `made` turns a model of them
    into one of the user's.
    """

    signs = EITHER

    def __init__(
        self,
        rows: PathRows,
        *,
        max_bins: int,
        centred: bool,
        made: Callable[[AdditiveModel], Any] | None = None,
    ) -> None:
        self.rows, self.made = rows, made
        where, X = rows.where, rows.X
        xp, (self.n, self.p) = where.xp, X.shape
        order = xp.argsort(X, axis=0, stable=True)
        feature, ends, threshold, below = [], [], [], []
        for f in range(self.p):
            x = xp.take(X[:, f], order[:, f])
            own = 1 + where.host(xp.nonzero(x[1:] > x[:-1])[0])
            weight = own.astype(np.float64)  # up to each threshold
            if rows.weights is not None:
                ordered = where.host(xp.take(rows.weights, order[:, f]))
                weight = np.cumsum(ordered)[own - 1]
            chosen = _evenly(weight, max_bins - 1, rows.total)
            own = own[chosen]
            if not len(own):
                continue
            low, high = (where.host(xp.take(x, where.put(own + d))) for d in (-1, 0))
            middle = 0.5 * low + 0.5 * high
            threshold.append(np.where(middle < high, middle, low))
            feature.append(np.full(len(own), f, dtype=np.int64))
            ends.append(own)
            below.append(weight[chosen])
        none = np.zeros(0, dtype=np.int64)
        self.feature = np.concatenate([none, *feature])
        self.threshold = np.concatenate([np.zeros(0), *threshold])
        last = np.concatenate([none, *ends])
        self.means = np.zeros(len(last))
        if centred:
            self.means = 1.0 - 2.0 * np.concatenate([self.means[:0], *below]) / rows.total
        self.length = max(1, -(-self.n * self.p // max(1, len(last) + self.p)))
        self._chunk(xp.reshape(xp.permute_dims(order, (1, 0)), (-1,)), last)

    def _chunk(self, order: Any, last: np.ndarray) -> None:
        """Places of the rows of every bin below a threshold, `length` in a chunk."""
        first = np.concatenate([[0], last[:-1]]) if len(last) else last
        first[np.diff(self.feature, prepend=-1) != 0] = 0
        chunks = -(-(last - first) // self.length)
        ends = np.cumsum(chunks)
        bin_of = np.repeat(np.arange(len(last)), chunks)
        within = np.arange(len(bin_of)) - np.repeat(ends - chunks, chunks)
        start = first[bin_of] + within * self.length
        places = start[:, None] + np.arange(self.length)
        empty = places >= last[bin_of][:, None]
        places = places + (self.feature[bin_of] * self.n)[:, None]
        where, xp = self.rows.where, self.rows.where.xp
        rows = xp.take(order, where.put(np.where(empty, 0, places).reshape(-1)))
        gone = where.put(empty.reshape(-1))
        self.places = xp.where(gone, xp.full_like(rows, self.n), rows)
        self.at = ends - 1
        # Where the sums of each feature begin: the chunk before, none for the first.
        new = np.diff(self.feature, prepend=-1) != 0
        self.before = (ends - chunks)[np.flatnonzero(new)[np.cumsum(new) - 1]] - 1

    def correlations(self, v: Any) -> np.ndarray:
        xp, v = self.rows.where.xp, self.rows.weighted(v)
        total = float(xp.sum(v))
        v = xp.concat([v, xp.zeros_like(v[:1])])
        chunks = xp.sum(xp.reshape(xp.take(v, self.places), (-1, self.length)), axis=1)
        sums = np.append(np.cumsum(self.rows.where.host(chunks)), 0.0)  # the last: "none before"
        return total - 2.0 * (sums[self.at] - sums[self.before]) - self.means * total

    def column(self, j: int) -> Any:
        where = self.rows.where
        above = self.rows.X[:, int(self.feature[j])] > float(self.threshold[j])
        return where.xp.where(above, where.full(1.0), where.full(-1.0)) - float(self.means[j])

    def name(self, j: int) -> str:
        return f"{self.rows.name(int(self.feature[j]))} > {self.threshold[j]:.4g}"

    def model(self, columns: np.ndarray, coefficients: np.ndarray, intercept: float) -> Any:
        T = len(columns)
        values = np.zeros((T, 1, 3))
        values[:, 0, LEFT], values[:, 0, RIGHT] = -coefficients, coefficients
        rounds = Rounds(
            self.feature[columns], self.threshold[columns], np.full(T, RIGHT, dtype=np.int64),
            values, np.abs(coefficients), np.zeros(T),
        )  # fmt: skip
        model = AdditiveModel(rounds, self.p, np.array([intercept]))
        return model if self.made is None else self.made(model)


def _evenly(below: np.ndarray, most: int, total: float) -> np.ndarray:
    """Positions of at most so many thresholds, those nearest above even quantiles.

    `below` is the weight up to each threshold, `total` that of all rows.
    """
    if len(below) <= most:
        return np.arange(len(below))
    wanted = np.arange(1, most + 1) * (total / (most + 1))
    return np.unique(np.minimum(np.searchsorted(below, wanted), len(below) - 1))
