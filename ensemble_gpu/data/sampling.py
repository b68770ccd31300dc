"""Random choices: drawn on the host, so one seed gives one model on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ensemble_gpu.arrays.namespace import Where


def check_seed(random_state: Any) -> None:
    """Raise unless the parameter is one that can be drawn from; draws nothing."""
    _source(random_state)


def draw_seed(random_state: Any) -> int:
    """A seed from the parameter `random_state`."""
    return int(_source(random_state).randint(np.iinfo(np.int32).max))


def _source(random_state: Any) -> np.random.RandomState:
    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, an integer from 0 to 2^32 - 1 or a RandomState instance; "
            f"got {random_state!r}."
        ) from error


def stratified_holdout(
    index: np.ndarray, n_classes: int, fraction: float, random_state: Any
) -> np.ndarray:
    """Sorted positions of about `fraction` of every class, leaving at least one row of each."""
    generator = np.random.default_rng(draw_seed(random_state))
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


def drawn_rows(seed: int, round_: int, rows: slice, share: float, where: Where) -> Any:
    """Whether each row of a slice is drawn in a round, with probability `share` (bool array).

    A counter-based hash (the finaliser of splitmix64) of seed, round and row number: the same on
    every device, whatever the blocks.
    """
    xp = where.xp

    def number(value: int) -> Any:
        return where.full(value % 2**64, xp.uint64)

    offset = seed * 0xD1B54A32D192ED03 + round_ * 0x8CB92BA72F3D8DD7
    x = xp.arange(rows.start, rows.stop, dtype=xp.uint64, device=where.device)
    x = x * number(0x9E3779B97F4A7C15) + number(offset)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> number(shift))) * number(factor)
    x = x ^ (x >> number(31))
    return x < number(int(share * 2.0**64))
