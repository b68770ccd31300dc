"""Ridge regression for all penalties from one decomposition.

    min over b0, b of sum_i w_i (y_i - b0 - b x_i)^2 + l2 |b|^2

With X and y centred by their weighted means and rows times sqrt(w_i), X = U diag(s) V':

    b = V diag(s / (s^2 + l2)) U' y,    S y = U diag(s^2 / (s^2 + l2)) U' y + mean of y.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.linalg import svd
from ensemble_gpu.arrays.namespace import Where, locate
from ensemble_gpu.data.parameters import check_not_negative
from ensemble_gpu.learners.protocol import LearnerRows
from ensemble_gpu.learners.smooth import Smooths
from ensemble_gpu.model.linear import LinearModel, line

EPSILON = 2.0**-52


@dataclass(frozen=True)
class Decomposition:
    """Of weighted, centred rows: U [n, r], s [r], V' [r, p]; their mean, and sqrt of the weights.

    Arrays of `where`; singular values that are rounding errors have been left out.
    """

    U: Any
    s: Any
    Vt: Any
    mean: Any
    root: Any | None
    where: Where

    def centred(self, y: Any) -> tuple[Any, Any]:
        """Y [n, outputs] without its weighted mean, times the roots; and the mean [outputs]."""
        xp = self.where.xp
        if self.root is None:
            mean = xp.mean(y, axis=0)
            return y - mean[None, :], mean
        w = self.root * self.root
        mean = xp.sum(w * y, axis=0) / xp.sum(w)
        return self.root * (y - mean[None, :]), mean


def decompose(X: Any, weights: Any | None, where: Where) -> Decomposition:
    """The decomposition of rows X [n, p]; weights are relative to each other and to l2."""
    xp, X = where.xp, where.as_float64(X)
    root = None if weights is None else xp.sqrt(weights)[:, None]
    mean = xp.mean(X, axis=0) if root is None else xp.sum(root * root * X, axis=0) / xp.sum(weights)
    X = X - mean[None, :]
    U, s, Vt = svd(X if root is None else root * X, where)
    largest = float(xp.max(s)) if s.shape[0] else 0.0
    rank = int(xp.sum(xp.astype(s > EPSILON * max(X.shape) * largest, xp.int64)))
    return Decomposition(U[:, :rank], s[:rank], Vt[:rank, :], mean, root, where)


def coefficients(parts: Decomposition, y: Any, l2: float) -> tuple[Any, Any]:
    """b [outputs, p] and b0 [outputs] for targets y [n, outputs]."""
    xp = parts.where.xp
    y, mean = parts.centred(y)
    s = parts.s[:, None]
    b = xp.matmul(xp.matmul(parts.U.T, y).T * (s / (s * s + l2)).T, parts.Vt)
    return b, mean - xp.matmul(b, parts.mean[:, None])[:, 0]


def smooth(parts: Decomposition, y: Any, l2: float) -> Any:
    """S y [n, outputs], the fitted values."""
    xp = parts.where.xp
    y, mean = parts.centred(y)
    s = parts.s[:, None]
    fit = xp.matmul(parts.U, xp.matmul(parts.U.T, y) * (s * s / (s * s + l2)))
    return (fit if parts.root is None else fit / parts.root) + mean[None, :]


def leverages(parts: Decomposition, l2: float) -> Any:
    """The diagonal of S [n, 1]."""
    xp, s = parts.where.xp, parts.s
    own = xp.sum(parts.U * parts.U * (s * s / (s * s + l2))[None, :], axis=1, keepdims=True)
    if parts.root is None:
        return own + 1.0 / parts.U.shape[0]
    w = parts.root * parts.root
    return own + w / xp.sum(w)


def degrees_of_freedom(parts: Decomposition, l2: float) -> float:
    """The trace of S: 1 + sum s^2 / (s^2 + l2)."""
    s = parts.where.host(parts.s)
    return 1.0 + float((s * s / (s * s + l2)).sum())


class Ridge(BaseEstimator):
    """A weak learner for `estimator=` of BoostingClassifier and BoostingRegressor.

    h is the ridge regression of -gradient: the rows are decomposed once, and a round costs a
    product. Sample weights are those of the rows.

    Parameters
    ----------
    l2 : float >= 0, default=1.0
        sum_i w_i (t_i - b0 - b x_i)^2 + l2 |b|^2 is minimised.
    """

    takes_any_array = True

    def __init__(self, l2: float = 1.0) -> None:
        self.l2 = l2

    def gradient_learner(self, rows: LearnerRows) -> Smooths:
        """The rows are decomposed once."""
        check_not_negative("l2", self.l2)
        return Smooths(self, rows, lambda rows: RidgeSmoother(rows, float(self.l2)))


@dataclass(frozen=True)
class RidgeFit:
    """A round: b [outputs, p] and b0 [outputs], on the host."""

    b: np.ndarray
    constant: np.ndarray

    def predict(self, X: Any) -> Any:
        where = locate(X)
        return line(where.as_float64(X), self.b, self.constant, where)


class RidgeSmoother:
    """A penalty on rows that have been decomposed."""

    def __init__(self, rows: LearnerRows, l2: float) -> None:
        self.parts, self.l2 = decompose(rows.X, rows.weights, rows.where), l2
        self.X = rows.where.as_float64(rows.X)

    def fitted(self, t: Any) -> RidgeFit:
        host = self.parts.where.host
        b, constant = coefficients(self.parts, t, self.l2)
        return RidgeFit(host(b), host(constant))

    def smooth(self, learnt: RidgeFit) -> Any:
        return learnt.predict(self.X)

    def model(self, learnt: Sequence[RidgeFit], alphas: Any, start: np.ndarray) -> LinearModel:
        pairs = list(zip(alphas, learnt, strict=True))
        shape = (len(pairs), len(start), self.parts.Vt.shape[1])
        b = np.array([alpha * own.b for alpha, own in pairs]).reshape(shape)
        constants = np.array([alpha * own.constant for alpha, own in pairs]).reshape(shape[:2])
        return LinearModel(b, constants, start)
