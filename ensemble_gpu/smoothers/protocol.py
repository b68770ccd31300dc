"""What a linear smoother is to L2Boost.

    S~ = W^1/2 S W^-1/2 = U diag(lambda) U',    W the weights of the rows

is symmetric, so that repeated smoothing is arithmetic on the eigenvalues (spectrum.py). A smooth of
targets t is a model: what is learnt from U' W^1/2 t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.namespace import Where

# Bytes that an exact decomposition may take: matrix, eigenvectors and their workspace.
MEMORY = 8 * 2**30
MATRICES = 4


@dataclass(frozen=True)
class SmootherRows:
    """Float64 rows [n, p] and their weights [n] (None: all 1), in the namespace `where`."""

    X: Any
    weights: Any | None
    where: Where

    @property
    def root(self) -> Any | None:
        """sqrt of the weights [n, 1]."""
        return None if self.weights is None else self.where.xp.sqrt(self.weights)[:, None]

    def weighted(self, A: Any) -> Any:
        """W^1/2 A of A [n, columns]."""
        return A if self.weights is None else self.root * A

    @property
    def total(self) -> float:
        """The sum of the weights, the n of all formulas: whole weights are repetitions of rows."""
        if self.weights is None:
            return float(self.X.shape[0])
        return float(self.where.xp.sum(self.weights))


@dataclass(frozen=True)
class Spectral:
    """U [n, r] and the eigenvalues [penalties, r] (host) of one smoother for several penalties.

    `model(tau, penalty, start)`: the model start + sum over rounds t of the smooth of t's targets,
    of which tau[t] [rounds, r] (host) is U' W^1/2 t; `penalty` is the position among `penalties`.
    """

    U: Any
    eigenvalues: np.ndarray
    penalties: np.ndarray
    model: Callable[[np.ndarray, int, float], Any]


@dataclass(frozen=True)
class Iterated:
    """A smoother that is not symmetric: `smooth(A)` is S A of A [n, columns].

    `model(targets, start)`: start + sum over rounds of the smooth of targets [rounds, n] (host).
    """

    smooth: Callable[[Any], Any]
    model: Callable[[np.ndarray, float], Any]


class LinearSmoother(Protocol):
    """A smoother before it sees rows: parameters of a scikit-learn estimator, and no state."""

    def prepared(self, rows: SmootherRows) -> Spectral | Iterated: ...


def as_penalties(name: str, given: Any, check: Callable[[str, Any], None]) -> np.ndarray:
    """One penalty or several, each checked."""
    several = isinstance(given, list | tuple | np.ndarray)
    found = list(given) if several else [given]
    if not found:
        raise ValueError(f"{name} must be a number or a list of numbers; got {given!r}.")
    for one in found:
        check(name, one)
    return np.array([float(one) for one in found])


def check_memory(n: int, instead: str) -> None:
    """Raise where work on an n x n matrix takes more than MEMORY, with what to use instead."""
    needed = MATRICES * 8 * n * n
    if needed > MEMORY:
        raise ValueError(
            f"an exact decomposition of {n} rows needs {needed / 2**30:.0f} GiB (at most "
            f"{MEMORY / 2**30:.0f} are taken): use {instead}."
        )
