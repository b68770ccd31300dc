"""From validated rows to what the loop needs: who is trained on, codes, layout, weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.matrix import BinnedMatrix, bin_matrix, sort_by_class
from ensemble_gpu.data.rows import Rows
from ensemble_gpu.data.sampling import stratified_holdout
from ensemble_gpu.kernels.fixedpoint import log2_fixed
from ensemble_gpu.kernels.protocol import Engine, Layout


@dataclass(frozen=True)
class ClassSortedData:
    """Rows sorted by class and binned.

    `log_weights` is the fixed-point log2 of the sample weights (None: all equal), `lightest` the
    smallest of them, `shares` the classes' shares of the total.
    """

    matrix: BinnedMatrix
    layout: Layout
    log_weights: Any | None
    lightest: float
    shares: np.ndarray


def hold_out(
    rows: Rows, keep: Any | None, n_classes: int, fraction: float, random_state: Any, here: Where
) -> tuple[Rows, Any]:
    """Validation rows drawn from every class, and the mask of the rows left for training.

    With n_classes = 1 the target is no class: rows are drawn from all.
    """
    xp = here.xp
    index = here.host(rows.target) if n_classes > 1 else np.zeros(rows.X.shape[0], dtype=np.int64)
    if keep is not None:
        index = np.where(here.host(keep), index, -1)
    chosen = stratified_holdout(index, n_classes, fraction, random_state)
    rest = np.ones(len(index), dtype=bool)
    rest[chosen] = False
    at = here.put(chosen)
    weights = None if rows.weights is None else xp.take(rows.weights, at)
    held_out = Rows(xp.take(rows.X, at, axis=0), xp.take(rows.target, at), weights)
    return held_out, here.put(rest) if keep is None else keep & here.put(rest)


def prepare(
    engine: Engine, rows: Rows, keep: Any | None, group_of: np.ndarray, max_bins: int, here: Where
) -> ClassSortedData:
    """Sort the kept rows by class, bin them, take the logarithms of their weights."""
    sorted_rows = sort_by_class(rows.target, group_of.shape[1], keep, here)
    layout = Layout(sorted_rows.starts, group_of)
    matrix = bin_matrix(engine, rows.X, sorted_rows.rows, layout, max_bins)
    sizes = np.diff(layout.starts).astype(np.float64)
    if rows.weights is None:
        return ClassSortedData(matrix, layout, None, 1.0, sizes / sizes.sum())
    weights = here.xp.take(rows.weights, sorted_rows.rows)
    on_host = here.host(weights)
    on_host = on_host / on_host.max()  # so that no sum overflows
    # fsum is correctly rounded: the shares do not depend on the order of the rows
    sizes = np.array([math.fsum(on_host[a:b]) for a, b in pairwise(layout.starts)])
    lightest = weight_of_one(here.host(weights))
    return ClassSortedData(
        matrix, layout, log2_fixed(weights, here), lightest, sizes / math.fsum(sizes)
    )
