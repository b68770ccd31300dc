"""The whole L1 path of a piecewise linear loss, from vertex to vertex of a linear programme.

    min over b of sum_i (up_i r_i^+ + down_i r_i^-) + alpha |b|_1,    r = t - M b

The hinge loss has t = 1, rows y_i A_i, up = w / n and down = 0; the absolute loss has t = y and
up = down = w / n. For almost every alpha the answer is a vertex: as many rows E with r_i = 0 as
there are columns K that are not 0, b_K = M_EK^-1 t_E. Its multipliers are theta_i = up_i where
r_i > 0, -down_i where r_i < 0, and on E those with M_j' theta = alpha s_j for the columns of K.
It is optimal while

    -down_i <= theta_i <= up_i  on E    and    |M_j' theta| <= alpha  for the other columns.

theta is linear in alpha: at the first alpha below where one of these would break, its r_i or b_j
moves away from 0, and the vertex along an edge until another coefficient or residual is 0. So b is
constant in alpha between events, and |b|_1 grows along each edge: the edges are the path in the
radius. (The parametric simplex method; the basis is E and K, and all else follows from them.)

Ties, which stumps have by the thousand, are broken by moving t an infinitesimal step along a random
direction g: all of b and r have a second number, by how much they move, which decides where the
first are equal. No two vertices are then the same, and no circle is possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.paths.basis import Basis
from ensemble_gpu.paths.knots import Knots, Limits

# Numbers closer than this share of the largest of their kind are equal.
TIE = 1e-11
# A rate below this share of the largest is 0.
STILL = 1e-10
# Pivots in a row that do not move b, besides four a row and column.
MOST_STILL = 1000


@dataclass(frozen=True)
class PiecewiseLinear:
    """M [n, P] and t, up, down [n] on the host; `free`: column 0 is the intercept, no penalty.

    `signs` that coefficients may have.
    """

    M: np.ndarray
    t: np.ndarray
    up: np.ndarray
    down: np.ndarray
    free: bool
    signs: tuple[float, ...]


def parametric_simplex(problem: PiecewiseLinear, limits: Limits) -> Knots:
    """The vertices from b = 0 on; columns are numbered without the intercept.

    The alpha of a knot is the least for which it is optimal.
    """
    state, first = _Vertex(problem), int(problem.free)
    found, alphas = [state.coefficients()], []
    while state.advanced():
        alphas.append(state.alpha)  # where the last knot was left
        if limits.reached(found[-1][1][first:], len(found)):
            break
        found.append(state.coefficients())
    else:
        alphas.append(0.0 if state.complete else state.alpha)
    columns, values = zip(*found, strict=True)
    return Knots(
        np.array(alphas),
        [own[first:] - first for own in columns],
        [b[first:] for b in values],
        np.array([b[0] if problem.free else 0.0 for b in values]),
        state.complete,
    )


@dataclass(frozen=True)
class _Event:
    """At `alpha` a row of E (position `at`) or a column moves away from 0, to the side `sign`."""

    alpha: float
    row: bool
    at: int
    sign: float


class _Vertex:
    """The basis E and K, signs s of K (0: the intercept), sides of the residuals (0 on E).

    `fixed` is M' theta of the rows that are not in E.
    """

    def __init__(self, problem: PiecewiseLinear) -> None:
        self.problem = problem
        self.columns = np.ascontiguousarray(problem.M.T)  # a column is read in one piece
        self.spans = np.abs(self.columns).max(axis=1, initial=0.0)
        n = len(problem.t)
        generic = np.random.default_rng(0).uniform(1.0, 2.0, size=n)
        self.targets = np.column_stack([problem.t, generic])
        first = [_best_constant(problem, self.targets)] if problem.free else []
        self.basis = Basis(problem.M, first, [0] if problem.free else [])
        self.s = np.zeros(len(first))
        self.side = np.zeros(n)
        self._solve()
        self.side = _sign(self.r, self.scale)
        self.side[first] = 0.0
        self.fixed = self._theta(np.arange(n)) @ problem.M
        self.alpha, self.first, self.complete = np.inf, 0.0, False

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns that are not 0, in order, the intercept always, and their coefficients."""
        K, b = np.array(self.basis.K, dtype=np.int64), self.b[:, 0]
        used = (np.abs(b) * self.spans[K] > TIE * self.scale) | (self.s == 0.0)
        kept = np.argsort(K)
        kept = kept[used[kept]]
        return K[kept], b[kept]

    def advanced(self) -> bool:
        """Pivot until b moves; False at the end of the path."""
        for _ in range(MOST_STILL + 4 * sum(self.problem.M.shape)):
            event = self._event()
            self.first = self.first or (0.0 if event is None else event.alpha)
            if event is None or event.alpha <= TIE * self.first:
                self.complete = True
                return False
            self.alpha = event.alpha
            db, dr = self._direction(event)
            step, column, row = self._first_zero(db, dr)
            if column is None and row is None:  # only rounding can leave an edge without an end
                return False
            self._exchange(event, column, row)
            self._solve()
            if step > 0.0:
                return True
        return False

    def _solve(self) -> None:
        """b and r [., 2], with their moves along g."""
        E, K = self.basis.E, self.basis.K
        self.b = self.basis.V @ self.targets[E]
        self.r = self.targets - (self.b.T @ self.columns[K]).T
        self.r[E] = 0.0
        self.scale = max(float(np.abs(self.r[:, 0]).max()), float(np.abs(self.problem.t).max()))

    def _theta(self, at: Any) -> Any:
        """Multipliers of rows that are not in E, where they are bounds; 0 on E."""
        side, up, down = self.side[at], self.problem.up[at], self.problem.down[at]
        return np.where(side > 0.0, up, np.where(side < 0.0, -down, 0.0))

    def _event(self) -> _Event | None:
        """The first condition that breaks below alpha; of ties the first column or row."""
        M, up, down, fixed = self.problem.M, self.problem.up, self.problem.down, self.fixed
        E, K, V = np.array(self.basis.E, dtype=np.int64), self.basis.K, self.basis.V
        # On E theta is h0 + alpha h1, and M' theta is c0 + alpha c1.
        h0, h1 = np.column_stack([-fixed[K], self.s]).T @ V
        c0, c1 = fixed + h0 @ M[E], h1 @ M[E]
        penalised = np.ones(M.shape[1], dtype=bool)
        penalised[: int(self.problem.free)] = False
        penalised[K] = False
        found: list[_Event] = []
        for sign in self.problem.signs:
            rate = 1.0 - sign * c1
            found += _latest(sign * c0, rate, penalised & (rate > STILL), self.alpha, False, sign)
        if len(h0):
            moves = np.abs(h1) > STILL * np.abs(h1).max()
            for sign, bound in ((1.0, up[E]), (-1.0, -down[E])):
                own = moves & (sign * h1 < 0.0)
                found += _latest(bound - h0, h1, own, self.alpha, True, sign)
        if not found:
            return None
        latest = max(event.alpha for event in found)
        return next(e for e in found if e.alpha >= latest - TIE * (self.first or latest))

    def _direction(self, event: _Event) -> tuple[np.ndarray, np.ndarray]:
        """How b_K and r move for each unit of the variable that enters."""
        if event.row:
            db = -event.sign * self.basis.V[:, event.at]
            return db, -(db @ self.columns[self.basis.K])
        entering = event.sign * self.columns[event.at]
        db = -(self.basis.V @ entering[self.basis.E])
        return db, -(db @ self.columns[self.basis.K] + entering)

    def _first_zero(self, db: np.ndarray, dr: np.ndarray) -> tuple[float, int | None, int | None]:
        """The step at which a coefficient (position in K) or a residual is 0 first."""
        x = np.concatenate([self.s[:, None] * self.b, self.side[:, None] * self.r])
        v = np.concatenate([self.s * db, self.side * dr])
        k = len(self.basis.K)
        # What one unit of a variable adds to residuals: all are compared in their units.
        unit = np.concatenate([self.spans[self.basis.K], np.ones(len(dr))])
        falls = -v * unit > STILL * max(
            float(np.abs(dr).max()), float((np.abs(db) * unit[:k]).max(initial=0.0))
        )
        if not falls.any():
            return 0.0, None, None
        at = np.flatnonzero(falls)
        value, speed = np.maximum(x[at, 0], 0.0), -v[at]
        step = float((value / speed).min())
        # What a step leaves of each is 0 but for rounding.
        least = TIE * max(self.scale, step * float(np.abs(dr).max()))
        tied = (value - step * speed) * unit[at] <= least
        step = 0.0 if bool((value * unit[at] <= least)[tied].all()) else step
        at, speed = at[tied], speed[tied]
        chosen = int(at[np.argmin(x[at, 1] / speed)])
        return (step, chosen, None) if chosen < k else (step, None, chosen - k)

    def _exchange(self, event: _Event, column: int | None, row: int | None) -> None:
        """The variable of the event enters, and the column (position in K) or the row leaves."""
        if row is not None:
            self.fixed -= self._theta(row) * self.problem.M[row]
            self.side[row] = 0.0
        if event.row:
            left = self.basis.E[event.at]
            self.side[left] = event.sign
            self.fixed += self._theta(left) * self.problem.M[left]
            if row is not None:
                self.basis.swap_row(event.at, row)
            elif column is not None:
                self.basis.shrink(event.at, column)
                self.s = np.delete(self.s, column)
        elif row is not None:
            self.basis.grow(row, event.at)
            self.s = np.append(self.s, event.sign)
        elif column is not None:
            self.basis.swap_column(column, event.at)
            self.s[column] = event.sign


