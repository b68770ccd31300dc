"""Penalised natural cubic splines of one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.linalg import svd
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.parameters import check_integer, check_not_negative, check_real
from ensemble_gpu.model.spline import SplineModel, natural, root_of_roughness, second_derivatives
from ensemble_gpu.smoothers.protocol import SmootherRows, Spectral, as_penalties, check_memory

# Knots of a feature where one feature is fitted a round.
FEW_KNOTS = 20


class Spline(BaseEstimator):
    """A natural cubic spline: min over g of sum_i w_i (y_i - g(x_i))^2 + penalty integral g''^2.

        S = N (N' W N + a Q)^-1 N' W,    eigenvalues 1 / (1 + a gamma), two of them 1

    N are the splines that are 1 at one knot and 0 at the others, Q their roughness, gamma the
    eigenvalues of Q against N' W N. With knots at all distinct values it is the smoothing spline.
    X has one feature; with componentwise=True one feature is fitted a round, by a spline without
    its mean, whose trace is one less.

    Parameters
    ----------
    df : float >= 2 or a list of them, default=4.0
        The trace of S (up to the number of knots). Of several the criterion chooses.
    penalty : float >= 0 or None, default=None
        In place of df: the penalty itself, in units of x.
    n_knots : int >= 3 or None, default=None
        Knots at quantiles of the distinct values. None: at all of them; at most 20 with
        componentwise=True.
    """

    def __init__(self, df: Any = 4.0, *, penalty: Any = None, n_knots: int | None = None) -> None:
        self.df = df
        self.penalty = penalty
        self.n_knots = n_knots

    def _check(self) -> None:
        check_integer("n_knots", self.n_knots, 3, others=(None,))
        if self.penalty is None:
            as_penalties("df", self.df, _check_df)
        else:
            as_penalties("penalty", self.penalty, check_not_negative)

    def prepared(self, rows: SmootherRows) -> Spectral:
        self._check()
        p = rows.X.shape[1]
        if p != 1:
            raise ValueError(
                f"Spline smooths one feature, and X has {p}: use componentwise=True, which takes "
                "one feature a round, or KernelRidge."
            )
        basis = decomposed(rows, 0, self.n_knots)
        if basis is None:
            raise ValueError(
                "Spline needs a feature with 2 distinct values or more; that of X has 1 (n_samples "
                f"= {rows.X.shape[0]})."
            )
        penalties = self.scaled(basis)
        eigenvalues = 1.0 / (1.0 + penalties[:, None] * basis.gamma)

        def model(tau: np.ndarray, penalty: int, start: float) -> SplineModel:
            return SplineModel(
                features=[0], knots=[basis.knots], terms=np.zeros(len(tau)),
                values=(tau * eigenvalues[penalty]) @ basis.back.T, constants=np.zeros(len(tau)),
                intercept=[start], n_features=1,
            )  # fmt: skip

        return Spectral(basis.U, eigenvalues, penalties * basis.unit, model)

    def scaled(self, basis: SplineBasis) -> np.ndarray:
        """Penalties in the units of `basis`."""
        if self.penalty is not None:
            return as_penalties("penalty", self.penalty, check_not_negative) / basis.unit
        wanted = as_penalties("df", self.df, _check_df)
        return np.array([penalty_of(one, basis.gamma) for one in wanted])


def _check_df(name: str, value: Any) -> None:
    check_real(name, value, 0.0)
    if value < 2.0:
        raise ValueError(f"{name} must be a number >= 2, the df of a line; got {value!r}.")


@dataclass(frozen=True)
class SplineBasis:
    """Orthonormal U [n, K] = W^1/2 N `back` of a feature, of roughness gamma [K].

    `back` [K, K] turns coefficients of U into values at the knots (host). Distances are measured
    in the range of the feature: penalty = `unit` times a.
    """

    U: Any
    gamma: np.ndarray
    back: np.ndarray
    knots: np.ndarray
    unit: float


def decomposed(rows: SmootherRows, feature: int, n_knots: int | None) -> SplineBasis | None:
    """The splines of a feature; None where it is constant."""
    where, xp = rows.where, rows.where.xp
    x = rows.X[:, feature]
    knots = _knots(where.host(x), n_knots)
    if len(knots) < 2:
        return None
    check_memory(len(knots), "Spline(n_knots=1000)")
    span = knots[-1] - knots[0]
    units = (knots - knots[0]) / span
    N = _basis(x, knots, where)
    weighted = rows.weighted(N)
    L = np.linalg.cholesky(where.host(xp.matmul(weighted.T, weighted)))
    inverse = np.linalg.inv(L)
    # Singular values of the root keep the digits of small gamma, which its square would lose.
    C = np.ascontiguousarray(root_of_roughness(units) @ inverse.T)
    gamma, V = np.zeros(len(knots)), np.eye(len(knots))
    if len(C):
        _, s, Vt = svd(where.put(C), where, full_matrices=True)
        gamma[:-2] = where.host(s) ** 2  # the last two are lines, which are not rough
        V = where.host(Vt).T
    back = inverse.T @ V
    U = xp.matmul(weighted, where.put(np.ascontiguousarray(back)))
    return SplineBasis(U, gamma, back, knots, float(span**3))


def _knots(x: np.ndarray, n_knots: int | None) -> np.ndarray:
    """Distinct values, or those at `n_knots` even positions among them."""
    distinct = np.unique(x)
    if n_knots is None or len(distinct) <= n_knots:
        return distinct
    at = np.linspace(0, len(distinct) - 1, int(n_knots)).round().astype(np.int64)
    return distinct[at]


def _basis(x: Any, knots: np.ndarray, where: Where) -> Any:
    """N [n, K]."""
    values = where.put(np.eye(len(knots)))
    return natural(x, knots, values, where.put(second_derivatives(knots)), where)


def penalty_of(df: float, gamma: np.ndarray) -> float:
    """The a with sum 1 / (1 + a gamma) = df, by bisection of ln a; 0 where df is the most."""
    if df >= len(gamma):
        return 0.0
    rough = gamma[gamma > 0.0]
    flat = len(gamma) - len(rough)
    if df <= flat:
        return 1e12 / float(rough.min())
    low, high = -np.log(rough.max()) - 40.0, -np.log(rough.min()) + 40.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if flat + (1.0 / (1.0 + np.exp(middle) * rough)).sum() > df:
            low = middle
        else:
            high = middle
    return float(np.exp(0.5 * (low + high)))
