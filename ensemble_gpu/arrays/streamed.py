"""Rows that are no array: read from elsewhere, or decoded, when they are looked at.

    RowSource   what `fit` takes for X and y together, and reads by itself (batches/batches.py)
    Streamed    the X of its rows: a pass over the source answers what is asked of them
    Decoded     rows of which codes are kept: columns and blocks are decoded when they are read

Such rows are on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class RowSource:
    """Training rows with their targets and weights, as `fit` is given them in place of X."""

    def reading(self, estimator: Any, y: Any, sample_weight: Any, init_score: Any, qid: Any) -> Any:
        """What `estimators/reading.py: read` answers."""
        raise NotImplementedError


class Decoded:
    """Rows of which codes are kept. X[:, f] and toarray() are floats, X[rows] and X[:, features]
    decoded rows again, as of a sparse matrix.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    ndim = 2

    def __getitem__(self, at: Any) -> Any:
        raise NotImplementedError

    def toarray(self) -> np.ndarray:
        raise NotImplementedError

    def encoded(self, values: Mapping[int, np.ndarray]) -> Decoded:
        """With positions among known values in place of categories (arrays/positions.py)."""
        raise NotImplementedError


class Streamed:
    """Rows that are read in passes over their source."""

    shape: tuple[int, int]
    dtype: np.dtype
    ndim = 2

    def __getitem__(self, at: np.ndarray) -> Streamed:
        """The rows at these positions."""
        raise NotImplementedError

    def apart(self, at: np.ndarray) -> Decoded:
        """The rows at these positions, to evaluate models of the others: the next pass that makes
        codes of training rows makes theirs too, at the same edges.
        """
        raise NotImplementedError

    def encoded(self, values: Mapping[int, np.ndarray]) -> Streamed:
        """With positions among known values in place of categories (arrays/positions.py)."""
        raise NotImplementedError

    def distinct(self, features: Sequence[int], rows: Any | None) -> dict[int, np.ndarray]:
        """Ascending values of these features in some rows (None: in all), without NaN."""
        raise NotImplementedError

    def keys(self, target: Any, weights: np.ndarray | None) -> np.ndarray:
        """`row_keys` (data/keys.py)."""
        raise NotImplementedError

    def want_keys(self) -> None:
        """Keys with the targets of `fit` will be asked for: the next pass makes them, too."""
        raise NotImplementedError

    def gaps(self, engine: Any, rows: Any | None, max_bins: int | None) -> list[np.ndarray]:
        """`gaps_of` (data/matrix.py) of the rows at these positions (None: of all)."""
        raise NotImplementedError

    def codes(
        self, engine: Any, edges: list[np.ndarray], gaps: list[np.ndarray], rows: Any | None,
        layout: Any | None,
    ) -> Any:  # fmt: skip
        """`Engine.encode` of the rows at these positions (None: of all)."""
        raise NotImplementedError

    def foresee(self, rows: Callable[[], np.ndarray | None]) -> None:
        """The rows whose gaps will be asked for after the next codes: one pass serves both.

        They are asked for once the keys are known; None: there are none.
        """
        raise NotImplementedError


def is_streamed(X: Any) -> bool:
    """Rows that are read in passes."""
    return isinstance(X, Streamed)
