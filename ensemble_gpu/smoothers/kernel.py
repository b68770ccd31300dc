"""Kernel ridge regression with a Gaussian kernel, exact or by Nystroem's low rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.linalg import eigh, svd
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.parameters import check_integer, check_real
from ensemble_gpu.model.kernel import KernelModel, gaussian, squared_distances
from ensemble_gpu.smoothers.protocol import SmootherRows, Spectral, as_penalties, check_memory

EPSILON = 2.0**-52
NYSTROEM = "KernelRidge(rank=1000), Nystroem's approximation of rank 1000, 8 n rank bytes"
# Rows whose distances decide width="median".
MEDIAN_ROWS = 1000


class KernelRidge(BaseEstimator):
    """Kernel ridge regression with k(x, z) = exp(-|x - z|^2 / (2 width^2)).

        S = K (K + ridge W^-1)^-1,    eigenvalues d / (d + ridge), d those of W^1/2 K W^1/2

    minimises sum_i w_i (y_i - f(x_i))^2 + ridge |f|^2. A new row has f(x) = sum_i a_i k(x, x_i).

    Parameters
    ----------
    width : float > 0 or "median", default="median"
        "median": the median distance of rows that differ (of at most 1,000 rows).
    ridge : float > 0 or a list of them, default=1.0
        Larger is weaker. Of several the criterion chooses, from one decomposition.
    rank : int or None, default=None
        None decomposes the kernel matrix, 32 n^2 bytes. A number is Nystroem's: the kernel is
        K_nr K_rr^-1 K_rn with that many rows as centres, drawn once for a number of rows; time
        n rank^2. With all rows it is the exact answer.
    """

    def __init__(self, width: Any = "median", ridge: Any = 1.0, *, rank: int | None = None) -> None:
        self.width = width
        self.ridge = ridge
        self.rank = rank

    def prepared(self, rows: SmootherRows) -> Spectral:
        check_real("width", self.width, 0.0, others=("median",))
        ridges = as_penalties("ridge", self.ridge, lambda name, one: check_real(name, one, 0.0))
        check_integer("rank", self.rank, 1, others=(None,))
        width = median_distance(rows) if self.width == "median" else float(self.width)
        if width * width == 0.0:
            raise ValueError(f"width must be a number whose square is > 0; got {width!r}.")
        n = rows.X.shape[0]
        if self.rank is not None and int(self.rank) < n:
            centres = np.sort(np.random.default_rng(0).permutation(n)[: int(self.rank)])
            return _low_rank(rows, centres, width, ridges)
        check_memory(n, NYSTROEM)
        return _exact(rows, width, ridges)


def _exact(rows: SmootherRows, width: float, ridges: np.ndarray) -> Spectral:
    where, xp = rows.where, rows.where.xp
    K = gaussian(rows.X, rows.X, width, where)
    root = rows.root
    if root is not None:
        K = root * K * root.T
    d, U = eigh((K + K.T) * 0.5, where)
    d = np.maximum(where.host(d), 0.0)
    centres = where.host(rows.X)

    def model(tau: np.ndarray, penalty: int, start: float) -> KernelModel:
        a = where.put(np.ascontiguousarray((tau / (d + ridges[penalty])).T))
        coefficients = where.host(rows.weighted(xp.matmul(U, a))).T
        return KernelModel(centres, coefficients, width, np.array([start]))

    return Spectral(U, d / (d + ridges[:, None]), ridges, model)


def _low_rank(
    rows: SmootherRows, centres: np.ndarray, width: float, ridges: np.ndarray
) -> Spectral:
    """Phi = K_nr K_rr^-1/2 has Phi Phi' = K_nr K_rr^-1 K_rn; W^1/2 Phi = U diag(s) V', d = s^2."""
    where, xp = rows.where, rows.where.xp
    Z = xp.take(rows.X, where.put(centres), axis=0)
    K = gaussian(Z, Z, width, where)
    e, P = eigh((K + K.T) * 0.5, where)
    e = where.host(e)
    kept = int((e > EPSILON * len(e) * e[-1]).sum())  # ascending
    whiten = P[:, len(e) - kept :] / xp.sqrt(where.put(e[len(e) - kept :].copy()))[None, :]
    phi = xp.matmul(gaussian(rows.X, Z, width, where), whiten)
    U, s, Vt = svd(rows.weighted(phi), where)
    s = where.host(s)
    back = where.host(xp.matmul(whiten, Vt.T))
    kept_rows = where.host(Z)

    def model(tau: np.ndarray, penalty: int, start: float) -> KernelModel:
        coefficients = (tau * (s / (s * s + ridges[penalty]))) @ back.T
        return KernelModel(kept_rows, coefficients, width, np.array([start]))

    return Spectral(U, s * s / (s * s + ridges[:, None]), ridges, model)


def median_distance(rows: SmootherRows) -> float:
    """The median distance of rows that differ, pairs weighted by w_i w_j; 1 where none do."""
    where, n = rows.where, rows.X.shape[0]
    at = np.arange(n) if n <= MEDIAN_ROWS else np.linspace(0, n - 1, MEDIAN_ROWS).astype(np.int64)
    X = where.xp.take(rows.X, where.put(at), axis=0)
    apart = where.host(squared_distances(X, X, where))
    w = np.ones(n) if rows.weights is None else where.host(rows.weights)
    return _weighted_median(apart, np.outer(w[at], w[at]), _scale(X, where))


def _scale(X: Any, where: Where) -> float:
    """Squared distances below this are rounding errors."""
    low, high = (where.host(f(X, axis=0)) for f in (where.xp.min, where.xp.max))
    return 64.0 * EPSILON * float(((high - low) ** 2).sum())


def _weighted_median(squares: np.ndarray, weights: np.ndarray, least: float) -> float:
    above = squares > least
    if not above.any():
        return 1.0
    values, w = squares[above], weights[above]
    order = np.argsort(values)
    share = np.cumsum(w[order])
    return float(np.sqrt(values[order][np.searchsorted(share, 0.5 * share[-1])]))
