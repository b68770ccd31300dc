"""Regularised linear models of any smooth loss: Newton's method, and FISTA for the L1 norm.

    R(B) = sum_i w_i l(y_i, B' a_i) + l2 |b|^2 + l1 |b|_1,    a_i = (x_i, 1)

b are the rows of B [p + 1, outputs] without the last one, the intercepts, which are not penalised.
Optimal: with G the gradient of the smooth part, G = 0 for an intercept and where l1 = 0; else
G_j = -l1 sign b_j, or |G_j| <= l1 where b_j = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from ensemble_gpu.arrays.linalg import solve_linear
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.losses import Loss

# Coefficients of several outputs that Newton's method takes together, 32 MB of second derivatives.
MOST_UNKNOWN = 2048
# A step that no curvature limits may be 1 / RIDGE times too long.
MOST_HALVINGS, MOST_DOUBLINGS = 120, 60
# Newton's method doubles the digits in a step: a few more cost nothing.
SHARPER = 1e-4
# A step of Newton's method is safe with this share of the largest curvature added.
RIDGE = 1e-12
# A sum of n rows is known to this share of it.
ROUNDING = 2.0**-40


@dataclass(frozen=True)
class Objective:
    """R without the L1 norm. `y` is [n], or [outputs, n] where every output has its own target."""

    loss: Loss
    A: Any
    y: Any
    weights: Any | None
    n_outputs: int
    l1: float
    l2: float
    where: Where

    @property
    def joint(self) -> bool:
        """Several outputs share a target: the loss takes F as [n, outputs]."""
        return self.y.ndim == 1 and self.n_outputs > 1

    def _argument(self, F: Any) -> Any:
        """F [n, outputs] as the loss takes it."""
        if self.joint:
            return F
        return F[:, 0] if self.y.ndim == 1 else self.where.xp.permute_dims(F, (1, 0))

    def _columns(self, derivative: Any) -> Any:
        """What the loss gives, weighted, as [n, outputs]."""
        d = derivative
        if not self.joint:
            d = d[:, None] if d.ndim == 1 else self.where.xp.permute_dims(d, (1, 0))
        return d if self.weights is None else self.weights[:, None] * d

    def value(self, B: Any) -> float:
        xp = self.where.xp
        value = self.loss.value(self.y, self._argument(xp.matmul(self.A, B)))
        value = xp.sum(value, axis=0) if value.ndim > 1 else value
        total = xp.sum(value if self.weights is None else self.weights * value)
        return float(total) + self.l2 * float(xp.sum(B[:-1, :] ** 2))

    def norm(self, B: Any) -> float:
        return self.l1 * float(self.where.xp.sum(self.where.xp.abs(B[:-1, :])))

    def penalised(self, B: Any) -> Any:
        """B with zeros for the intercepts."""
        xp = self.where.xp
        return xp.concat([B[:-1, :], xp.zeros_like(B[-1:, :])])

    def gradient(self, B: Any) -> Any:
        xp = self.where.xp
        g = self.loss.gradient(self.y, self._argument(xp.matmul(self.A, B)))
        return xp.matmul(self.A.T, self._columns(g)) + 2.0 * self.l2 * self.penalised(B)

    def derivatives(self, B: Any) -> tuple[Any, Any]:
        """Gradient [p + 1, outputs], and the Hessian, output after output, of all coefficients.

        Of the multinomial loss block (k, l) is A' diag(w p_k (1[k = l] - p_l)) A.
        """
        xp, where = self.where.xp, self.where
        g, h = self.loss.derivatives(self.y, self._argument(xp.matmul(self.A, B)))
        if self.n_outputs == 1:
            H = xp.matmul(self.A.T, self._columns(h) * self.A)
        else:
            classes = xp.arange(self.n_outputs, device=where.device)[None, :]
            H = self._joint_hessian(g + where.as_float64(self.y[:, None] == classes))
        one = self.penalised(xp.ones_like(B))
        flat = xp.reshape(xp.permute_dims(one, (1, 0)), (-1,))
        H = (
            H
            + xp.eye(flat.shape[0], dtype=xp.float64, device=where.device)
            * (2.0 * self.l2 * flat)[None, :]
        )
        return xp.matmul(self.A.T, self._columns(g)) + 2.0 * self.l2 * self.penalised(B), H

    def _joint_hessian(self, p: Any) -> Any:
        """Of probabilities p [n, K]."""
        xp, K = self.where.xp, self.n_outputs
        rows = []
        for k in range(K):
            own = p[:, k : k + 1]
            blocks = [
                xp.matmul(self.A.T, self._columns(own * (float(k == m) - p[:, m : m + 1])) * self.A)
                for m in range(K)
            ]
            rows.append(xp.concat(blocks, axis=1))
        return xp.concat(rows, axis=0)

    def violation(self, B: Any, G: Any) -> float:
        """The largest distance of -G from the subgradient of l1 |b|_1."""
        xp, where = self.where.xp, self.where
        slack = xp.maximum(xp.abs(G) - self.l1, where.full(0.0))
        off = xp.where(B == 0.0, slack, xp.abs(G + self.l1 * xp.sign(B)))
        return float(xp.max(xp.concat([off[:-1, :], xp.abs(G[-1:, :])])))


@dataclass(frozen=True)
class Solution:
    """B [p + 1, outputs], the steps that it took, and whether it is optimal to the tolerance."""

    B: Any
    n_steps: int
    converged: bool


def solve(problem: Objective, B: Any, most_steps: int, share: float) -> Solution:
    """The minimiser, from B on: outputs with targets of their own one by one.

    A gradient of this `share` of the one at B = 0 counts as none.
    """
    xp = problem.where.xp
    if problem.y.ndim == 1:
        return _solve(problem, B, most_steps, share)
    found = [
        _solve(replace(problem, y=problem.y[k, :], n_outputs=1), B[:, k : k + 1], most_steps, share)
        for k in range(problem.n_outputs)
    ]
    return Solution(
        xp.concat([one.B for one in found], axis=1), max(one.n_steps for one in found),
        all(one.converged for one in found),
    )  # fmt: skip


def _solve(problem: Objective, B: Any, most_steps: int, share: float) -> Solution:
    zero = problem.where.xp.zeros_like(B)
    scale = float(problem.where.xp.max(problem.where.xp.abs(problem.gradient(zero))))
    tolerance = share * max(scale, 1e-300)
    unknown = problem.A.shape[1] * problem.n_outputs
    if problem.l1 == 0.0 and (problem.n_outputs == 1 or unknown <= MOST_UNKNOWN):
        return newton(problem, B, tolerance, most_steps)
    return fista(problem, B, tolerance, most_steps)


def newton(problem: Objective, B: Any, tolerance: float, most_steps: int) -> Solution:
    """B <- B - t H^-1 G, t halved until R falls enough.

    Of several outputs R does not change where the same is added to all of them: steps have the
    mean 0.
    """
    where, xp = problem.where, problem.where.xp
    n, K = B.shape
    eye = xp.eye(n * K, dtype=xp.float64, device=where.device)
    value = problem.value(B)
    for step in range(most_steps):
        G, H = problem.derivatives(B)
        off = problem.violation(B, G)
        if off <= SHARPER * tolerance:
            return Solution(B, step, True)
        safe = RIDGE * max(float(xp.max(xp.abs(H))), 1e-300)
        flat = xp.reshape(xp.permute_dims(G, (1, 0)), (n * K, 1))
        D = xp.reshape(solve_linear(H + safe * eye, flat, where), (K, n))
        D = xp.permute_dims(D, (1, 0))
        D = D if K == 1 else D - xp.mean(D, axis=1, keepdims=True)
        slope, t = float(xp.sum(G * D)), 1.0
        if off <= tolerance and slope <= 2.0**-52 * abs(value):
            return Solution(B, step, True)  # nothing but rounding is left
        for _ in range(MOST_HALVINGS):
            after = problem.value(B - t * D)
            if after <= value - 1e-4 * t * slope:
                break
            t *= 0.5
        else:
            # nothing lowers R, nor is there more than rounding to gain
            return Solution(B, step, off <= tolerance or slope <= ROUNDING * abs(value))
        B, value = B - t * D, after
    return Solution(B, most_steps, False)


def fista(problem: Objective, B: Any, tolerance: float, most_steps: int) -> Solution:
    """Accelerated proximal gradient steps (Beck & Teboulle 2009), begun anew where they overshoot.

    Coordinates are scaled by the square root of sum_i w_i a_ij^2, so that the step suits all;
    the step's curvature L grows until the quadratic model is above R.
    """
    xp, weights = problem.where.xp, problem.weights
    squares = problem.A * problem.A
    sums = xp.sum(squares if weights is None else weights[:, None] * squares, axis=0)
    metric = xp.where(sums > 0.0, sums, xp.ones_like(sums))[:, None]
    L = problem.loss.curvature or 1.0
    Y, t, value = B, 1.0, math.inf
    for step in range(most_steps):
        G, at = problem.gradient(Y), problem.value(Y)
        if problem.violation(Y, G) <= tolerance:
            return Solution(Y, step, True)
        for _ in range(MOST_DOUBLINGS):
            curvature = L * metric + 2.0 * problem.l2
            new = _shrunk(problem, Y - G / curvature, problem.l1 / curvature)
            D = new - Y
            model = at + float(xp.sum(G * D)) + 0.5 * float(xp.sum(curvature * D * D))
            after = problem.value(new)
            if after <= model + 1e-12 * abs(model):
                break
            L *= 2.0
        total = after + problem.norm(new)
        if total > value:  # overshot
            Y, t, value = B, 1.0, math.inf
            continue
        longer = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        Y, B, t, value = new + ((t - 1.0) / longer) * (new - B), new, longer, total
    return Solution(B, most_steps, False)


def _shrunk(problem: Objective, B: Any, by: Any) -> Any:
    """Coefficients nearer to 0 by so much; intercepts as they are."""
    xp = problem.where.xp
    size = xp.maximum(xp.abs(B) - by, xp.zeros_like(B))
    return xp.concat([(xp.sign(B) * size)[:-1, :], B[-1:, :]])
