"""The whole path of the lasso over a dictionary, from knot to knot (Efron et al. 2004).

    min over b of sum_i w_i (y_i - A_i b)^2 / (2 n) + alpha |b|_1,    n = sum w

With c = A' W r and C = max |c| = n alpha, the active columns have |c_j| = C and signs s_j, and move
by d = (A_a' W A_a)^-1 s. With u = A_a d and a = A' W u a step gamma leads to C - gamma, c - gamma a
and b_a + gamma d. It ends where an inactive column reaches the bound,

    gamma = (C - c_j) / (1 - a_j)    or    (C + c_j) / (1 + a_j),

where an active coefficient reaches 0, gamma = -b_j / d_j, or at C = 0. Where coefficients must not
be negative C is max c, and only c_j = C is a bound. A column whose correlation
falls as fast as C does (a_j = 1: it equals an active one) never joins, nor does one that has just
left (a_j > 1). Where columns tie, steps of length 0 find which of them move: one that would move
against its sign leaves again, and the lowest index comes first, which ends (Murty 1974).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ensemble_gpu.paths.columns import Columns
from ensemble_gpu.paths.knots import Knots, Limits

# A correlation falls as fast as C where 1 - a is below this.
SAME = 1e-10
# A column is in the span of the others where this share of its square is left.
COLLINEAR = 1e-13
# Events within this share of the first alpha of each other tie.
TIE = 1e-12
# Steps of length 0 in a row, besides four an active column.
MOST_STILL = 100
# Knots after which c is computed from the coefficients again.
REFRESH = 8


def homotopy(A: Columns, r: Any, limits: Limits) -> Knots:
    """The knots from b = 0, of targets r [n]."""
    state = _State(A, r)
    found = [state.knot()]
    while not state.done and not limits.reached(found[-1][2], len(found)):
        if state.step() > 0.0:
            found.append(state.knot())
    alphas, columns, values = zip(*found, strict=True)
    shifts = [-float(b @ A.means[own]) for own, b in zip(columns, values, strict=True)]
    return Knots(
        np.array(alphas), list(columns), list(values), np.array(shifts), state.C == 0.0
    )  # fmt: skip


class _State:
    """Correlations at a knot; the active columns, their signs, coefficients and Cholesky factor.

    Rows are touched once a column that joins, for g_j = A' W A_j: then a = sum d_j g_j, and c,
    which follows a, is now and then the first c minus sum b_j g_j, so that it does not drift.
    """

    def __init__(self, A: Columns, r: Any) -> None:
        self.A, self.n = A, A.rows.total
        self.start = self.c = A.correlations(r)
        size = np.max([sign * self.c for sign in A.signs], axis=0)
        self.first = self.C = max(0.0, float(size.max(initial=0.0)))
        self.active: list[int] = []
        self.signs, self.b = np.zeros(0), np.zeros(0)
        self.L: np.ndarray = np.zeros((0, 0))
        self.place: dict[int, int] = {}  # of a column among those that were ever active
        self.products: np.ndarray = np.zeros((16, len(self.c)))
        self.steps, self.still, self.done = 0, 0, self.C == 0.0
        if not self.done:
            self._join(int(np.argmax(size >= self.C * (1.0 - TIE))))

    def knot(self) -> tuple[float, np.ndarray, np.ndarray]:
        norms = [np.sqrt(self.products[self.place[j], j]) for j in self.active]
        size = np.abs(self.b) * norms
        moved = size > TIE * size.max(initial=0.0)  # the others are 0 but for rounding
        active = np.array(self.active, dtype=np.int64)
        return self.C / self.n, active[moved], self.b[moved]

    def step(self) -> float:
        """To the next knot; the length of the step, 0 where columns tie."""
        d = self._solve(self.signs)
        a = self._correlated(d)
        joins, j = self._first_join(a)
        leaves, k = self._first_leave(d)
        gamma = min(joins, leaves, self.C)
        self.C -= gamma
        if gamma > 0.0:
            self.b = self.b + gamma * d
            self.steps += 1
            again = self.steps % REFRESH == 0
            self.c = self.start - self._correlated(self.b) if again else self.c - gamma * a
        self.still = 0 if gamma > 0.0 else self.still + 1
        if (gamma < joins and gamma < leaves) or self.first * TIE >= self.C:
            self.C, self.done = 0.0, True
        elif self.still > MOST_STILL + 4 * len(self.active):  # rounding lets ties go in circles
            self.done = True
        elif leaves < joins or (leaves == joins and self.active[k] < j):
            self._leave(k)
        else:
            self._join(j)
        return gamma

    def _correlated(self, d: np.ndarray) -> np.ndarray:
        """A' W A_a d [P]."""
        weights = np.zeros(len(self.place))
        weights[[self.place[j] for j in self.active]] = d
        return weights @ self.products[: len(weights)]

    def _first_join(self, a: np.ndarray) -> tuple[float, int]:
        gamma = np.full(len(a), np.inf)
        for sign in self.A.signs:
            slower = 1.0 - sign * a
            away = np.maximum(self.C - sign * self.c, 0.0)
            own = slower > SAME
            np.minimum(gamma, np.divide(away, slower, out=away, where=own), out=gamma, where=own)
        gamma[self.active] = np.inf
        return self._lowest(gamma, np.arange(len(gamma)))

    def _first_leave(self, d: np.ndarray) -> tuple[float, int]:
        """An active column is still 0 where it has just joined; its sign is that of c."""
        back = self.signs * d < 0.0
        gamma = np.full(len(d), np.inf)
        gamma[back] = np.abs(self.b[back] / d[back])
        return self._lowest(gamma, np.array(self.active))

    def _lowest(self, gamma: np.ndarray, columns: np.ndarray) -> tuple[float, int]:
        """The least step, 0 where it is a rounding error; of ties the lowest column's place."""
        least = float(gamma.min(initial=np.inf))
        near = np.flatnonzero(gamma <= least + TIE * self.first)
        place = int(near[np.argmin(columns[near])]) if len(near) else 0
        return (0.0 if least <= TIE * self.first else least), place

    def _solve(self, s: np.ndarray) -> np.ndarray:
        """(A_a' W A_a)^-1 s."""
        half = solve_triangular(self.L, s, lower=True, check_finite=False)
        return solve_triangular(self.L, half, lower=True, trans=1, check_finite=False)

    def _join(self, j: int) -> None:
        g = self._products(j)
        own, k = g[self.active], len(self.active)
        w = solve_triangular(self.L, own, lower=True, check_finite=False) if k else own
        pivot = float(g[j] - w @ w)
        if pivot <= COLLINEAR * g[j]:
            self.done = True
            return
        L = np.zeros((k + 1, k + 1))
        L[:k, :k], L[k, :k], L[k, k] = self.L, w, np.sqrt(pivot)
        self.L = L
        self.active.append(j)
        self.signs = np.append(self.signs, np.sign(self.c[j]))
        self.b = np.append(self.b, 0.0)

    def _products(self, j: int) -> np.ndarray:
        """A' W A_j, kept for when the column comes back."""
        if j not in self.place:
            at = self.place[j] = len(self.place)
            if at == len(self.products):
                self.products = np.concatenate([self.products, np.zeros_like(self.products)])
            self.products[at] = self.A.correlations(self.A.column(j))
        return self.products[self.place[j]]

    def _leave(self, k: int) -> None:
        kept = np.delete(np.arange(len(self.active)), k)
        self.active.pop(k)
        self.signs, self.b = self.signs[kept], self.b[kept]
        rows = [self.products[self.place[j], self.active] for j in self.active]
        self.L = np.linalg.cholesky(np.array(rows)) if rows else np.zeros((0, 0))
