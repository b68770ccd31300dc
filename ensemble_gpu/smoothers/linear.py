"""Ridge regression and least squares as smoothers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.linalg import svd
from ensemble_gpu.data.parameters import check_flag, check_not_negative
from ensemble_gpu.learners.ridge import EPSILON, decompose
from ensemble_gpu.learners.ridge import Ridge as RidgeLearner
from ensemble_gpu.model.linear import LinearModel
from ensemble_gpu.smoothers.protocol import SmootherRows, Spectral, as_penalties


class Ridge(RidgeLearner):
    """Ridge regression of centred columns, X~ = W^1/2 (X - mean) = U diag(s) V'.

        S y = U diag(s^2 / (s^2 + l2)) U' y;    slopes b = V diag(s / (s^2 + l2)) U' y

    Also a weak learner for `estimator=` of BoostingClassifier and BoostingRegressor, with one l2.

    Parameters
    ----------
    l2 : float >= 0 or a list of them, default=1.0
        The penalty l2 |b|^2. Of several the criterion chooses, from one decomposition.
    """

    def __init__(self, l2: Any = 1.0) -> None:
        self.l2 = l2

    def prepared(self, rows: SmootherRows) -> Spectral:
        penalties = as_penalties("l2", self.l2, check_not_negative)
        parts = decompose(rows.X, rows.weights, rows.where)
        host = rows.where.host
        return _spectral(parts.U, host(parts.s), host(parts.Vt), host(parts.mean), penalties)


class Linear(BaseEstimator):
    """Least squares; with componentwise=True one column a round.

    All columns at once: S is the projection on them, with eigenvalues 1 (S y = X b). A column a
    round: S_j y = x_j (x_j' y) / |x_j|^2.

    Parameters
    ----------
    center : bool, default=True
        Columns without their means. False: columns as they are, and a column of ones with them.
    groups : list of lists of columns, or None, default=None
        For componentwise=True: the columns of a group are fitted together. None: each by itself.
    """

    def __init__(self, *, center: bool = True, groups: Any = None) -> None:
        self.center = center
        self.groups = groups

    def prepared(self, rows: SmootherRows) -> Spectral:
        check_flag("center", self.center)
        if self.groups is not None:
            raise ValueError(
                f"groups={self.groups!r} need componentwise=True: without it all columns are "
                "fitted together."
            )
        host, xp = rows.where.host, rows.where.xp
        none = np.zeros(1)
        if self.center:
            parts = decompose(rows.X, rows.weights, rows.where)
            return _spectral(parts.U, host(parts.s), host(parts.Vt), host(parts.mean), none)
        X = xp.concat([xp.ones_like(rows.X[:, :1]), rows.X], axis=1)
        U, s, Vt = svd(rows.weighted(X), rows.where)
        s, Vt = host(s), host(Vt)
        rank = int((s > EPSILON * max(X.shape) * s[0]).sum())
        U, s, Vt = U[:, :rank], s[:rank], Vt[:rank]

        def model(tau: np.ndarray, penalty: int, start: float) -> LinearModel:
            b = (tau / s) @ Vt
            return LinearModel(b[:, None, 1:], b[:, :1], np.array([start]))

        return Spectral(U, np.ones((1, rank)), none, model)


def _spectral(
    U: Any, s: np.ndarray, Vt: np.ndarray, mean: np.ndarray, penalties: np.ndarray
) -> Spectral:
    def model(tau: np.ndarray, penalty: int, start: float) -> LinearModel:
        b = (tau * (s / (s * s + penalties[penalty]))) @ Vt
        return LinearModel(b[:, None, :], -(b @ mean)[:, None], np.array([start]))

    return Spectral(U, s * s / (s * s + penalties[:, None]), penalties, model)
