"""From rows to what the loop needs: rows held out, and weights of rows sorted by class."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import Binned, Rows
from ensemble_gpu.data.sampling import Items, held_items, items_of
from ensemble_gpu.kernels.fixedpoint import INV_LN2, UNIT, log2_fixed
from ensemble_gpu.kernels.protocol import Layout
from ensemble_gpu.kernels.team import ALONE, Team, current_team

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
    rows: Rows, n_classes: int, fraction: float, random_state: Any, where: Where
) -> tuple[Rows, Rows, Any]:
    """Validation rows drawn from every class; the rows, and the mask of those left for training.

    With n_classes = 1 the target is no class: rows are drawn from all.
    """
    team = current_team()
    items, index = items_and_classes(rows, n_classes, where, team)
    held = held_items(index, items, n_classes, fraction, random_state, team)
    numbers = None if items.numbers is None else items.numbers[held]
    return set_aside_for_first(rows, items, items.rows[held], numbers, where, team)


def items_and_classes(
    rows: Rows, n_classes: int, where: Where, team: Team = ALONE, at: np.ndarray | None = None
) -> tuple[Items, np.ndarray]:
    """What can be drawn from the rows, and the class of every row (0, if there are none).

    `at` are the places of the rows among those of the worker (None: they are all its rows).
    """
    weights = None if rows.weights is None else where.host(rows.weights)
    items = items_of(row_keys(rows.target, rows.X), weights, team, at)
    if n_classes > 1:
        return items, where.host(rows.target)
    return items, np.zeros(rows.X.shape[0], dtype=np.int64)


def weight_left(rows: Rows, items: Items, held: np.ndarray) -> np.ndarray:
    """How many items of each row are left."""
    repeats = items.repeats if items.repeats is not None else 1
    return repeats - np.bincount(held, minlength=rows.X.shape[0])


def set_aside(rows: Rows, items: Items, held: np.ndarray, where: Where) -> tuple[Rows, Rows, Any]:
    """Rows that are held out, an item each; all rows with the weight that is left; which have any.

    Of a row of weight 3 one item may be held out: it takes part in training with weight 2.
    """
    left = weight_left(rows, items, held)
    apart, rest = rows.apart(where.put(held.astype(np.int64))), rows
    if items.whole:
        ones = where.put(np.ones(len(held)))
        apart, rest = replace(apart, weights=ones), replace(rows, weights=where.put(left * 1.0))
    return apart, rest, where.put(left > 0)


def set_aside_for_first(
    rows: Rows, items: Items, held: np.ndarray, numbers: np.ndarray | None, where: Where, team: Team
) -> tuple[Rows, Rows, Any]:
    """`set_aside`; the first worker has the rows held out by all, in the order of their numbers.

    No numbers: there are no other workers.
    """
    apart, rest, keep = set_aside(rows, items, held, where)
    return apart if numbers is None else of_all_workers(apart, numbers, where, team), rest, keep


def of_all_workers(rows: Rows, numbers: np.ndarray, where: Where, team: Team) -> Rows:
    """The rows of all workers in the order of their numbers, for the first one; none for others."""
    order = np.argsort(team.concatenated(numbers, to_all=False))

    def joined(array: Any) -> Any:
        if array is None:
            return None
        every = team.concatenated(where.host(array), to_all=False)
        return where.put(every[order])

    return Rows(*(joined(a) for a in (rows.X, rows.target, rows.weights, rows.offset)))


def prepare(binned: Binned, group_of: np.ndarray) -> ClassSortedData:
    """Rows binned in a range for each class: the logarithms of their weights, which are > 0."""
    assert binned.starts is not None
    where, team = binned.engine.where, binned.engine.team
    sizes = team.sum(np.diff(binned.starts)).astype(np.float64)
    layout = Layout(binned.starts, group_of, int(sizes.sum()))
    if binned.weights is None:
        prepared = ClassSortedData(binned.matrix, layout, None, 1.0, sizes / sizes.sum())
        return _with_offset(prepared, binned)
    weights = where.host(binned.weights)
    lightest = weight_of_one(weights, team)
    relative = weights / team.largest(float(weights.max()))[0]  # so that no sum overflows
    # fsum is correctly rounded: the shares do not depend on the order of the rows
    sizes = np.array([team.fsum(relative[a:b]) for a, b in pairwise(layout.starts)])
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
    factor, team = where.host(engine.exp(v)), engine.team
    weights = np.ones(len(factor)) if binned.weights is None else where.host(binned.weights)
    relative = weights / team.largest(float(weights.max()))[0]
    loss = team.fsum(relative * factor) / team.fsum(relative)
    return replace(prepared, log_weights=logs, lightest=prepared.lightest * loss, loss=loss)
