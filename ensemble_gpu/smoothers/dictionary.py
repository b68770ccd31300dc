"""Columns in groups, of which one is fitted a round: columns of X, splines of features, stumps.

A group j has orthonormal columns A_j (of W^1/2 times rows) and a smoother A_j diag(lambda_j) A_j':
lambda = 1 is least squares, less a penalised fit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ensemble_gpu.arrays.linalg import svd
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.parameters import check_flag, check_integer
from ensemble_gpu.kernels.protocol import LEFT, RIGHT
from ensemble_gpu.learners.ridge import EPSILON
from ensemble_gpu.model.additive import AdditiveModel, Rounds
from ensemble_gpu.model.linear import LinearModel
from ensemble_gpu.model.spline import SplineModel
from ensemble_gpu.smoothers.linear import Linear
from ensemble_gpu.smoothers.protocol import SmootherRows
from ensemble_gpu.smoothers.spline import FEW_KNOTS, Spline, decomposed


@dataclass(frozen=True)
class Dictionary:
    """A [n, P] where the rows are; group j are the columns starts[j] to starts[j + 1].

    `shrink` [P] are the lambda. `features` names the features of each group. `model(groups [T],
    steps [T, most columns], start)`: rounds that add A_j steps[t].
    """

    A: Any
    starts: np.ndarray
    shrink: np.ndarray
    features: list[list[int]]
    model: Callable[[np.ndarray, np.ndarray, float], Any]

    @property
    def n_groups(self) -> int:
        return len(self.starts) - 1


class Stumps(BaseEstimator):
    """Stumps, +1 where x_f > threshold and -1 elsewhere, without their means; one a round.

    A smoother for componentwise=True only; BoostingRegressor(max_depth=1) has more thresholds and
    no degrees of freedom.

    Parameters
    ----------
    n_thresholds : int, default=16
        At most so many of a feature, midpoints at even quantiles of its distinct values. The Gram
        matrix has the square of all of them as cells.
    """

    def __init__(self, n_thresholds: int = 16) -> None:
        self.n_thresholds = n_thresholds


def dictionary_of(smoother: Any, rows: SmootherRows) -> Dictionary:
    """The columns of a smoother that takes one group a round."""
    if isinstance(smoother, Linear):
        return _columns(smoother, rows)
    if isinstance(smoother, Spline):
        return _splines(smoother, rows)
    if isinstance(smoother, Stumps):
        return _stumps(smoother, rows)
    raise ValueError(
        "smoother must be Linear(), Spline() or Stumps() with componentwise=True; got "
        f"{smoother!r}."
    )


def _columns(smoother: Linear, rows: SmootherRows) -> Dictionary:
    check_flag("center", smoother.center)
    where, xp, p = rows.where, rows.where.xp, rows.X.shape[1]
    groups = _checked_groups(smoother.groups, p)
    X, mean = rows.X, np.zeros(p)
    if smoother.center:
        w = xp.ones_like(X[:, 0]) if rows.weights is None else rows.weights
        mean = where.host(xp.sum(w[:, None] * X, axis=0)) / rows.total
        X = X - where.put(mean)[None, :]
    else:  # the column of ones is the first group, column p of the coefficients
        X, groups = xp.concat([X, xp.ones_like(X[:, :1])], axis=1), [[p], *groups]
    weighted = rows.weighted(X)
    # What is left of a constant column without its mean is a rounding error of its norm.
    plain = rows.weighted(X + where.put(np.append(mean, 0.0)[: X.shape[1]])[None, :])
    least = EPSILON * X.shape[0] * np.sqrt(where.host(xp.sum(plain * plain, axis=0)))
    single = all(len(group) == 1 for group in groups)
    blocks, backs, kept = (_normed if single else _orthonormal)(weighted, groups, least, where)

    def model(chosen: np.ndarray, steps: np.ndarray, start: float) -> LinearModel:
        b = np.zeros((len(chosen), p + 1))
        for t, j in enumerate(chosen.tolist()):
            b[t, kept[j]] = backs[j] @ steps[t, : backs[j].shape[1]]
        constants = b[:, p:] - (b[:, :p] @ mean)[:, None]
        return LinearModel(b[:, None, :p], constants, np.array([start]))

    features = [[f for f in group if f < p] for group in kept]
    sizes = [back.shape[1] for back in backs]
    return _joined(blocks, sizes, np.ones(sum(sizes)), features, model, rows)


def _checked_groups(groups: Any, p: int) -> list[list[int]]:
    if groups is None:
        return [[f] for f in range(p)]
    try:
        found = [[operator.index(f) for f in group] for group in groups]
    except TypeError:
        found = []
    flat = [f for group in found for f in group]
    if not flat or not all(found) or min(flat) < 0 or max(flat) >= p:
        raise ValueError(f"groups must be lists of columns from 0 to {p - 1}; got {groups!r}.")
    return found


def _normed(
    X: Any, groups: list[list[int]], least: np.ndarray, where: Where
) -> tuple[list, list, list]:
    """Columns over their norms, all at once; those with no more than the least are left out."""
    at = np.array([f for (f,) in groups])
    X = where.xp.take(X, where.put(at), axis=1)
    norms = np.sqrt(where.host(where.xp.sum(X * X, axis=0)))
    kept = np.flatnonzero(norms > least[at])
    X = where.xp.take(X, where.put(kept), axis=1) / where.put(norms[kept])[None, :]
    return [X], [np.array([[1.0 / norms[j]]]) for j in kept], [groups[j] for j in kept]


def _orthonormal(
    X: Any, groups: list[list[int]], least: np.ndarray, where: Where
) -> tuple[list, list, list]:
    """Singular vectors of every group; directions with no more than the least are left out."""
    xp = where.xp
    blocks, backs, kept = [], [], []
    for group in groups:
        block = xp.take(X, where.put(np.array(group)), axis=1)
        U, s, Vt = svd(block, where)
        s = where.host(s)
        rank = int((s > max(EPSILON * max(block.shape) * s[0], least[group].max())).sum())
        if rank:
            blocks.append(U[:, :rank])
            backs.append(where.host(Vt)[:rank].T / s[:rank])
            kept.append(group)
    return blocks, backs, kept


def _splines(smoother: Spline, rows: SmootherRows) -> Dictionary:
    """Splines without their constants: the two smooth columns are turned into 1 and a line."""
    smoother._check()
    where, xp = rows.where, rows.where.xp
    n_knots = FEW_KNOTS if smoother.n_knots is None else int(smoother.n_knots)
    unit = rows.weighted(xp.ones_like(rows.X[:, :1])) / math.sqrt(rows.total)
    blocks, shrink, backs, knots, features = [], [], [], [], []
    for f in range(rows.X.shape[1]):
        basis = decomposed(rows, f, n_knots)
        if basis is None:
            continue
        penalties = smoother.scaled(basis)
        if len(penalties) > 1:
            raise ValueError("componentwise=True takes one df or penalty of Spline, not a list.")
        a, b = where.host(xp.matmul(basis.U[:, -2:].T, unit))[:, 0]
        turn = np.vstack([np.eye(len(basis.gamma))[:, :-2].T, _line(a, b, len(basis.gamma))]).T
        blocks.append(xp.matmul(basis.U, where.put(np.ascontiguousarray(turn))))
        shrink.append(np.append(1.0 / (1.0 + penalties[0] * basis.gamma[:-2]), 1.0))
        backs.append(basis.back @ turn)
        knots.append(basis.knots)
        features.append(f)

    def model(chosen: np.ndarray, steps: np.ndarray, start: float) -> SplineModel:
        values = np.zeros((len(chosen), max(map(len, knots), default=0)))
        for t, j in enumerate(chosen.tolist()):
            values[t, : len(knots[j])] = backs[j] @ steps[t, : backs[j].shape[1]]
        return SplineModel(
            features=features, knots=knots, terms=chosen, values=values,
            constants=np.zeros(len(chosen)), intercept=[start], n_features=rows.X.shape[1],
        )  # fmt: skip

    sizes = [len(own) for own in shrink]
    of_each = [[f] for f in features]
    return _joined(blocks, sizes, np.concatenate([np.zeros(0), *shrink]), of_each, model, rows)


def _line(a: float, b: float, size: int) -> np.ndarray:
    """The combination of the last two columns that is orthogonal to a, b."""
    row = np.zeros((1, size))
    row[0, -2:] = np.array([-b, a]) / np.hypot(a, b)
    return row


def _stumps(smoother: Stumps, rows: SmootherRows) -> Dictionary:
    check_integer("n_thresholds", smoother.n_thresholds, 1)
    where, xp, p = rows.where, rows.where.xp, rows.X.shape[1]
    places = [
        (f, t)
        for f in range(p)
        for t in _thresholds(where.host(rows.X[:, f]), int(smoother.n_thresholds)).tolist()
    ]
    columns = []
    w = xp.ones_like(rows.X[:, 0]) if rows.weights is None else rows.weights
    means, norms = [], []
    for f, t in places:
        h = xp.where(rows.X[:, f] > t, where.full(1.0), where.full(-1.0))
        mean = float(xp.sum(w * h)) / rows.total
        means.append(mean)
        norms.append(math.sqrt(rows.total * (1.0 - mean * mean)))
        columns.append((h - mean)[:, None] / norms[-1])

    def model(chosen: np.ndarray, steps: np.ndarray, start: float) -> AdditiveModel:
        T = len(chosen)
        b = steps[:, 0] / np.array(norms)[chosen] if T else np.zeros(0)
        mean = np.array(means)[chosen] if T else np.zeros(0)
        values = np.zeros((T, 1, 3))
        values[:, 0, LEFT], values[:, 0, RIGHT] = -b - b * mean, b - b * mean
        at = [places[j] for j in chosen.tolist()]
        rounds = Rounds(
            np.array([f for f, _ in at], dtype=np.int64), np.array([t for _, t in at]),
            np.full(T, RIGHT, dtype=np.int64), values, np.ones(T), np.zeros(T),
        )  # fmt: skip
        return AdditiveModel(rounds, p, np.array([start]))

    blocks = [rows.weighted(xp.concat(columns, axis=1))] if columns else []
    of_each = [[f] for f, _ in places]
    return _joined(blocks, [1] * len(places), np.ones(len(places)), of_each, model, rows)


def _thresholds(x: np.ndarray, most: int) -> np.ndarray:
    """Midpoints between distinct values, at most so many, at even positions."""
    distinct = np.unique(x)
    cuts = 0.5 * distinct[:-1] + 0.5 * distinct[1:]
    if len(cuts) <= most:
        return cuts
    return cuts[np.linspace(0, len(cuts) - 1, most + 2)[1:-1].round().astype(np.int64)]


def _joined(
    blocks: list[Any], sizes: list[int], shrink: np.ndarray, features: list[list[int]],
    model: Any, rows: SmootherRows,
) -> Dictionary:  # fmt: skip
    xp = rows.where.xp
    starts = np.concatenate([[0], np.cumsum(np.array(sizes, dtype=np.int64))]).astype(np.int64)
    if not blocks:
        A = rows.X[:, :0]
    else:
        A = blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=1)
    return Dictionary(A, starts, shrink, features, model)
