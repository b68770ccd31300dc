"""One tree on the CPU engine: who is in which node, and which sums are worth keeping."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.layouts import by_column, by_row
from ensemble_gpu.kernels.cpu.memory import kept_array, scratch_array
from ensemble_gpu.kernels.cpu.sharing import ALONE
from ensemble_gpu.kernels.cpu.trees import (
    class_splits,
    pair_runs,
    pair_splits,
    partition,
    splits,
    sums,
)
from ensemble_gpu.kernels.cpu.trees.kept import KeptSums
from ensemble_gpu.kernels.cpu.trees.rows import WIDE, Others, Rows, Tasks
from ensemble_gpu.kernels.host.criteria import scoring_of
from ensemble_gpu.kernels.host.records import (
    Found,
    NodeBatch,
    batch_of,
    record_of,
    runs_for,
    wholes_of,
)
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.tree_protocol import (
    GINI,
    VARIANCE,
    Frontier,
    Sample,
    SplitRule,
    Splits,
)

# Nodes of at least this many rows keep their sums, so that one child's come from its sibling's.
KEEP_ROWS = 1024
# So many times as many rows in the sample repay it: boosted trees of 4,000 x 20 take 83 ms without
# and 95 ms with kept sums, of 8,000 x 20 120 and 113 ms. Without them, nothing of it is compiled.
KEEP_SAMPLE = 6
# Moving a row costs as much as adding it up for so many features.
MOVE = 8
# Levels after which codes are laid out anew.
TIDY = 6
# Rows times features below which a second thread costs more than it brings.
CELLS_PER_THREAD = 100_000

# function(part) for every part, on threads
Map = Callable[[Callable[[Any], Any], Any], list[Any]]


def _moments(packed: np.ndarray) -> np.ndarray:
    """H and G [row, 2] of G 2^32 + H [row, 1]."""
    low = packed & 0xFFFFFFFF
    return np.concatenate([low, (packed - low) >> 32], axis=1)


def _is_free(rule: SplitRule) -> bool:
    """Whether thresholds are the best ones, without conditions."""
    bound = rule.monotone or rule.random or bool(rule.categorical.any())
    return not bound and rule.min_rows == 1 and rule.min_weight == 0


def is_plain(rule: SplitRule, sample: Sample) -> bool:
    """The usual case: two statistics and no conditions (pair_splits.py)."""
    return _is_free(rule) and sample.n_stats == 2 and rule.criterion in (GINI, VARIANCE)


class CpuGrower:
    """One tree; `threads` share the features of a node (or the nodes, where features are drawn)."""

    def __init__(
        self, codes: Codes, sample: Sample, rule: SplitRule, threads: int, map_: Map
    ) -> None:
        self.matrix, self.width, self.p = by_row(codes), codes.width, codes.n_features
        self.codes = self.matrix
        # most of the rows are read where they are, and a split reads one code of each
        dense = sample.rows is None or 2 * len(sample.rows) >= codes.n_rows
        self.columns = by_column(codes) if dense else None
        self.rule, self.n_stats = rule, sample.n_stats
        self.scoring = scoring_of(rule, sample.n_stats)
        self.threads, self.map = threads, map_
        self.sampled = sample.rows
        every, values = sample.rows is None, sample.values
        rows = slice(None) if every else sample.rows
        self.order = (
            np.arange(codes.n_rows, dtype=np.uint32) if every else np.array(rows, np.uint32)
        )
        label = np.zeros(0) if sample.label is None else sample.label
        narrow = label.astype(np.uint8 if sample.n_stats <= 256 else np.uint32)
        self.label = narrow if sample.label is None else narrow[rows]
        self.target = self.targets = sample.target
        self.plain = is_plain(rule, sample)
        self.free = _is_free(rule) and sample.label is not None and self.n_stats > 2
        own = values.copy() if every else values[rows]
        self.values = np.ascontiguousarray(own, dtype=np.int64)
        self.laid = scratch_array((len(self.order), self.matrix.shape[1]), self.matrix.dtype)
        self.place: np.ndarray | None = None  # in the matrix, of the rows as they are laid out
        self.moves = 0
        if not dense:
            self._tidy()
        self.start = np.zeros(1, dtype=np.int64)
        self.stop = np.full(1, len(self.order), dtype=np.int64)
        self.leaf = np.ones(1, dtype=bool)
        self.n_nodes = 1
        columns = self.n_stats + self.scoring.counted
        self.kept = KeptSums((self.p, self.width, columns))
        movable = {"order": self.order, "label": self.label, "values": self.values}
        self.others = Others(
            *(kept_array(self.matrix, name, a.shape, a.dtype) for name, a in movable.items())
        )

    def _tidy(self) -> None:
        """Lay out codes and targets in the order of the nodes.

        Levels later the rows of a node are scattered over the matrix, and reading them would miss
        the cache. A copy now and then costs little.
        """
        self.place = self.order if self.place is None else self.place[self.order]
        partition.gather(self.matrix.view(np.uint64), self.place, self.laid.view(np.uint64))
        self.codes = self.laid
        self.target = None if self.targets is None else self.targets[self.place]
        self.order = np.arange(len(self.order), dtype=np.uint32)
        self.moves = 0

    @property
    def rows(self) -> Rows:
        return Rows(self.codes, self.order, self.label, self.values, self.width)

    @property
    def packed(self) -> bool:
        """Whether both moments of a row are in one integer."""
        return not len(self.label) and self.values.shape[1] < self.n_stats

    def total(self) -> np.ndarray:
        if len(self.label):
            weights = np.zeros((self.n_stats, 1), dtype=np.int64)
            sums.sums_by(self.label, self.values, weights)
            return weights[:, 0]
        if not self.packed:
            return self.values.sum(axis=0)
        total = np.zeros(2, dtype=np.int64)
        sums.sum_packed(self.values, total)
        return total

    def n_sampled(self) -> int:
        return len(self.order)

    def nodes(self) -> np.ndarray:
        out = np.empty(len(self.matrix), dtype=np.int64)
        leaves = np.flatnonzero(self.leaf[: self.n_nodes])
        rows = self.order if self.place is None else self.place[self.order]
        start, stop = (a[leaves].astype(np.int64, copy=False) for a in (self.start, self.stop))
        partition.place(rows, start, stop, leaves, out)
        return out if self.sampled is None else out[self.sampled]

    def _threads(self, n_rows: int, n_features: int) -> int:
        """One thread where the work would not repay waking the others."""
        return self.threads if n_rows * n_features >= 2 * CELLS_PER_THREAD else 1

    def sums(self, frontier: Frontier) -> np.ndarray:
        start, stop = self.start[frontier.nodes], self.stop[frontier.nodes]
        features = frontier.features
        if features is None:
            features = np.arange(self.p)[None, :]
        columns, tried = self.n_stats + self.scoring.counted, features.shape[1]
        if self.packed and self.scoring.counted and self.codes.dtype == np.uint8:
            return self._packed_sums(frontier.features, start, stop)
        out = np.zeros((len(start), tried, self.width, columns), dtype=np.int64)
        rows = self.rows._replace(values=_moments(self.values)) if self.packed else self.rows
        threads = min(self._threads(int((stop - start).sum()), tried), tried)

        def run(t: int) -> None:
            lo, hi = tried * t // threads, tried * (t + 1) // threads
            own = np.ascontiguousarray(features[:, lo:hi])
            sums.node_sums(rows, self.scoring.counted, start, stop, own, out[:, lo:hi])

        self.map(run, range(threads))
        return out

    def _packed_sums(
        self, features: np.ndarray | None, start: np.ndarray, stop: np.ndarray
    ) -> np.ndarray:
        """`sums` of packed moments, eight features at a time; threads share the tiles."""
        wanted = np.ones((1, self.p), dtype=bool)
        if features is not None:
            wanted = np.zeros((len(start), self.p), dtype=bool)
            np.put_along_axis(wanted, features, True, axis=1)
        words = self.codes.view(np.uint64)
        n_tiles = words.shape[1]
        out = np.zeros((len(start), self.p, self.width, 3), dtype=np.int64)
        threads = min(self._threads(int((stop - start).sum()), self.p), n_tiles)

        def run(t: int) -> None:
            lo, hi = n_tiles * t // threads, n_tiles * (t + 1) // threads
            sums.packed_sums(words, self.rows, start, stop, wanted, lo, hi, out)

        self.map(run, range(threads))
        return out if features is None else np.take_along_axis(out, features[:, :, None, None], 1)

    def _unpack(self) -> None:
        """Both moments of a row side by side, as the general search takes them."""
        self.values = _moments(self.values)
        values = scratch_array(self.values.shape, self.values.dtype)
        self.others = self.others._replace(values=values)

    def split(self, frontier: Frontier) -> Splits:
        nodes = frontier.nodes
        if self.packed:
            self._unpack()
        found = Found(len(nodes), self.rule, self.n_stats, self.width)
        size = self.stop[nodes] - self.start[nodes]
        whole = wholes_of(frontier.sums, size, self.rule)
        features = frontier.features
        large = np.zeros(len(nodes), dtype=bool)
        if features is None:
            features = np.arange(self.p)[None, :]
            keeps = self.width <= WIDE and len(self.order) >= KEEP_SAMPLE * KEEP_ROWS
            large = size >= (KEEP_ROWS if keeps else np.inf)
        batch = batch_of(frontier, features, self.start[nodes], self.stop[nodes], whole)
        if large.any():
            self._split_sums(nodes, np.flatnonzero(large), batch, found)
        if not large.all():
            if self.moves >= TIDY and not large.any():
                self._tidy()
            self._split_rows(np.flatnonzero(~large), batch, found)
        self.kept.drop_inherited()
        return found.splits()

    def _split_sums(
        self, nodes: np.ndarray, at: np.ndarray, batch: NodeBatch, found: Found
    ) -> None:
        """Splits of the nodes at these places of the frontier, from sums that are kept.

        Every thread has its features: it adds up the smaller child of each pair, takes the other
        one's sums from their parent's, and searches them all.
        """
        size, kept = self.stop - self.start, self.kept
        build = np.array(kept.plan(nodes[at], size), dtype=np.int64).reshape(-1, 3)
        slots = np.array([kept.slot[node] for node in nodes[at].tolist()])
        first, last = self.start[build[:, 0]], self.stop[build[:, 0]]
        tasks = Tasks(first, last, *np.ascontiguousarray(build[:, 1:].T))
        own_batch = batch._replace(
            whole=batch.whole[at], bounds=batch.bounds[at], key=batch.key[at]
        )
        threads = min(self._threads(int(size[build[:, 0]].sum()) + len(at), self.p), self.p)
        own = [Found(len(at), self.rule, self.n_stats, self.width) for _ in range(threads)]

        def run(t: int) -> None:
            lo, hi = self.p * t // threads, self.p * (t + 1) // threads
            sums.add_up(self.rows, self.scoring.counted, tasks, kept.pool, lo, hi)
            splits.search_sums(
                self.scoring, kept.pool, slots, own_batch, lo, hi, own[t].arrays,
                runs_for(self.width, kept.pool.shape[3]),
            )  # fmt: skip

        self.map(run, range(threads))
        for other in own[1:]:  # of equal scores the first feature's
            own[0].take(other, other.score > own[0].score)
        found.put(at, own[0])

    def _split_rows(self, at: np.ndarray, batch: NodeBatch, found: Found) -> None:
        """Splits of the nodes at these places of the frontier, straight from their rows."""
        size = (batch.stop - batch.start)[at]
        largest, width, drawn = int(size.max()), self.width, len(batch.features) > 1

        def run(part: slice) -> None:
            which = at[part]
            own = batch._replace(features=batch.features[which]) if drawn else batch
            if self.plain:
                split = pair_splits.split_wide_pairs if width > WIDE else pair_splits.split_pairs
                pair_work = pair_runs.work_for(self.codes, width, largest)
                split(
                    self.scoring,
                    pair_runs.UNCOUNTED,
                    self.rows,
                    which,
                    own,
                    found.arrays,
                    pair_work,
                )
                return
            work = splits.node_work(width, self.n_stats + self.scoring.counted, largest)
            common = self.scoring, self.rows, which, own, found.arrays, work
            if self.free:
                classes = class_splits.class_work(self.codes, width, self.n_stats, largest)
                splits.split_class_nodes(*common, classes)
            else:
                splits.split_nodes(*common)

        self.map(run, self._parts(size, batch.features.shape[1]))

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

        record = record_of(splits)
        if self.columns is None or self.place is not None:
            cells, steps = self.codes.reshape(-1), (self.codes.shape[1], 1)
        else:
            cells, steps = self.columns.reshape(-1), (1, self.columns.shape[1])

        def run(part: slice) -> None:
            pieces = np.empty((part.stop - part.start, partition.PIECE), dtype=np.int64)
            partition.partition(
                ALONE, pieces, cells, steps, self.rows, start[part], stop[part], record[part],
                splits.subset[part], self.others, n_left[part],
            )  # fmt: skip

        self.map(run, self._parts(stop - start, MOVE))
        self.moves += 1
        first, last = self.n_nodes, self.n_nodes + 2 * len(nodes)
        self.kept.inherit(nodes, first)
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
        partition.pure(self.order, self.target, self.start[nodes], self.stop[nodes], out)
        return out
