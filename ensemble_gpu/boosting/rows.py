"""From rows to what the loop needs: rows held out, and weights of rows sorted by class."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import Binned, Rows
from ensemble_gpu.data.sampling import stratified_holdout
from ensemble_gpu.kernels.fixedpoint import INV_LN2, UNIT, log2_fixed
from ensemble_gpu.kernels.protocol import Layout

# Outputs that rows begin with count up to this size: e^-y F is far from overflow.
LARGEST_EXPONENT = 500.0


@dataclass(frozen=True)
class ClassSortedData:
    """Rows sorted by class and binned.

    `log_weights` is the fixed-point log2 of the sample weights (None: all equal), `lightest` the
    smallest of them, `shares` the classes' shares of the total, `loss` the mean of exp(-margin) of
    the outputs that the rows begin with.
    """

    matrix: BinnedMatrix
    layout: Layout
    log_weights: Any | None
    lightest: float
    shares: np.ndarray
    loss: float = 1.0


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
        prepared = ClassSortedData(binned.matrix, layout, None, 1.0, sizes / sizes.sum())
        return _with_offset(prepared, binned)
    weights = where.host(binned.weights)
    lightest = weight_of_one(weights)
    relative = weights / weights.max()  # so that no sum overflows
    # fsum is correctly rounded: the shares do not depend on the order of the rows
    sizes = np.array([math.fsum(relative[a:b]) for a, b in pairwise(layout.starts)])
    log_weights = log2_fixed(binned.weights, where)
    shares = sizes / math.fsum(sizes)
    prepared = ClassSortedData(binned.matrix, layout, log_weights, lightest, shares)
    return _with_offset(prepared, binned)


def _with_offset(prepared: ClassSortedData, binned: Binned) -> ClassSortedData:
    """Two classes that begin with outputs F: weights w exp(-y F), as if rounds had led there.

    The lightest row keeps its share of the weight, which smooths the leaves.
    """
    if binned.offset is None or prepared.layout.n_classes != 2:
        return prepared
    engine, where, xp = binned.engine, binned.engine.where, binned.engine.where.xp
    against = np.repeat([1.0, -1.0], np.diff(prepared.layout.starts))
    most = where.full(LARGEST_EXPONENT)
    v = xp.minimum(xp.maximum(binned.offset[:, 0] * where.put(against), -most), most)
    logs = xp.astype(xp.round(v * (INV_LN2 * UNIT)), xp.int64)
    if prepared.log_weights is not None:
        logs = logs + prepared.log_weights
    factor = where.host(engine.exp(v))
    weights = np.ones(len(factor)) if binned.weights is None else where.host(binned.weights)
    relative = weights / weights.max()
    loss = math.fsum(relative * factor) / math.fsum(relative)
    return replace(prepared, log_weights=logs, lightest=prepared.lightest * loss, loss=loss)
