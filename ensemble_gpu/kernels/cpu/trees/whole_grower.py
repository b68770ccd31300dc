"""A grower that grows whole trees in compiled code, where it can."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.layouts import by_row
from ensemble_gpu.kernels.cpu.memory import kept_array, scratch_array
from ensemble_gpu.kernels.cpu.sharing import ALONE
from ensemble_gpu.kernels.cpu.threads import Pace, Run
from ensemble_gpu.kernels.cpu.trees.class_splits import class_work
from ensemble_gpu.kernels.cpu.trees.grower import TIDY, CpuGrower, Map
from ensemble_gpu.kernels.cpu.trees.pair_categories import categories_for
from ensemble_gpu.kernels.cpu.trees.pair_runs import (
    UNCOUNTED,
    Counting,
    counting,
    works_for,
)
from ensemble_gpu.kernels.cpu.trees.pool import TRIED, Pool, pool_for
from ensemble_gpu.kernels.cpu.trees.rows import FEATURES
from ensemble_gpu.kernels.cpu.trees.splits import node_work
from ensemble_gpu.kernels.cpu.trees.whole import grow_whole
from ensemble_gpu.kernels.cpu.trees.whole_arrays import (
    BLOCK,
    Growth,
    Layout,
    block_of,
    found_for,
    meetings_of,
    waiting_for,
)
from ensemble_gpu.kernels.host.nodes import NodeArrays
from ensemble_gpu.kernels.later import Later
from ensemble_gpu.kernels.protocol import PACK_BITS, Codes
from ensemble_gpu.kernels.tree_protocol import (
    ENTROPY,
    ERROR,
    GINI,
    LEAF,
    VARIANCE,
    Sample,
    SplitRule,
)

# Nodes of at least this many rows keep their sums, so that one child's come from its sibling's.
KEEP_ROWS = 1024
# Few leaves do not repay laying codes out anew.
FEW_LEAVES, NEVER_TIDY = 256, 1 << 30
# Larger trees wait for their kernel rather than grow step by step meanwhile.
STEPWISE_ROWS = 1 << 20
# Bytes of kept sums; nodes beyond them are searched row by row.
POOL_BYTES = 1 << 26


class WholeGrower(CpuGrower):
    """A `WholeTreeGrower`; `count` says how rows are counted where there are two statistics.

    None: they are searched in general, which one thread does. `later` is the kernel of whole trees.
    """

    def __init__(
        self,
        codes: Codes,
        sample: Sample,
        rule: SplitRule,
        run: Run,
        pace: Pace,
        map_: Map,
        count: Counting | None,
        later: Later,
    ) -> None:
        super().__init__(codes, sample, rule, run.threads, map_)
        self.run, self.pace, self.count, self.later = run, pace, count, later

    def grows_whole(self, limits: Any) -> bool:
        # in general sums are not kept: only where each node tries a few features
        few = self.threads == 1 and limits.n_features < self.p
        return self.count is not None or few

    def grow_whole(
        self, limits: Any, rounding: float, root: NodeArrays
    ) -> tuple[NodeArrays, np.ndarray | None] | None:
        if len(self.order) <= STEPWISE_ROWS and self.later.is_awaited:
            return None
        if self.packed and self.count is None:
            self._unpack()
        n, rule, words = len(self.order), self.scoring, root.subset.shape[1]
        n_nodes, columns = self._most_nodes(limits), self.n_stats + rule.counted
        tree = NodeArrays(*(scratch_array((n_nodes, *a.shape[1:]), a.dtype) for a in root))
        for whole, a in zip(tree, root, strict=True):
            whole[:1] = a
        start, stop = (scratch_array((n_nodes,), np.int64) for _ in range(2))
        start[0], stop[0] = 0, n
        growth = self._growth(limits, rounding)
        block = min(BLOCK, n_nodes + n_nodes % 2)
        limited = growth.max_leaves >= 0
        waiting = waiting_for(n_nodes if limited else 0, columns, words)
        none = np.zeros((0, 0), dtype=np.uint64), 0
        sets, most = none if limits.interactions is None else limits.interactions.bits()
        layout, room = self._layout(growth), self._room(growth, block, sets.shape[1] > 0)
        given = (
            ALONE, rule, self.count or UNCOUNTED, self.rows, layout, self.others, growth,
            (start, stop), tree, block_of(block, n, columns, words, room),
            meetings_of(sets, most, n_nodes, self.p), *self._work(growth, n_nodes, block, words),
            waiting,
        )  # fmt: skip
        if n <= STEPWISE_ROWS and not self.later.is_at_hand(ALONE, *given):
            return None
        m, moved = self.pace.call(self.run, lambda: n, grow_whole, *given)
        if moved:
            self.codes, self.place = self.laid, layout.place[:n]
        self.start, self.stop, self.n_nodes = start[:m], stop[:m], m
        grown = NodeArrays(*(a[:m] for a in tree))
        self.leaf = grown.feature == LEAF
        return grown, waiting.marked[:m] if limited else None

    @staticmethod
    def _room(growth: Growth, block: int, limited: bool) -> int:
        """Features that the nodes of a block may draw."""
        return growth.k * (block if growth.k < growth.p or limited else 1)

    def _growth(self, limits: Any, rounding: float) -> Growth:
        most = -1 if limits.max_leaves is None else limits.max_leaves
        return Growth(
            self.p, min(limits.n_features, self.p), self.free,
            max(limits.min_rows_split, 2 * self.scoring.min_rows, 2),
            -1 if limits.max_depth is None else limits.max_depth, most,
            float(limits.least_gain), rounding, NEVER_TIDY if 0 < most <= FEW_LEAVES else TIDY,
        )  # fmt: skip

    def _work(self, growth: Growth, n_nodes: int, block: int, words: int) -> tuple[Any, ...]:
        """Scratch arrays: pool, works, categories, node_work, class_work of `grow_whole`."""
        n, columns, workers = len(self.order), self.n_stats + self.scoring.counted, self.threads
        if self.count is None:
            classes = class_work(self.codes, self.width, self.n_stats, n)
            return None, None, None, node_work(self.width, columns, n), classes
        pool = self._pool(growth, n_nodes, block, words)
        works = works_for(self.codes, self.width, n, workers)
        sets = bool(self.rule.categorical.any())
        categories = categories_for(self.width, columns, workers) if sets else None
        return pool, works, categories, None, None

    def _most_nodes(self, limits: Any) -> int:
        """How many nodes a tree may have while it grows.

        Best first, a node that is split as the only one of a step is split in the tree at the end.
        Several are split at once only while all leaves are within the limit (SPECULATION): that
        makes no more than twice the splits of the tree.
        """
        most = 2 * len(self.order)
        if limits.max_depth is not None and limits.max_depth < 31:
            most = min(most, 2 ** (limits.max_depth + 1))
        if limits.max_leaves is not None:
            most = min(most, 4 * limits.max_leaves)
        return most + 2

    def _pool(self, growth: Growth, n_nodes: int, block: int, words: int) -> Pool:
        """Room for kept sums; none where they are not worth it."""
        n, most = len(self.order), 0
        n_tiles = self.matrix.shape[1] // FEATURES
        if n >= 2 * KEEP_ROWS and TRIED * growth.k >= self.p:
            slot_bytes = 16 * FEATURES * n_tiles * self.width
            most = min(POOL_BYTES // slot_bytes, 2 * (n // KEEP_ROWS), n_nodes)
        parts = min(n_tiles, self.run.threads)
        found = found_for(2 * most * parts, 2 + self.scoring.counted, words)
        shape = most, FEATURES * n_tiles, 2, self.width
        cells = kept_array(self.matrix, "sums", shape, np.int64)
        return pool_for(cells, n_nodes, block, found, self.run.threads, KEEP_ROWS)

    def _layout(self, growth: Growth) -> Layout:
        n, none = len(self.order), np.zeros(0, dtype=np.int64)
        target, targets = (none if a is None else a for a in (self.target, self.targets))
        place = self.place
        if place is None:
            # few leaves and shallow trees are never laid out anew
            laid = growth.tidy < NEVER_TIDY and not 0 <= growth.max_depth <= growth.tidy
            place = np.arange(len(self.matrix) if laid else 0, dtype=np.uint32)
        laid_steps = self.laid.shape[1], 1
        cells, steps = self.codes.reshape(-1), laid_steps
        if self.columns is not None and self.place is None:
            cells, steps = self.columns.reshape(-1), (1, self.columns.shape[1])
        laid_target = scratch_array((n if len(targets) else 0,), np.int64)
        return Layout(
            self.codes.view(np.uint64), self.matrix.view(np.uint64), self.laid.view(np.uint64),
            self.laid, place, target, targets, laid_target, cells, self.laid.reshape(-1), steps,
            laid_steps,
        )  # fmt: skip


def _counting_for(codes: Codes, sample: Sample, rule: SplitRule) -> Counting | None:
    """How the rows of two statistics with one-byte codes are counted; None for others."""
    kinds = (VARIANCE,) if sample.label is None else (GINI, ENTROPY, ERROR)
    pairs = sample.n_stats == 2 and rule.criterion in kinds and not rule.random
    if not pairs or by_row(codes).dtype != np.uint8:
        return None
    values = sample.values
    n = values.shape[0] if sample.rows is None else len(sample.rows)
    packed = sample.label is None and values.shape[1] == 1
    first, second = (
        1 << PACK_BITS if packed else int(abs(values[:, column]).max(initial=0))
        for column in (0, -1)
    )
    count = counting(first, second, n, rule.min_rows > 1)
    return UNCOUNTED if count is None and rule.min_rows == 1 else count


def grower_for(
    codes: Codes, sample: Sample, rule: SplitRule, run: Run, pace: Pace, map_: Map, later: Later
) -> WholeGrower:
    """The grower of a tree; trees of a fit share `pace` and `later`."""
    count = _counting_for(codes, sample, rule)
    return WholeGrower(codes, sample, rule, run, pace, map_, count, later)
