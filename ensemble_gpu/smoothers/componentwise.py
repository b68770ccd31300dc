"""Componentwise L2Boost: each round fits the group of columns that lowers the RSS most.

    c = A' r,    j = argmax over groups of |r|^2 - |r - H_j r|^2 = sum (2 lambda - lambda^2) c^2
    r <- r - nu H_j r,    H_j = A_j diag(lambda_j) A_j'

With G = A' A no row is touched: c <- c - nu G_:j (lambda_j c_j). The operator of k rounds is
B = A Q A', and a round adds nu diag(lambda_j) (E_j - G_j Q) to the rows j of Q, so that

    tr B grows by nu (sum lambda_j - sum of lambda_j times the diagonal of G_j Q G_j').

Only groups that have been chosen have rows and columns in Q. The rounds run on the host; of gains
within TIE of the best the first group's is taken, so that a tie is not decided by rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.smoothers.dictionary import Dictionary
from ensemble_gpu.smoothers.protocol import SmootherRows
from ensemble_gpu.smoothers.spectrum import MEAN, Boosted, Settings, start_of

TIE = 1.0 - 1e-10
# A gain below this share of the first RSS is a rounding error.
NO_GAIN = 1e-28
# Cells of a Gram matrix at most: 2 GiB.
MOST_CELLS = 1 << 28


@dataclass(frozen=True)
class Chosen(Boosted):
    """Besides: the group of each round, by how much it lowered the RSS; features of each group."""

    groups: np.ndarray
    falls: np.ndarray
    features: list[list[int]]


def componentwise_boosted(
    parts: Dictionary, y: Any, rows: SmootherRows, settings: Settings
) -> Chosen:
    """All rounds; fewer than asked for where no group lowers the RSS any further."""
    where, xp, P = rows.where, rows.where.xp, parts.A.shape[1]
    if P * P > MOST_CELLS:
        raise ValueError(
            f"the Gram matrix of {P} columns has {P * P} cells, more than {MOST_CELLS}: use fewer "
            "features, or fewer thresholds or knots a feature."
        )
    start = start_of(y, rows, settings.init)
    left = rows.weighted((y - start)[:, None])
    unit = rows.weighted(xp.ones_like(rows.X[:, :1])) / math.sqrt(rows.total)
    G = where.host(xp.matmul(parts.A.T, parts.A))
    c, s = where.host(xp.matmul(parts.A.T, xp.concat([left, unit], axis=1))).T
    squares = float(xp.sum(left * left))
    found = _rounds(G, c.copy(), s.copy(), squares, parts, settings)
    steps = found.steps

    def model(k: int) -> Any:
        return parts.model(found.groups[:k], steps[:k], start)

    extra = 1.0 - found.constant if settings.init == MEAN else 0.0
    df = found.trace + extra
    return Chosen(found.rss, df, 0.0, model, found.groups, found.falls, parts.features)


@dataclass(frozen=True)
class _Rounds:
    """Arrays [rounds]; `constant` is u' B u, u the unit vector of constants."""

    groups: np.ndarray
    steps: np.ndarray
    rss: np.ndarray
    falls: np.ndarray
    trace: np.ndarray
    constant: np.ndarray


def _rounds(
    G: np.ndarray, c: np.ndarray, s: np.ndarray, rss: float, parts: Dictionary, settings: Settings
) -> _Rounds:
    T, rate, starts, shrink = settings.n_rounds, settings.rate, parts.starts, parts.shrink
    gains_of = 2.0 * shrink - shrink * shrink
    single = bool((np.diff(starts) == 1).all())
    out = _Rounds(
        np.zeros(T, dtype=np.int64), np.zeros((T, int(np.diff(starts).max(initial=1)))),
        *np.zeros((4, T)),
    )  # fmt: skip
    least, operator, m, trace, t = NO_GAIN * rss, Operator(), np.zeros_like(c), 0.0, 0
    while t < T and len(c):
        gains = gains_of * c * c
        if not single:
            gains = np.add.reduceat(gains, starts[:-1])
        best = gains.max()
        if not best > least:
            break
        j = int(np.argmax(gains >= best * TIE))
        own = slice(int(starts[j]), int(starts[j + 1]))
        own_shrink, own_c = shrink[own], c[own].copy()
        step = rate * own_shrink * own_c
        Gj = G[own]
        trace += operator.follow(own, Gj, rate * own_shrink)
        m[own] += rate * own_shrink * (s[own] - Gj @ m)
        c -= step @ Gj
        fall = float(2.0 * step @ own_c - step @ step)
        rss = max(rss - fall, 0.0)
        out.groups[t], out.steps[t, : len(step)] = j, step
        out.rss[t], out.falls[t], out.trace[t], out.constant[t] = rss, fall, trace, s @ m
        t += 1
    return _Rounds(*(array[:t] for array in vars(out).values()))


class Operator:
    """Q among the columns that have been chosen, in the order in which they were."""

    def __init__(self) -> None:
        self.columns = np.zeros(0, dtype=np.int64)
        self.places: dict[int, int] = {}
        self.Q = np.zeros((0, 0))

    def follow(self, own: slice, Gj: np.ndarray, weight: np.ndarray) -> float:
        """Add a round of the columns `own`; by how much the trace grows."""
        size = own.stop - own.start
        at = self.places.get(own.start)
        if at is None:
            at = self.places[own.start] = len(self.columns)
            self.columns = np.concatenate([self.columns, np.arange(own.start, own.stop)])
            if len(self.columns) > len(self.Q):
                grown = np.zeros((2 * len(self.columns) + 16,) * 2)
                grown[: len(self.Q), : len(self.Q)] = self.Q
                self.Q = grown
        n = len(self.columns)
        g = Gj[:, self.columns]
        Q = self.Q[:n, :n]
        product = g @ Q
        grows = float(weight.sum() - weight @ (product * g).sum(axis=1))
        rows = Q[at : at + size]
        rows -= weight[:, None] * product
        diagonal = np.arange(size)
        rows[diagonal, at + diagonal] += weight
        return grows