def _latest(
    rest: np.ndarray, rate: np.ndarray, own: np.ndarray, alpha: float, row: bool, sign: float
) -> list[_Event]:
    """The largest rest / rate of those marked, at most alpha; of ties the first."""
    at = np.flatnonzero(own)
    if not len(at):
        return []
    when = np.minimum(rest[at] / rate[at], alpha)
    best = float(when.max())
    first = int(np.argmax(when >= best - TIE * abs(best)))
    return [_Event(best, row, int(at[first]), sign)]


def _sign(x: np.ndarray, scale: float) -> np.ndarray:
    """+-1 for x [., 2]: the sign of the first number, of the second where that is 0."""
    zero = np.abs(x[:, 0]) <= TIE * scale
    return np.where(np.where(zero, x[:, 1], x[:, 0]) < 0.0, -1.0, 1.0)


def _best_constant(problem: PiecewiseLinear, targets: np.ndarray) -> int:
    """The row whose residual is 0 at the best constant.

    As a function of b0 the loss falls by `before` a unit at first, and its slope grows by `jump` at
    t_i / m_i of each row: a weighted quantile of them.
    """
    m = problem.M[:, 0]
    before = np.where(m > 0.0, problem.up, problem.down) * np.abs(m)
    jump = (problem.up + problem.down) * np.abs(m)
    kinks = targets / m[:, None]
    order = np.lexsort((kinks[:, 1], kinks[:, 0]))
    slope = np.cumsum(jump[order]) - before.sum()
    return int(order[np.argmax(slope >= -TIE * before.sum())])
