"""Small rankings, and the plain loops over pairs that they are compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Ranking(NamedTuple):
    """Rows, relevance and queries."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray


def ranking(n: int = 200, n_queries: int = 8, levels: int = 4, missing: float = 0.0) -> Ranking:
    """Queries of unequal sizes in any order; two features matter."""
    rng = np.random.default_rng(n + n_queries)
    X = np.round(rng.normal(size=(n, 4)), 1)
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.linspace(0.4, 0.95, levels - 1)))
    qid = rng.integers(0, n_queries, n) * 7 % (n_queries * 3)
    X[rng.random(X.shape) < missing] = np.nan
    return Ranking(X, y.astype(np.float64), qid)


def pairs_of(y: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """All pairs (upper, lower) of rows of a query with different y."""
    above = (y[:, None] > y[None, :]) & (qid[:, None] == qid[None, :])
    return np.argwhere(above)
