"""What a path is made of, whichever way it was found: knots, and where it may end early."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Limits:
    """Where a path may end before alpha = 0; None: nowhere."""

    max_active: int | None
    max_radius: float | None
    max_knots: int | None

    def reached(self, b: np.ndarray, n_knots: int) -> bool:
        """Whether the knot with the coefficients b that are not 0 is the last of `n_knots`."""
        return (
            (self.max_active is not None and len(b) >= self.max_active)
            or (self.max_radius is not None and bool(np.abs(b).sum() >= self.max_radius))
            or (self.max_knots is not None and n_knots >= self.max_knots)
        )


@dataclass(frozen=True)
class Knots:
    """alpha [knots]; of each knot the columns that are not 0, their coefficients, the intercept.

    The intercept belongs to columns that are not centred. `complete`: the last knot is that of
    alpha = 0.
    """

    alphas: np.ndarray
    columns: list[np.ndarray]
    coefficients: list[np.ndarray]
    intercepts: np.ndarray
    complete: bool
