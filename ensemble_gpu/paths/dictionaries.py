"""Dictionaries of columns A [n, P] that are never stored as a whole.

A path asks for correlations A' v of all columns, and for the few columns that become active.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.protocol import LEFT, RIGHT
from ensemble_gpu.model.additive import AdditiveModel, Rounds
from ensemble_gpu.model.linear import LinearModel


class Columns(Protocol):
    """What a path needs; with `centred` columns are taken without their means."""

    where: Where
    means: np.ndarray  # [P], zeros where columns are not centred

    def correlations(self, v: Any) -> np.ndarray:
        """A' v [P] of v [n], on the host."""
        ...

    def column(self, j: int) -> Any:
        """Column j [n, 1]."""
        ...

    def model(self, columns: np.ndarray, coefficients: np.ndarray, intercept: float) -> Any:
        """The function intercept + sum of coefficients times columns that are not centred."""
        ...


class Features:
    """The columns of X themselves."""

    def __init__(self, X: Any, where: Where, *, centred: bool) -> None:
        xp = where.xp
        self.where, self.p = where, X.shape[1]
        self.means = where.host(xp.mean(X, axis=0)) if centred else np.zeros(self.p)
        self.A = X - where.put(self.means)[None, :]

    def correlations(self, v: Any) -> np.ndarray:
        return self.where.host(self.where.xp.matmul(self.A.T, v[:, None]))[:, 0]

    def column(self, j: int) -> Any:
        return self.A[:, j : j + 1]

    def model(self, columns: np.ndarray, coefficients: np.ndarray, intercept: float) -> LinearModel:
        b = np.zeros((1, 1, self.p))
        b[0, 0, columns] = coefficients
        return LinearModel(b, np.zeros((1, 1)), np.array([intercept]))


class Stumps:
    """+1 where x_f > threshold, -1 elsewhere, for thresholds between distinct values.

    The sums of v in the bins of a feature, added up, are the sums up to its thresholds:

        sum_i h_i v_i = sum of v - 2 (sum of v up to the threshold)

    A feature has at most max_bins - 1 thresholds, at even quantiles. All that is kept of the
    dictionary are the rows of each bin, in chunks of equal length; an empty place holds row n,
    where v is continued with a 0. `at` is the last chunk up to each threshold.
    """

    def __init__(self, X: Any, where: Where, *, max_bins: int, centred: bool) -> None:
        xp, (self.n, self.p) = where.xp, X.shape
        self.where, self.X = where, X
        order = xp.argsort(X, axis=0, stable=True)
        feature, ends, threshold = [], [], []
        for f in range(self.p):
            x = xp.take(X[:, f], order[:, f])
            own = _evenly(1 + where.host(xp.nonzero(x[1:] > x[:-1])[0]), max_bins - 1, self.n)
            if not len(own):
                continue
            low, high = (where.host(xp.take(x, where.put(own + d))) for d in (-1, 0))
            middle = 0.5 * low + 0.5 * high
            threshold.append(np.where(middle < high, middle, low))
            feature.append(np.full(len(own), f, dtype=np.int64))
            ends.append(own)
        none = np.zeros(0, dtype=np.int64)
        self.feature = np.concatenate([none, *feature])
        self.threshold = np.concatenate([np.zeros(0), *threshold])
        last = np.concatenate([none, *ends])
        self.means = 1.0 - 2.0 * last / self.n if centred else np.zeros(len(last))
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
        where, xp = self.where, self.where.xp
        rows = xp.take(order, where.put(np.where(empty, 0, places).reshape(-1)))
        gone = where.put(empty.reshape(-1))
        self.rows = xp.where(gone, xp.full_like(rows, self.n), rows)
        self.at = ends - 1
        # Where the sums of each feature begin: the chunk before, none for the first.
        new = np.diff(self.feature, prepend=-1) != 0
        self.before = (ends - chunks)[np.flatnonzero(new)[np.cumsum(new) - 1]] - 1

    def correlations(self, v: Any) -> np.ndarray:
        xp = self.where.xp
        total = float(xp.sum(v))
        v = xp.concat([v, xp.zeros_like(v[:1])])
        chunks = xp.sum(xp.reshape(xp.take(v, self.rows), (-1, self.length)), axis=1)
        sums = np.append(np.cumsum(self.where.host(chunks)), 0.0)  # the last for "none before"
        return total - 2.0 * (sums[self.at] - sums[self.before]) - self.means * total

    def column(self, j: int) -> Any:
        where, xp = self.where, self.where.xp
        above = self.X[:, int(self.feature[j])] > float(self.threshold[j])
        h = xp.where(above, where.full(1.0), where.full(-1.0))
        return (h - float(self.means[j]))[:, None]

    def model(
        self, columns: np.ndarray, coefficients: np.ndarray, intercept: float
    ) -> AdditiveModel:
        T = len(columns)
        values = np.zeros((T, 1, 3))
        values[:, 0, LEFT], values[:, 0, RIGHT] = -coefficients, coefficients
        rounds = Rounds(
            self.feature[columns], self.threshold[columns], np.full(T, RIGHT, dtype=np.int64),
            values, np.abs(coefficients), np.zeros(T),
        )  # fmt: skip
        return AdditiveModel(rounds, self.p, np.array([intercept]))


def _evenly(ends: np.ndarray, most: int, n: int) -> np.ndarray:
    """At most so many of the ends, those nearest above even quantiles of the rows."""
    if len(ends) <= most:
        return ends
    wanted = np.arange(1, most + 1) * (n / (most + 1))
    return np.unique(ends[np.minimum(np.searchsorted(ends, wanted), len(ends) - 1)])
