"""The training rows of a ball: derivatives as integers, and a sample's second derivatives.

    R(F) = sum_i w_i l(y_i, F_i) / W,    W = sum_i w_i
    c_h = -dR/d(coefficient of h) = -sum_i w_i g_i h_i / W,    g_i = l'(y_i, F_i)

w are integers (sample weights in units of 2^-28 of their sum, unless they are whole), g_i is
rounded to a multiple of a unit so small that all sums fit 58 bits. So c_h is the sum of integers,
the same on every engine, and within unit / 2 of its true value, as |h| <= 1.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.boosting.integers import unit_of
from ensemble_gpu.boosting.problem import Problem
from ensemble_gpu.data.integers import weights_and_unit
from ensemble_gpu.kernels.protocol import Engine
from ensemble_gpu.losses import Multinomial

SUM_BITS, WEIGHT_BITS = 58, 28
# Rows of which second derivatives are taken; with fewer all of them are.
SAMPLE = 1 << 13
# Bits of a second derivative: with those of weights sums are exact in float64.
CURVE_BITS = 20
# Relative rounding of a derivative.
ROUNDING = 2.0**-45


@dataclass(frozen=True)
class Derivatives:
    """-w g as integers [output, row]: c = sum q h times `unit`, within `error` of the true one."""

    q: Any
    unit: float
    error: float


@dataclass(frozen=True)
class Curvatures:
    """d2l / dF_k dF_l at some rows, in units: `h` [k, row] for l = k; else 0, or -p_k p_l of `p`.

    The weights are integers, and so are second derivatives in units.
    """

    h: np.ndarray
    p: np.ndarray | None
    weights: np.ndarray
    unit: float

    @property
    def scale(self) -> float:
        """Sums over the rows times this are means."""
        return self.unit / (float(self.weights.sum()) or 1.0)

    def outputs(self, k: int) -> np.ndarray:
        """The l where second derivatives are not 0."""
        return np.array([k]) if self.p is None else np.arange(len(self.h))

    def of(self, k: int) -> np.ndarray:
        """[l, row] of those outputs, times the weights."""
        if self.p is None:
            return (self.h[k] * self.weights)[None, :]
        planes = np.rint(self.p[k] * self.p * (-1.0 / self.unit))
        planes[k] = self.h[k]
        return planes * self.weights

    def same(self, other: Curvatures | None) -> bool:
        """Whether Q is the same."""
        return (
            other is not None and self.p is None and self.unit == other.unit
            and np.array_equal(self.h, other.h)
        )  # fmt: skip


class BallRows:
    """Rows with a loss, as a ball sees them. F is [output, row] in the engine's namespace."""

    def __init__(self, engine: Engine, problem: Problem) -> None:
        self.engine = engine
        weights, _ = weights_and_unit(problem.weights, WEIGHT_BITS, engine)
        self.weights = weights
        where, xp = engine.where, engine.where.xp
        self.problem = replace(
            problem,
            loss=replace(problem.loss, exp=engine.exp),
            weights=None if weights is None else where.as_float64(weights),
        )
        self.n = problem.y.shape[-1]
        self.total = self.n if weights is None else int(xp.sum(weights))
        self.bits = SUM_BITS - max(self.total - 1, 1).bit_length()
        at = np.arange(min(self.n, SAMPLE)) * self.n // min(self.n, SAMPLE)
        self.sample = where.put(at.astype(np.int64))
        self.sampled = self.n > SAMPLE
        self.sample_weights = None
        if weights is not None:
            self.sample_weights = where.host(xp.take(weights, self.sample)).astype(np.float64)

    def from_multiples_of(self, quantum: float) -> BallRows:
        """The same with constants that sums of such numbers are exact with."""
        start = np.rint(self.problem.start / quantum) * quantum
        rows = copy(self)
        rows.problem = replace(self.problem, start=start)
        return rows

    def start(self) -> Any:
        """F of the constants that the model begins with."""
        where = self.engine.where
        constants = where.put(self.problem.start)[:, None]
        return where.zeros((len(self.problem.start), self.n), where.xp.float64) + constants

    def loss(self, F: Any) -> float:
        """R(F)."""
        return self.problem.mean_loss(F)

    def held_out_loss(self, F: Any, weights: Any) -> float:
        """The mean with other weights, of rows that take no part."""
        return replace(self.problem, weights=weights).mean_loss(F)

    def derivatives(self, F: Any) -> Derivatives:
        """All derivatives at F, rounded."""
        engine, xp = self.engine, self.engine.where.xp
        parts = engine.by_block(lambda rows: self._gradient(F, rows), self.n)
        top = max(float(top) for _, top in parts)
        if not np.isfinite(top):
            raise ValueError(
                f"loss {self.problem.loss.name!r} gave a derivative that is not finite; a loss "
                "must be finite for every finite y and F."
            )
        unit = unit_of(top, self.bits) or 1.0
        q = engine.by_block(lambda rows: self._rounded(parts, rows, unit), self.n)
        whole = q[0] if len(q) == 1 else xp.concat(q, axis=1)
        return Derivatives(whole, unit / self.total, 0.5 * unit + ROUNDING * top)

    def _gradient(self, F: Any, rows: slice) -> tuple[Any, Any]:
        problem, xp = self.problem, self.engine.where.xp
        y, argument = problem.y[..., rows], problem.argument(F[:, rows])
        g = problem.in_outputs(self.engine.derivatives(problem.loss, y, argument)[0])
        if self.weights is not None:  # rows that take no part do not set the unit
            g = xp.where((self.weights[rows] > 0)[None, :], g, xp.zeros_like(g))
        return (rows, g), xp.maximum(xp.max(g), -xp.min(g))

    def _rounded(self, parts: list[Any], rows: slice, unit: float) -> Any:
        xp = self.engine.where.xp
        g = next(g for (own, g), _ in parts if own == rows)
        q = xp.astype(xp.round(g * (-1.0 / unit)), xp.int64)
        return q if self.weights is None else q * self.weights[rows][None, :]

    def curvatures(self, F: Any) -> Curvatures:
        """Second derivatives at the sample."""
        problem, where, xp = self.problem, self.engine.where, self.engine.where.xp
        own = xp.take(F, self.sample, axis=1)
        y = xp.take(problem.y, self.sample, axis=problem.y.ndim - 1)
        g, h = self.engine.derivatives(problem.loss, y, problem.argument(own))
        h, p = np.maximum(where.host(problem.in_outputs(h)), 0.0), None
        if isinstance(problem.loss, Multinomial):
            p = where.host(problem.in_outputs(g))
            p = p + (where.host(y)[None, :] == np.arange(len(p))[:, None])
        weights = self.sample_weights
        if weights is None:
            weights = np.ones(h.shape[1])
        present = weights > 0.0
        unit = unit_of(float(np.where(present, h, 0.0).max()), CURVE_BITS) or 1.0
        return Curvatures(np.rint(h * (1.0 / unit)), p, weights, unit)
