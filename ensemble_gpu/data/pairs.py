"""Explicit pairs of rows: the first is to be ranked above the second."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY, is_array, to_numpy
from ensemble_gpu.data.queries import whole_weights
from ensemble_gpu.data.validation import check_weights

SHAPE = "pairs must be integers of shape (m, 2), positions of rows: the first above the second"


@dataclass(frozen=True)
class Pairs:
    """Positions of rows (host int64), and a whole weight each."""

    upper: np.ndarray
    lower: np.ndarray
    weights: np.ndarray


def read_pairs(pairs: Any, pair_weight: Any, n_rows: int) -> Pairs:
    """Checked pairs; those of weight 0 are as if absent."""
    try:
        found = np.asarray(to_numpy(pairs) if is_array(pairs) else pairs)
    except ValueError as error:
        raise ValueError(f"{SHAPE}; {error}.") from error
    if found.size == 0:
        raise ValueError(f"{SHAPE}, at least one; got none.")
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError(f"{SHAPE}; got shape {found.shape}.")
    if found.dtype.kind not in "iu":
        raise ValueError(f"{SHAPE}; got dtype {found.dtype}.")
    found = found.astype(np.int64)
    outside = np.flatnonzero(((found < 0) | (found >= n_rows)).any(axis=1))
    if len(outside):
        k = int(outside[0])
        raise ValueError(
            f"pairs must hold positions 0 to {n_rows - 1}, X having {n_rows} rows; pair {k} is "
            f"{found[k].tolist()}."
        )
    itself = np.flatnonzero(found[:, 0] == found[:, 1])
    if len(itself):
        k = int(itself[0])
        raise ValueError(f"pairs must be of two rows; pair {k} is row {found[k, 0]} with itself.")
    weights = np.ones(len(found), dtype=np.int64)
    if pair_weight is not None:
        given = to_numpy(pair_weight) if is_array(pair_weight) else pair_weight
        if np.ndim(given) == 1 and len(given) != len(found):
            raise ValueError(
                f"pair_weight must hold {len(found)} weights, one a pair; got {len(given)}."
            )
        if np.ndim(given) == 1 and not np.any(given):
            raise ValueError("pair_weight is zero for every pair; at least one must be > 0.")
        weights = whole_weights(check_weights(given, len(found), NUMPY, "pair_weight"))
    kept = weights > 0
    return Pairs(found[kept, 0], found[kept, 1], weights[kept])
