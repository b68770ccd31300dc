"""Random choices: drawn on the host, so one seed gives one model on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def stratified_holdout(
    index: np.ndarray, n_classes: int, fraction: float, random_state: Any
) -> np.ndarray:
    """Sorted positions of about `fraction` of every class, leaving at least one row of each."""
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    generator = np.random.default_rng(seed)
    chosen = []
    for c in range(n_classes):
        rows = np.flatnonzero(index == c)
        size = min(max(1, round(fraction * len(rows))), len(rows) - 1)
        chosen.append(generator.permutation(rows)[:size])
    positions = np.sort(np.concatenate(chosen))
    if not len(positions):
        raise ValueError(
            f"validation_fraction={fraction} of {len(index)} rows is no row; give more rows, a "
            "larger fraction, or X_val and y_val."
        )
    return positions
