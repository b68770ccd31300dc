"""The inverse of a square part M_EK of a matrix, which follows exchanges of its rows and columns.

An exchange changes V = M_EK^-1 by a matrix of rank 1 (or a border is added or taken away): k^2
operations for k rows. Now and then V is computed anew, so that rounding errors do not add up.
"""

from __future__ import annotations

import numpy as np

# Exchanges after which V is computed anew.
REFRESH = 32


class Basis:
    """Rows E and columns K of M, and V [K, E]."""

    def __init__(self, M: np.ndarray, E: list[int], K: list[int]) -> None:
        self.M, self.E, self.K = M, E, K
        self.exchanges = 0
        self.V = self._inverse()

    def _inverse(self) -> np.ndarray:
        return np.linalg.inv(self.M[np.ix_(self.E, self.K)])

    def grow(self, row: int, column: int) -> None:
        """A row and a column more."""
        u, v = self.V @ self.M[self.E, column], self.M[row, self.K] @ self.V
        pivot = self.M[row, column] - self.M[row, self.K] @ u
        inner = self.V + np.outer(u / pivot, v)
        self.E.append(row)
        self.K.append(column)
        self._follow(np.block([[inner, -u[:, None] / pivot], [-v / pivot, 1.0 / pivot]]))

    def shrink(self, e: int, k: int) -> None:
        """Without the row at position e of E and the column at position k of K."""
        V = self.V - np.outer(self.V[:, e] / self.V[k, e], self.V[k])
        self.E.pop(e)
        self.K.pop(k)
        self._follow(np.delete(np.delete(V, k, axis=0), e, axis=1))

    def swap_row(self, e: int, row: int) -> None:
        """Another row at position e of E."""
        v = self.M[row, self.K] @ self.V
        pivot = v[e]
        v[e] -= 1.0
        self.E[e] = row
        self._follow(self.V - np.outer(self.V[:, e], v / pivot))

    def swap_column(self, k: int, column: int) -> None:
        """Another column at position k of K."""
        u = self.V @ self.M[self.E, column]
        pivot = u[k]
        u[k] -= 1.0
        self.K[k] = column
        self._follow(self.V - np.outer(u / pivot, self.V[k]))

    def _follow(self, V: np.ndarray) -> None:
        self.exchanges += 1
        self.V = V if self.exchanges % REFRESH else self._inverse()
