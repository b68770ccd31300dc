"""A smoother that is given as its matrix."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.linalg import eigh
from ensemble_gpu.model.linear import LinearModel
from ensemble_gpu.smoothers.protocol import SmootherRows, Spectral

# Differences of S from its transpose, relative to its largest cell, that are rounding errors.
ASYMMETRY = 1e-10


class Precomputed(BaseEstimator):
    """X is the symmetric smoother S [n, n] itself: S y are the smoothed targets.

    Rows to predict are [m, n]: the weights that the smoother gives to the n training rows. Takes no
    sample weights and no criterion="cv".
    """

    pairwise = True

    def prepared(self, rows: SmootherRows) -> Spectral:
        S, where, xp = rows.X, rows.where, rows.where.xp
        n, p = S.shape
        if n != p:
            raise ValueError(
                f"Precomputed needs the smoother as X, a square matrix; got shape {(n, p)}."
            )
        if rows.weights is not None:
            raise ValueError("Precomputed takes no sample_weight; leave it out.")
        largest = float(xp.max(xp.abs(S)))
        off = float(xp.max(xp.abs(S - S.T)))
        if off > ASYMMETRY * largest:
            raise ValueError(
                f"Precomputed needs a symmetric matrix as X; cells differ from those of its "
                f"transpose by up to {off:.3g}. Use (S + S') / 2, or Neighbours for means of "
                "nearest rows."
            )
        eigenvalues, U = eigh((S + S.T) * 0.5, where)

        def model(tau: np.ndarray, penalty: int, start: float) -> LinearModel:
            targets = where.host(xp.matmul(U, where.put(np.ascontiguousarray(tau.T)))).T
            return LinearModel(targets[:, None, :], np.zeros((len(tau), 1)), np.array([start]))

        return Spectral(U, where.host(eigenvalues)[None, :], np.zeros(1), model)
