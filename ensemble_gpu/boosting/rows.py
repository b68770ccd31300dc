"""From rows to what the loop needs: rows held out, and weights of rows sorted by class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import Binned, Rows
from ensemble_gpu.data.sampling import stratified_holdout
from ensemble_gpu.kernels.fixedpoint import log2_fixed
from ensemble_gpu.kernels.protocol import Layout


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
    rows: Rows, keep: Any | None, n_classes: int, fraction: float, random_state: Any, where: Where
) -> tuple[Rows, Any]:
    """Validation rows drawn from every class, and the mask of the rows left for training.

    With n_classes = 1 the target is no class: rows are drawn from all.
    """
    index = where.host(rows.target) if n_classes > 1 else np.zeros(rows.X.shape[0], dtype=np.int64)
    if keep is not None:
        index = np.where(where.host(keep), index, -1)
    chosen = stratified_holdout(index, n_classes, fraction, random_state)
    rest = np.ones(len(index), dtype=bool)
    rest[chosen] = False
    left = where.put(rest)
    return rows.take(where.put(chosen)), left if keep is None else keep & left


def prepare(binned: Binned, group_of: np.ndarray) -> ClassSortedData:
    """Rows binned in a range for each class: the logarithms of their weights, which are > 0."""
    assert binned.starts is not None
    where, layout = binned.engine.where, Layout(binned.starts, group_of)
    sizes = np.diff(layout.starts).astype(np.float64)
    if binned.weights is None:
        return ClassSortedData(binned.matrix, layout, None, 1.0, sizes / sizes.sum())
    weights = where.host(binned.weights)
    lightest = weight_of_one(weights)
    relative = weights / weights.max()  # so that no sum overflows
    # fsum is correctly rounded: the shares do not depend on the order of the rows
    sizes = np.array([math.fsum(relative[a:b]) for a, b in pairwise(layout.starts)])
    log_weights = log2_fixed(binned.weights, where)
    return ClassSortedData(binned.matrix, layout, log_weights, lightest, sizes / math.fsum(sizes))
