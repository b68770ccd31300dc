"""Validated rows, and the same rows binned: made once, used by as many fits as wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.arrays.sparse import is_no_array, take_rows
from ensemble_gpu.arrays.streamed import is_streamed
from ensemble_gpu.data.categories import NO_CATEGORIES, Categories
from ensemble_gpu.data.groups import Groups
from ensemble_gpu.data.keys import row_keys
from ensemble_gpu.data.matrix import BinnedMatrix, bin_matrix, gaps_of_all, sort_by_class
from ensemble_gpu.kernels.protocol import Engine, Layout


@dataclass(frozen=True)
class Rows:
    """Validated rows on one device: features, label index or target, weights (None: all equal).

    `offset` [rows, outputs] is what is added to the outputs of boosting (None: nothing).
    X is an array, or on the host a sparse matrix (arrays/sparse.py) or rows that are read in passes
    (arrays/streamed.py). `groups` are the queries of a
    ranking (None: there are none).
    """

    X: Any
    target: Any
    weights: Any | None
    offset: Any | None = None
    groups: Groups | None = None

    def seen_by(self, engine: Engine) -> Rows:
        """The same memory, as arrays that the engine takes."""
        weights, offset = (
            None if a is None else engine.view(a) for a in (self.weights, self.offset)
        )
        X = self.X if is_no_array(self.X) else engine.view(self.X)
        groups = self.groups
        if groups is not None:
            groups = replace(groups, index=engine.view(groups.index))
        return Rows(X, engine.view(self.target), weights, offset, groups)

    def take(self, at: Any) -> Rows:
        """The rows at the given positions."""
        xp = locate(self.X).xp
        weights, offset = (
            None if a is None else xp.take(a, at, axis=0) for a in (self.weights, self.offset)
        )
        groups = None if self.groups is None else self.groups.taken(at)
        return Rows(take_rows(self.X, at), xp.take(self.target, at), weights, offset, groups)

    def apart(self, at: Any) -> Rows:
        """The same, to evaluate models of other rows."""
        found = self.take(at)
        return replace(found, X=self.X.apart(at)) if is_streamed(self.X) else found


@dataclass(frozen=True, kw_only=True)
class OrderedRows:
    """Rows that take part in a fit, in an order of their own, without their features.

    `order` are their positions among those that were given (None: all of them, as given). Target,
    weights (None: all equal) and offset (None: none) belong to the ordered rows, in the engine's
    namespace. `keys` (data/keys.py) are theirs too, on the host, where draws need them. Rows of
    `groups` are in order of group, and of target within it.
    """

    engine: Engine
    target: Any
    weights: Any | None
    order: Any | None
    offset: Any | None = None
    keys: np.ndarray | None = None
    groups: Groups | None = None

    @property
    def n_rows(self) -> int:
        return self.target.shape[-1]


@dataclass(frozen=True, kw_only=True)
class Binned(OrderedRows):
    """Binned rows: fits that share them differ in weights, in targets or in parameters.

    Range r is the binned rows `starts[r]` to `starts[r + 1]`; no starts: codes for trees.
    `tables` are counts of pairs of codes that other fits help to make (data/bins.py); None: there
    are none for these rows and weights.
    """

    matrix: BinnedMatrix
    categories: Categories
    starts: np.ndarray | None
    tables: Any | None = None

    def with_weights(self, weights: Any | None) -> Binned:
        """The same codes with other weights, one for each row that was given.

        A row of weight 0 adds nothing to any sum, but is counted as a row (min_samples_leaf).
        AdaBoost takes logarithms: its weights must be > 0.
        """
        return replace(self, weights=_in_order(weights, self.order, self.engine), tables=None)


def bin_rows(
    engine: Engine,
    rows: Rows,
    keep: Any | None,
    max_bins: int | None,
    categories: Categories = NO_CATEGORIES,
    *,
    n_ranges: int | None,
    keyed: bool = False,
    gaps: list[np.ndarray] | None = None,
) -> Binned:
    """Bin the rows that take part (None: all); a category has a code of its own.

    The target of 2 or more ranges is a class, and each class becomes a range of rows. One range
    holds all rows in their own order. None is for trees: their own order, and the codes are laid
    out to be read row by row. `keyed`: with the rows' keys, for fits that draw rows. `gaps` are
    what bins are cut at (None: found from the rows that take part).
    """
    where = locate(rows.X)

    def made(order: Any | None, layout: Layout | None) -> BinnedMatrix:
        at = order
        if at is None and not is_streamed(rows.X):
            at = where.xp.arange(rows.X.shape[0], device=where.device)
        cuts = gaps
        if cuts is None and not engine.team.alone:
            cuts = gaps_of_all(engine, rows.X, at, layout, max_bins)
        return bin_matrix(engine, rows.X, at, layout, max_bins, categories.sizes(), cuts)

    return bin_by(engine, rows, keep, made, categories, n_ranges=n_ranges, keyed=keyed)


def bin_by(
    engine: Engine,
    rows: Rows,
    keep: Any | None,
    made: Callable[[Any | None, Layout | None], BinnedMatrix],
    categories: Categories = NO_CATEGORIES,
    *,
    n_ranges: int | None,
    keyed: bool = False,
) -> Binned:
    """`bin_rows` where the codes are `made` from the order of the rows and their layout."""
    order, starts = _order(rows, keep, n_ranges)
    if order is not None and order.shape[0] == 0:
        raise ValueError(
            "No row is left to train on (of this worker, where several have the rows): rows of "
            "weight zero and rows that are held out do not count. Give it more rows."
        )
    if keyed and is_streamed(rows.X):
        rows.X.want_keys()
    layout = None if starts is None else Layout(starts, np.zeros((1, len(starts) - 1), np.int64))
    return Binned(
        matrix=made(order, layout), categories=categories, starts=starts,
        **_ordered(engine, rows, order, keyed),
    )  # fmt: skip


def order_rows(engine: Engine, rows: Rows, keep: Any | None, *, keyed: bool) -> OrderedRows:
    """The rows that take part (None: all), as they were given, for learners with codes of their own
    or with none. `keyed`: with the rows' keys, for fits that draw rows.
    """
    order, _ = _order(rows, keep, 1)
    return OrderedRows(**_ordered(engine, rows, order, keyed))


def _ordered(engine: Engine, rows: Rows, order: Any | None, keyed: bool) -> dict[str, Any]:
    """The fields of `OrderedRows`."""
    keys = None
    if keyed:
        keys = row_keys(rows.target, rows.X)
        keys = keys if order is None else keys[locate(rows.X).host(order)]
    found = {
        name: _in_order(getattr(rows, name), order, engine)
        for name in ("target", "weights", "offset")
    }
    groups = rows.groups
    if groups is not None:
        groups = replace(groups, index=_in_order(groups.index, order, engine))
    return {"engine": engine, "order": order, "keys": keys, "groups": groups, **found}


def positions(rows: Rows, keep: Any | None) -> Any | None:
    """Of the rows that take part: as given (None: all), those of groups by group and target."""
    xp = locate(rows.target).xp
    at = None if keep is None else xp.nonzero(keep)[0]
    if rows.groups is None:
        return at
    order = at
    for key in (rows.target, rows.groups.index):
        key = key if order is None else xp.take(key, order)
        by_key = xp.argsort(key, stable=True)
        order = by_key if order is None else xp.take(order, by_key)
    return order


def _order(
    rows: Rows, keep: Any | None, n_ranges: int | None
) -> tuple[Any | None, np.ndarray | None]:
    """Positions of the rows that take part, and where each range begins."""
    if n_ranges is not None and n_ranges > 1:
        by_class = sort_by_class(rows.target, n_ranges, keep, locate(rows.X))
        return by_class.rows, by_class.starts
    order = positions(rows, keep)
    n_rows = rows.target.shape[0] if order is None else order.shape[0]
    return order, None if n_ranges is None else np.array([0, n_rows])


def _in_order(array: Any | None, order: Any | None, engine: Engine) -> Any | None:
    """The entries at the positions `order` (None: all), in the engine's namespace."""
    if array is None:
        return None
    return engine.adopt(array if order is None else locate(array).xp.take(array, order, axis=0))
