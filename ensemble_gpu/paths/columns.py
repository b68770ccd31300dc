"""The columns A [n, P] of a dictionary, and those of X as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.model.linear import LinearModel

# Signs that coefficients may have.
EITHER: tuple[float, ...] = (1.0, -1.0)
POSITIVE: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class PathRows:
    """Rows [n, p], targets [n] and weights [n] (None: all 1) in the namespace `where`.

    `names` are those of the features, where a frame had some.
    """

    X: Any
    target: Any
    weights: Any | None
    where: Where
    names: Sequence[str] | None = None

    def name(self, feature: int) -> str:
        return f"feature {feature}" if self.names is None else str(self.names[feature])

    @property
    def total(self) -> float:
        """The sum of the weights, the n of all formulas: whole weights are repetitions of rows."""
        if self.weights is None:
            return float(self.X.shape[0])
        return float(self.where.xp.sum(self.weights))

    def weighted(self, v: Any) -> Any:
        """W v of v [n]."""
        return v if self.weights is None else self.weights * v

    def mean(self, v: Any) -> float:
        """The weighted mean of v [n]."""
        return float(self.where.xp.sum(self.weighted(v))) / self.total


class Columns(Protocol):
    """What a path needs of a dictionary, which need not be stored: A' W v, and a column.

    Centred columns are taken without their (weighted) means; `means` [P] are zeros otherwise.
    """

    rows: PathRows
    means: np.ndarray
    signs: tuple[float, ...]

    def correlations(self, v: Any) -> np.ndarray:
        """A' W v [P] of v [n], on the host."""
        ...

    def column(self, j: int) -> Any:
        """Column j [n]."""
        ...

    def name(self, j: int) -> str:
        """What column j is, for a reader."""
        ...

    def model(self, columns: np.ndarray, coefficients: np.ndarray, intercept: float) -> Any:
        """The function intercept + sum of coefficients times columns that are not centred."""
        ...


class Features:
    """The columns of X themselves."""

    signs = EITHER

    def __init__(self, rows: PathRows, *, centred: bool) -> None:
        where, xp = rows.where, rows.where.xp
        self.rows, self.p = rows, rows.X.shape[1]
        self.means = np.zeros(self.p)
        if centred:
            W = rows.weighted(xp.ones_like(rows.X[:, 0]))[:, None]
            self.means = where.host(xp.sum(W * rows.X, axis=0)) / rows.total
        self.A = rows.X - where.put(self.means)[None, :]

    def correlations(self, v: Any) -> np.ndarray:
        where = self.rows.where
        return where.host(where.xp.matmul(self.A.T, self.rows.weighted(v)[:, None]))[:, 0]

    def column(self, j: int) -> Any:
        return self.A[:, j]

    def name(self, j: int) -> str:
        return self.rows.name(j)

    def model(self, columns: np.ndarray, coefficients: np.ndarray, intercept: float) -> LinearModel:
        b = np.zeros((1, 1, self.p))
        b[0, 0, columns] = coefficients
        return LinearModel(b, np.zeros((1, 1)), np.array([intercept]))
