"""What is done with the rows in a pass over the batches: each piece of work sees block after block.

A block is the rows `first` to `first` + its length, as floats. Several pieces share one pass.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.batches.decoded import CodedRows
from ensemble_gpu.kernels.cpu.memory import scratch_array
from ensemble_gpu.kernels.host.keys import mix_in
from ensemble_gpu.kernels.protocol import Codes, Engine, Layout, code_width, no_counts, one_class

# Values of a feature that are merged at once, where all distinct ones are wanted.
MOST_MERGED = 1 << 20


class Work(Protocol):
    def __call__(self, first: int, block: np.ndarray) -> None: ...


class Gather:
    """`rows`: the rows at the positions `at`, which may be in any order."""

    def __init__(self, at: np.ndarray, n_features: int, dtype: np.dtype) -> None:
        self.at, self.rows = at, np.empty((len(at), n_features), dtype=dtype)
        self.order = np.argsort(at, kind="stable")
        self.ascending = at[self.order]

    def __call__(self, first: int, block: np.ndarray) -> None:
        low, high = np.searchsorted(self.ascending, [first, first + len(block)])
        self.rows[self.order[low:high]] = block[self.ascending[low:high] - first]


class Hash:
    """`keys` of all rows (data/keys.py) with these targets and weights."""

    def __init__(self, target: np.ndarray, weights: np.ndarray | None) -> None:
        self.target, self.weights = target, weights
        self.keys = scratch_array((len(target),), np.uint64)

    def known(self, target: np.ndarray, weights: np.ndarray | None) -> bool:
        """Whether these are the keys with such targets and weights."""
        if weights is None or self.weights is None:
            same = weights is self.weights
        else:
            same = np.array_equal(weights, self.weights)
        return same and np.array_equal(target, self.target)

    def __call__(self, first: int, block: np.ndarray) -> None:
        rows = slice(first, first + len(block))
        keys = self.keys[rows]
        keys[:] = 0
        if self.weights is not None:
            mix_in(keys, self.weights[rows][:, None])
        mix_in(keys, self.target[rows][:, None])
        mix_in(keys, block)


class Distinct:
    """`values[i]`: ascending values of column i in the rows that are marked (None: in all)."""

    def __init__(self, n_columns: int, marked: np.ndarray | None) -> None:
        self.marked = marked
        self.values = [np.zeros(0) for _ in range(n_columns)]

    def __call__(self, first: int, block: np.ndarray) -> None:
        if self.marked is not None:
            block = block[self.marked[first : first + len(block)]]
        for i in range(block.shape[1]):
            for start in range(0, len(block), MOST_MERGED):
                column = np.asarray(block[start : start + MOST_MERGED, i], dtype=np.float64)
                found = np.unique(column[~np.isnan(column)])
                self.values[i] = np.union1d(self.values[i], found)


class Place:
    """`codes` of the rows `order` (None: all), each batch's put where they belong.

    Positions ascend within a range of the layout (none: within all), so the rows of a batch in a
    range lie side by side.
    """

    def __init__(
        self,
        engine: Engine,
        edges: list[np.ndarray],
        order: np.ndarray | None,
        layout: Layout | None,
        n_rows: int,
        new_array: Any,
    ) -> None:
        self.engine, self.edges, self.order, self.layout = engine, edges, order, layout
        self.width, p = code_width(edges), len(edges)
        n = n_rows if order is None else len(order)
        starts = [0, n] if layout is None else layout.starts.tolist()
        self.ranges = list(pairwise(starts))
        tiles, kind = -(-p // 8), _code_type(self.width)
        if layout is None:
            self.data = new_array((n, tiles, 8), kind).transpose(1, 0, 2)
            counts = no_counts(p, self.width)
        else:
            self.data = new_array((tiles, n, 8), kind)
            counts = np.zeros((layout.n_classes, p, self.width), dtype=np.int64)
        self.codes = Codes(self.data, n, p, self.width, counts)

    def __call__(self, first: int, block: np.ndarray) -> None:
        last = first + len(block)
        for number, (start, stop) in enumerate(self.ranges):
            if self.order is None:
                low, high = first, last
                rows = np.arange(len(block))
            else:
                own = self.order[start:stop]
                low, high = (start + np.searchsorted(own, [first, last])).tolist()
                rows = self.order[low:high] - first
            if low == high:
                continue
            layout = None if self.layout is None else one_class(len(rows))
            part = self.engine.encode(block, self.edges, rows, layout, self.width)
            self.data[:, low:high] = part.data
            if layout is not None:
                self.codes.counts[number] += part.counts[0]


class Keep:
    """Codes of rows that are held apart (batches/decoded.py), at the edges of others."""

    def __init__(
        self, engine: Engine, edges: list[np.ndarray], gaps: list[np.ndarray], held: CodedRows
    ) -> None:
        self.engine, self.edges, self.width = engine, edges, code_width(edges)
        self.order = np.argsort(held.at, kind="stable")
        self.ascending = held.at[self.order]
        self.data = scratch_array((len(edges), len(held.at)), _code_type(self.width))
        held.fill(self.data, values_of(gaps, self.width))

    def __call__(self, first: int, block: np.ndarray) -> None:
        low, high = np.searchsorted(self.ascending, [first, first + len(block)])
        if low == high:
            return
        rows = self.ascending[low:high] - first
        part = self.engine.encode(block, self.edges, rows, one_class(len(rows)), self.width)
        places = self.order[low:high]
        for f in range(len(self.edges)):
            self.data[f, places] = part.data[f // 8, :, f % 8]


def values_of(gaps: list[np.ndarray], width: int) -> np.ndarray:
    """A value of each code [feature, code] that lies on the same side of every edge.

    Bin b holds the value below edge b, the last one the value above the last edge. A feature
    without edges has one bin, of which any value tells as much.
    """
    values = np.zeros((len(gaps), width))
    for own, gap in zip(values, gaps, strict=True):
        n = gap.shape[1]
        own[:n] = gap[0]
        own[n:] = gap[1, -1] if n else 0.0
    values[:, -1] = np.nan
    return values


def _code_type(width: int) -> type:
    """As the engine encodes (kernels/cpu/binning.py)."""
    return np.uint8 if width <= 256 else np.uint16 if width <= 1 << 16 else np.uint32
