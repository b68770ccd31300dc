"""Losses over pairs of rows: i is to be ranked above j.

    R(F) = sum over pairs w_ij phi(F_i - F_j) / sum w_ij,    phi(v) = e^-v  or  ln(1 + e^-v)

A constant added to F changes nothing. Derivatives are those of n R / 2 with respect to single F_i,
n the weight of the rows: with them the second derivatives of rows that weigh 1 have the size that
they have in classification.

Pairs are given (`PairList`), or they are the rows of a query at different levels
(losses/by_query.py; losses/lambdas.py weighs them by ranks). Terms are added up as integers, so a
gradient does not depend on the order of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensemble_gpu.arrays.exponentials import LARGEST_EXPONENT, softplus
from ensemble_gpu.arrays.namespace import NUMPY, Where
from ensemble_gpu.kernels import exponential
from ensemble_gpu.losses.base import RANKING, Loss
from ensemble_gpu.model.link import IDENTITY


@dataclass(frozen=True, kw_only=True)
class PairLoss(Loss):
    """What losses over pairs have in common; y is part of the pairs."""

    task = RANKING
    link_name = IDENTITY
    by_row = False

    def best_constant(self, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """0: every constant is as good."""
        return np.zeros(1)


def integers(terms: Any, bits: int, where: Where) -> Any:
    """Terms in (0, 1] as int64 multiples of 2^-bits."""
    return where.xp.astype(where.xp.round(terms * 2.0**bits), where.xp.int64)


def sums_by_row(index: Any, terms: Any, n_rows: int, where: Where) -> Any:
    """Sums of int64 terms of the rows `index`, where the terms are: exact modulo 2^64."""
    xp = where.xp
    order = xp.argsort(index, stable=True)
    running = xp.cumulative_sum(xp.take(terms, order), dtype=xp.int64)
    running = xp.concat([where.zeros(1, xp.int64), running])
    rows = xp.arange(n_rows + 1, dtype=index.dtype, device=where.device)
    ends = xp.take(running, xp.searchsorted(xp.take(index, order), rows, side="left"))
    return ends[1:] - ends[:-1]


@dataclass(frozen=True)
class PairList:
    """Given pairs: `upper` is preferred to `lower`, positions of rows, with integer weights."""

    upper: Any
    lower: Any
    weights: Any
    total: int
    n_rows: int
    bits: int
    where: Where


@dataclass(frozen=True, kw_only=True)
class GivenPairs(PairLoss):
    """Losses of pairs that were given: a pass costs so many exponentials as there are pairs."""

    pairs: PairList = field(repr=False)

    def _margins(self, F: Any) -> Any:
        xp, pairs = self.pairs.where.xp, self.pairs
        return xp.take(F, pairs.upper) - xp.take(F, pairs.lower)

    def _sums(self, terms: Any) -> tuple[Any, Any]:
        """Sums of the terms in (0, 1] by upper and by lower row, times n / (2 sum of weights)."""
        pairs, where = self.pairs, self.pairs.where
        q = integers(terms, pairs.bits, where) * pairs.weights
        factor = pairs.n_rows / (2.0 * pairs.total)
        up, down = (
            where.as_float64(sums_by_row(rows, q, pairs.n_rows, where)) / 2.0**pairs.bits * factor
            for rows in (pairs.upper, pairs.lower)
        )
        return up, down


@dataclass(frozen=True, kw_only=True)
class PairExponential(GivenPairs):
    """phi(v) = e^-v of given pairs; terms are relative to the largest, e^D. |v| is cut at 532."""

    name = "exponential"
    longest_step = 4.0

    def terms(self, F: Any) -> tuple[Any, float]:
        """e^-v relative to the largest, and that one."""
        v, xp = self._margins(F), self.pairs.where.xp
        largest = min(max(-float(xp.min(v)), -LARGEST_EXPONENT), LARGEST_EXPONENT)
        terms = self.exp(xp.minimum(-v - largest, self.pairs.where.full(0.0)))
        return terms, float(exponential.exp(np.array([largest]), NUMPY)[0])

    def _parts(self, F: Any) -> tuple[Any, Any]:
        terms, scale = self.terms(F)
        up, down = self._sums(terms)
        return up * scale, down * scale

    def value(self, y: Any, F: Any) -> Any:
        return 2.0 * self._parts(F)[0]

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        up, down = self._parts(F)
        return down - up, down + up


@dataclass(frozen=True, kw_only=True)
class PairLogistic(GivenPairs):
    """phi(v) = ln(1 + e^-v) of given pairs; |v| is cut at 532."""

    name = "logistic"
    longest_step = 8.0

    def derivatives(self, y: Any, F: Any) -> tuple[Any, Any]:
        v, xp, full = self._margins(F), self.pairs.where.xp, self.pairs.where.full
        E = self.exp(xp.minimum(v, full(LARGEST_EXPONENT)))
        p = 1.0 / (1.0 + E)
        up, down = self._sums(p)
        more, rest = self._sums(p * (E * p))
        return down - up, more + rest

    def value(self, y: Any, F: Any) -> Any:
        v, xp = self._margins(F), self.pairs.where.xp
        v = xp.maximum(v, self.pairs.where.full(-LARGEST_EXPONENT))
        return 2048.0 * self._sums(softplus(-v, self.exp) / 1024.0)[0]
