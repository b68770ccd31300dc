"""Natural cubic splines: F(x) = c + sum over terms f of g_f(x_f), g_f a cubic between knots.

Values v at the knots t determine g: its second derivatives m there solve R m = D v, are 0 at the
first and the last knot, and g is linear beyond them (Green & Silverman 1994, section 2.1):

    D v = differences of slopes,    R = tridiagonal, (h_i + h_i+1) / 3 and h_i+1 / 6.
    integral of g''^2 = v' D' R^-1 D v.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solveh_banded

from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.model.base import (
    Model,
    canonical_bytes,
    check_array,
    check_length,
    check_range,
    read_only,
)
from ensemble_gpu.model.inputs import rows_at_work
from ensemble_gpu.model.stages import stages


def second_derivatives(knots: np.ndarray) -> np.ndarray:
    """The matrix M [K, K] of m = M v."""
    k = len(knots)
    inner = np.zeros((k, k))
    if k > 2:
        D, R = _slopes(knots)
        inner[1:-1] = np.linalg.solve(R, D)
    return inner


def bends(knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """m = M v [K, s] of values [K, s], from the three diagonals of R: memory of K numbers."""
    m = np.zeros_like(values)
    if len(knots) > 2:
        h = np.diff(knots)
        bands = np.stack([np.append(0.0, h[1:-1] / 6.0), (h[:-1] + h[1:]) / 3.0])
        m[1:-1] = solveh_banded(
            bands[-len(h) + 1 :], np.diff(np.diff(values, axis=0) / h[:, None], axis=0)
        )
    return m


def root_of_roughness(knots: np.ndarray) -> np.ndarray:
    """C [K - 2, K] with C' C = D' R^-1 D: the integral of g''^2 is |C v|^2."""
    D, R = _slopes(knots)
    return np.linalg.solve(np.linalg.cholesky(R), D) if len(R) else D


def _slopes(knots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """D [K - 2, K] and R [K - 2, K - 2]."""
    h, k = np.diff(knots), len(knots)
    at = np.arange(k - 2)
    D, R = np.zeros((k - 2, k)), np.zeros((k - 2, k - 2))
    D[at, at], D[at, at + 2] = 1.0 / h[:-1], 1.0 / h[1:]
    D[at, at + 1] = -1.0 / h[:-1] - 1.0 / h[1:]
    R[at, at] = (h[:-1] + h[1:]) / 3.0
    R[at[:-1], at[1:]] = R[at[1:], at[:-1]] = h[1:-1] / 6.0
    return D, R


def natural(x: Any, knots: np.ndarray, values: Any, second: Any, where: Where) -> Any:
    """Natural splines at x [n] from values and second derivatives [K, s] at the knots: [n, s]."""
    xp, last = where.xp, len(knots) - 1
    t = where.put(knots)
    low, high = (where.full(float(knots[i])) for i in (0, last))
    inside = xp.minimum(xp.maximum(x, low), high)
    right = xp.searchsorted(t, inside)  # at least 1, at most the last
    right = xp.minimum(xp.maximum(right, xp.ones_like(right)), xp.full_like(right, last))
    a, b = right - 1, right
    t_a, t_b = xp.take(t, a), xp.take(t, b)
    h = (t_b - t_a)[:, None]
    A, B = (t_b - inside)[:, None] / h, (inside - t_a)[:, None] / h
    v_a, v_b = xp.take(values, a, axis=0), xp.take(values, b, axis=0)
    m_a, m_b = xp.take(second, a, axis=0), xp.take(second, b, axis=0)
    g = A * v_a + B * v_b + ((A * A * A - A) * m_a + (B * B * B - B) * m_b) * (h * h / 6.0)
    slope = (v_b - v_a) / h - xp.where(x[:, None] < low, m_b, -m_a) * (h / 6.0)
    return g + slope * (x - inside)[:, None]


@dataclass(frozen=True)
class Shape:
    """What a feature adds to F: values at knots of a natural cubic spline."""

    knots: np.ndarray
    values: np.ndarray

    def __call__(self, x: Any) -> np.ndarray:
        """The contribution of host values x [n]."""
        x = np.asarray(x, dtype=np.float64)
        values = self.values[:, None]
        return natural(x, self.knots, values, bends(self.knots, values), NUMPY)[:, 0]


class SplineModel(Model):
    """An immutable sum of natural cubic splines, one a term; call it with arrays of any library.

    Parameters
    ----------
    features : array [terms]: the feature of each term
    knots : list of arrays, ascending, one a term
    terms : array [rounds]: the term that a round adds to
    values : array [rounds, most knots]: what it adds at the knots (the rest is not read)
    constants : array [rounds]: what it adds besides
    intercept : array [1]
    n_features : int
    """

    _format = b"ensemble_gpu.SplineModel.1"
    n_outputs = 1

    features: np.ndarray
    knots: tuple[np.ndarray, ...]
    terms: np.ndarray
    values: np.ndarray
    constants: np.ndarray
    intercept: np.ndarray
    n_features: int

    def __init__(
        self, *, features: Any, knots: Sequence[Any], terms: Any, values: Any, constants: Any,
        intercept: Any, n_features: int,
    ) -> None:  # fmt: skip
        self._assign(
            features=read_only(features, np.int64),
            knots=tuple(read_only(t, np.float64) for t in knots),
            terms=read_only(terms, np.int64),
            values=read_only(values, np.float64),
            constants=read_only(constants, np.float64),
            intercept=read_only(intercept, np.float64),
            n_features=int(n_features),
        )
        self._check()

    def _check(self) -> None:
        """Raise where an array would be left."""
        n, n_terms = len(self.terms), len(self.knots)
        check_array("features", self.features, (n_terms,))
        check_range("features", self.features, 0, self.n_features - 1)
        check_range("terms", self.terms, 0, n_terms - 1)
        check_array("constants", self.constants, (n,))
        check_array("intercept", self.intercept, (1,))
        check_array("terms", self.terms, (n,))
        check_array("values", self.values, (n, None))
        for t in self.knots:
            check_array("knots", t, (None,))
            if not 2 <= len(t) <= self.values.shape[1] + 2 * (n == 0) or (np.diff(t) <= 0).any():
                raise ValueError(
                    f"knots must ascend, 2 to {self.values.shape[1]} of them; got {len(t)}."
                )

    def __getstate__(self) -> dict[str, Any]:
        names = ("features", "knots", "terms", "values", "constants", "intercept", "n_features")
        return {name: getattr(self, name) for name in names}

    def __len__(self) -> int:
        return len(self.terms)

    def __repr__(self) -> str:
        used = len(np.unique(self.terms))
        return f"SplineModel({len(self)} round(s) on {used} of {self.n_features} features)"

    def first(self, n_rounds: int) -> SplineModel:
        """The model of the first n rounds (of all, where there are fewer)."""
        check_length("n_rounds", n_rounds)
        rounds = {name: getattr(self, name)[:n_rounds] for name in ("terms", "values", "constants")}
        return SplineModel(**{**self.__getstate__(), **rounds})

    def _canonical(self) -> Iterator[bytes]:
        sizes = [len(t) for t in self.knots]
        yield canonical_bytes([*self.values.shape, self.n_features, *sizes])
        for array in (self.features, *self.knots, self.terms, self.values, self.constants):
            yield canonical_bytes(array)
        yield canonical_bytes(self.intercept)

    def shape_function(self, feature: int) -> Shape:
        """What feature `feature` adds to F; zero where no round uses it."""
        found = np.flatnonzero(self.features == feature)
        if not len(found):
            return Shape(np.array([0.0, 1.0]), np.zeros(2))
        (term,) = found
        knots, own = self.knots[term], self.terms == term
        constant = self.constants[own].sum()
        return Shape(knots, self.values[own, : len(knots)].sum(axis=0) + constant)

    def __call__(self, X: Any, n_jobs: int | None = None) -> Any:
        """F(X) as float64 [n, 1], in the namespace and on the device of X."""
        (F,) = self.staged(X, [len(self)])
        return F

    def staged(
        self, X: Any, rounds: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Iterator[Any]:
        """F after each round, starting with the first, or after the chosen ones (ascending)."""
        X, source, where = rows_at_work(X, self.n_features)
        F = where.zeros((X.shape[0], 1), where.xp.float64) + where.put(self.intercept)[None, :]
        for first, last in stages(rounds, len(self)):
            for term in np.unique(self.terms[first:last]).tolist():
                knots = self.knots[term]
                own = first + np.flatnonzero(self.terms[first:last] == term)
                v = self.values[own, : len(knots)].sum(axis=0) + self.constants[own].sum()
                x = where.as_float64(X[:, int(self.features[term])])
                v = v[:, None]
                m = bends(knots, v)
                F = F + natural(x, knots, where.put(v), where.put(m), where)
            yield source.hand_over(F + 0.0)  # a copy: the caller may write to it
