"""One tree on the CPU engine: who is in which node, and which sums are worth keeping."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.memory import scratch_array
from ensemble_gpu.kernels.cpu.trees import levels as whole_levels
from ensemble_gpu.kernels.cpu.trees import pair_splits as pair_splitting
from ensemble_gpu.kernels.cpu.trees import partition as row_kernels
from ensemble_gpu.kernels.cpu.trees import splits as kernels
from ensemble_gpu.kernels.cpu.trees.kept import KeptSums
from ensemble_gpu.kernels.cpu.trees.sorting import WIDE
from ensemble_gpu.kernels.host.criteria import scoring_of
from ensemble_gpu.kernels.host.records import Found, wholes_of
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.tree_protocol import (
    GINI,
    LEAF,
    VARIANCE,
    CodeTree,
    Frontier,
    Sample,
    SplitRule,
    Splits,
)

# Nodes of at least this many rows keep their sums, so that one child's come from its sibling's.
KEEP_ROWS = 1024
# Moving a row costs as much as adding it up for so many features.
MOVE = 8
# Levels after which codes are laid out anew.
TIDY = 6
# Rows times features below which a second thread costs more than it brings.
CELLS_PER_THREAD = 100_000

_BY_ROW = threading.Lock()

growing: Any = kernels
levels: Any = whole_levels
moving: Any = row_kernels
pairs: Any = pair_splitting

# function(part) for every part, on threads
Map = Callable[[Callable[[Any], Any], Any], list[Any]]


def by_row(codes: Codes) -> np.ndarray:
    """The codes row by row [row, feature], made once."""
    with _BY_ROW:
        if "rows" not in codes.columns:
            rows = np.ascontiguousarray(codes.data.transpose(1, 0, 2))
            codes.columns["rows"] = rows.reshape(codes.n_rows, -1)
        return codes.columns["rows"]


def by_column(codes: Codes) -> np.ndarray:
    """The codes as [row, feature], those of a feature side by side; made once."""
    rows = by_row(codes)
    with _BY_ROW:
        if "columns" not in codes.columns:
            columns = np.empty((codes.n_features, codes.n_rows), dtype=rows.dtype)
            moving.transpose(rows, columns)
            codes.columns["columns"] = columns.T
        return codes.columns["columns"]


class CpuGrower:
    """One tree; `threads` share the features of a node (or the nodes, where features are drawn)."""

    def __init__(
        self, codes: Codes, sample: Sample, rule: SplitRule, threads: int, map_: Map
    ) -> None:
        self.matrix, self.width, self.p = by_row(codes), codes.width, codes.n_features
        self.codes = self.matrix
        # a split reads one code of every row
        self.columns = by_column(codes) if sample.rows is None else None
        self.rule, self.n_stats = rule, sample.n_stats
        self.scoring = scoring_of(rule, sample.n_stats)
        self.threads, self.map = threads, map_
        self.sampled = sample.rows
        every, values = sample.rows is None, sample.values
        rows = slice(None) if every else sample.rows
        self.order = np.array(np.arange(codes.n_rows) if every else rows, dtype=np.uint32)
        label = np.zeros(0) if sample.label is None else sample.label
        narrow = label.astype(np.uint8 if sample.n_stats <= 256 else np.uint32)
        self.label = narrow if sample.label is None else narrow[rows]
        self.target = self.targets = sample.target
        free = not (rule.monotone or rule.random or rule.categorical.any())
        free = free and rule.min_rows == 1 and rule.min_weight == 0
        self.plain = free and self.n_stats == 2 and rule.criterion in (GINI, VARIANCE)
        self.free = free and sample.label is not None and self.n_stats > 2
        packed = sample.label is None and values.shape[1] < self.n_stats
        if packed and not self.fast:
            low = values & 0xFFFFFFFF
            values = np.concatenate([low, (values - low) >> 32], axis=1)
        own = values.copy() if every else values[rows]
        self.values = np.ascontiguousarray(own, dtype=np.int64)
        self.laid = scratch_array((len(self.order), self.matrix.shape[1]), self.matrix.dtype)
        self.place: np.ndarray | None = None  # in the matrix, of the rows as they are laid out
        self.moves = 0
        if not every:
            self._tidy()
        self.start = np.zeros(1, dtype=np.int64)
        self.stop = np.full(1, len(self.order), dtype=np.int64)
        self.leaf = np.ones(1, dtype=bool)
        self.n_nodes = 1
        columns = self.n_stats + self.scoring.counted
        self.sums = KeptSums((self.p, self.width, columns))
        movable = self.order, self.label, self.values
        self.others = tuple(scratch_array(a.shape, a.dtype) for a in movable)

    def _tidy(self) -> None:
        """Lay out codes and targets in the order of the nodes.

        Levels later the rows of a node are scattered over the matrix, and reading them would miss
        the cache. A copy now and then costs little.
        """
        self.place = self.order if self.place is None else self.place[self.order]
        moving.gather(self.matrix.view(np.uint64), self.place, self.laid.view(np.uint64))
        self.codes = self.laid
        self.target = None if self.targets is None else self.targets[self.place]
        self.order = np.arange(len(self.order), dtype=np.uint32)
        self.moves = 0

    @property
    def fast(self) -> bool:
        """Whether the sums of a large node are taken eight codes a word."""
        return self.plain and self.matrix.dtype == np.uint8

    @property
    def rows(self) -> tuple[np.ndarray, ...]:
        return self.codes, self.order, self.label, self.values

    def total(self) -> np.ndarray:
        if len(self.label):
            sums = np.zeros((self.n_stats, 1), dtype=np.int64)
            growing.sums_by(self.label, self.values, sums)
            return sums[:, 0]
        if self.values.shape[1] == self.n_stats:
            return self.values.sum(axis=0)
        low = self.values & 0xFFFFFFFF
        return np.array([low.sum(), ((self.values - low) >> 32).sum()])

    def nodes(self) -> np.ndarray:
        out = np.empty(len(self.matrix), dtype=np.int64)
        leaves = np.flatnonzero(self.leaf[: self.n_nodes])
        rows = self.order if self.place is None else self.place[self.order]
        start, stop = (a[leaves].astype(np.int64, copy=False) for a in (self.start, self.stop))
        moving.place(rows, start, stop, leaves, out)
        return out if self.sampled is None else out[self.sampled]

    def _threads(self, n_rows: int, n_features: int) -> int:
        """One thread where the work would not repay waking the others."""
        return self.threads if n_rows * n_features >= 2 * CELLS_PER_THREAD else 1

    def grow_levels(
        self, limits: Any, rounding: float, *root: np.ndarray
    ) -> list[np.ndarray] | None:
        """The arrays of the whole tree (trees/grow.py), level by level; None: not in this case."""
        if not self.fast or self.threads > 1:
            return None
        most = 2 * len(self.order)
        store = [scratch_array((most, *a.shape[1:]), a.dtype) for a in root]  # used in part
        for whole, a in zip(store, root, strict=True):
            whole[:1] = a
        start, stop = scratch_array((most,), np.int32), scratch_array((most,), np.int32)
        start[0], stop[0] = 0, len(self.order)
        none = np.zeros(0, dtype=np.int64)
        target, targets = (none if a is None else a for a in (self.target, self.targets))
        place = np.arange(len(self.order), dtype=np.uint32) if self.place is None else self.place
        n, moved = levels.grow_levels(
            self.scoring, *self.rows, target, self.matrix, targets, place, self.laid, self.others,
            self.width, self.p, limits.n_features, max(limits.min_rows_split, 2),
            -1 if limits.max_depth is None else limits.max_depth, limits.least_gain, rounding, TIDY,
            start, stop, *store,
        )  # fmt: skip
        if moved:
            self.codes, self.place = self.laid, place
        arrays = [a[:n] for a in store]
        self.start, self.stop, self.leaf, self.n_nodes = start[:n], stop[:n], arrays[0] == LEAF, n
        return arrays

    def split(self, frontier: Frontier) -> Splits:
        nodes = frontier.nodes
        found = Found(len(nodes), self.rule, self.n_stats, self.width)
        size = self.stop[nodes] - self.start[nodes]
        wholes = wholes_of(frontier.sums, size, self.rule)
        features = frontier.features
        large = np.zeros(len(nodes), dtype=bool)
        if features is None:
            features = np.arange(self.p)[None, :]
            large = size >= (KEEP_ROWS if self.width <= WIDE else np.inf)
        if large.any():
            self._split_sums(frontier, np.flatnonzero(large), wholes, found)
        if not large.all():
            if self.moves >= TIDY and not large.any():
                self._tidy()
            self._split_rows(frontier, features, np.flatnonzero(~large), wholes, found)
        self.sums.drop_inherited()
        return found.splits()

    def _split_sums(
        self, frontier: Frontier, at: np.ndarray, wholes: np.ndarray, found: Found
    ) -> None:
        """Splits of the nodes at these places of the frontier, from sums that are kept.

        Every thread has its features: it adds up the smaller child of each pair, takes the other
        one's sums from their parent's, and searches them all.
        """
        size, kept = self.stop - self.start, self.sums
        tasks = kept.plan(frontier.nodes[at], size)
        build = np.array(tasks, dtype=np.int64).reshape(-1, 3)
        slots = np.array([kept.slot[node] for node in frontier.nodes[at].tolist()])
        adds = self.start[build[:, 0]], self.stop[build[:, 0]], build[:, 1], build[:, 2], kept.pool
        units = self.codes.shape[1] // 8 if self.fast else self.p
        threads = min(self._threads(int(size[build[:, 0]].sum()) + len(at), self.p), units)
        own = [Found(len(at), self.rule, self.n_stats, self.width) for _ in range(threads)]

        def run(t: int) -> None:
            part = units * t // threads, units * (t + 1) // threads
            if self.fast:
                growing.split_pair_sums(
                    self.rule.criterion, self.codes.view(np.uint64), self.order, self.label,
                    self.values, *adds, *part, slots, wholes[at], *own[t].arrays[:3],
                )  # fmt: skip
            else:
                growing.split_sums(
                    self.scoring, *self.rows, *adds, *part, slots, wholes[at],
                    frontier.bounds[at], frontier.keys[at], *own[t].arrays,
                )  # fmt: skip

        self.map(run, range(threads))
        for other in own[1:]:  # of equal scores the first feature's
            own[0].take(other, other.score > own[0].score)
        for whole, array in zip(found.arrays, own[0].arrays, strict=True):
            whole[at] = array

    def _split_rows(
        self, frontier: Frontier, features: np.ndarray, at: np.ndarray, wholes: np.ndarray,
        found: Found,
    ) -> None:  # fmt: skip
        """Splits of the nodes at these places of the frontier, straight from their rows."""
        nodes = frontier.nodes[at]
        start, stop = self.start[nodes], self.stop[nodes]
        drawn = frontier.features is not None

        def run(part: slice) -> None:
            here = at[part] if len(at) < len(frontier.nodes) else part
            arrays = [a[here] for a in found.arrays]
            own = features[here] if drawn else features
            rows = (*self.rows, self.width, start[part], stop[part], own, wholes[here])
            if self.plain:
                pairs.split_pairs(self.rule.criterion, *rows, *arrays[:3])
            else:
                growing.split_nodes(
                    self.scoring, *rows, frontier.bounds[here], frontier.keys[here], *arrays,
                    self.free,
                )  # fmt: skip
            if not isinstance(here, slice):  # copies
                for whole, array in zip(found.arrays, arrays, strict=True):
                    whole[here] = array

        self.map(run, self._parts(stop - start, features.shape[1]))

    def _parts(self, sizes: np.ndarray, n_features: int) -> list[slice]:
        """Ranges of nodes with about as many rows each, one for each thread."""
        running = np.cumsum(sizes)
        threads = min(self._threads(int(running[-1]), n_features), len(sizes))
        if threads == 1:
            return [slice(0, len(sizes))]
        cuts = np.searchsorted(running, running[-1] * np.arange(1, threads) / threads)
        bounds = [0, *cuts.tolist(), len(sizes)]
        return [slice(a, b) for a, b in pairwise(bounds) if a < b]

    def partition(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        start, stop = self.start[nodes], self.stop[nodes]
        n_left = np.zeros(len(nodes), dtype=np.int64)
        offset = np.concatenate([[0], np.cumsum(stop - start)])

        codes = self.codes if self.columns is None or self.place is not None else self.columns

        def run(part: slice) -> None:
            moved = slice(offset[part.start], offset[part.stop])
            moving.partition(
                codes, self.order, self.label, self.values, self.width - 1, start[part], stop[part],
                splits.feature[part], splits.bin[part], splits.missing_left[part],
                splits.subset[part], *(a[moved] for a in self.others), n_left[part],
            )  # fmt: skip

        self.map(run, self._parts(stop - start, MOVE))
        self.moves += 1
        first, last = self.n_nodes, self.n_nodes + 2 * len(nodes)
        self.sums.inherit(nodes, first)
        if last > len(self.start):
            most = max(last, 4 * len(self.start), 1024)
            self.start, self.stop, self.leaf = (
                np.concatenate([a[:first], np.empty(most - first, dtype=a.dtype)])
                for a in (self.start, self.stop, self.leaf)
            )
        middle = start + n_left
        self.leaf[nodes] = False
        self.leaf[first:last] = True
        self.start[first:last:2], self.start[first + 1 : last : 2] = start, middle
        self.stop[first:last:2], self.stop[first + 1 : last : 2] = middle, stop
        self.n_nodes = last
        return n_left

    def pure(self, nodes: np.ndarray) -> np.ndarray:
        if self.target is None or not len(nodes):
            return np.zeros(len(nodes), dtype=bool)
        out = np.zeros(len(nodes), dtype=bool)
        moving.pure(self.order, self.target, self.start[nodes], self.stop[nodes], out)
        return out


def leaves(codes: Codes, tree: CodeTree, threads: int, map_: Map) -> np.ndarray:
    """The leaf of every row of the matrix."""
    out = np.empty(codes.n_rows, dtype=np.int64)
    rows = by_row(codes)
    bounds = [codes.n_rows * t // threads for t in range(threads + 1)]

    def run(t: int) -> None:
        moving.leaves(
            rows, bounds[t], bounds[t + 1], tree.feature, tree.bin, tree.missing_left, tree.left,
            tree.right, tree.subset, codes.width - 1, out,
        )  # fmt: skip

    map_(run, range(threads))
    return out
