"""A grower that grows whole trees in compiled code, where it can."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.layouts import by_row
from ensemble_gpu.kernels.cpu.memory import scratch_array
from ensemble_gpu.kernels.cpu.trees.grower import TIDY, CpuGrower, Map, is_plain
from ensemble_gpu.kernels.cpu.trees.levels import BLOCK, Growth, Layout, block_of, grow_levels
from ensemble_gpu.kernels.cpu.trees.pair_splits import work_for
from ensemble_gpu.kernels.host.nodes import NodeArrays
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.tree_protocol import LEAF, Sample, SplitRule


class LevelGrower(CpuGrower):
    """One thread, two statistics without conditions, one-byte codes: `WholeTreeGrower`."""

    def grow_levels(self, limits: Any, rounding: float, root: NodeArrays) -> NodeArrays:
        n = len(self.order)
        tree = NodeArrays(*(scratch_array((2 * n, *a.shape[1:]), a.dtype) for a in root))
        for whole, a in zip(tree, root, strict=True):
            whole[:1] = a
        start, stop = scratch_array((2 * n,), np.int64), scratch_array((2 * n,), np.int64)
        start[0], stop[0] = 0, n
        layout = self._layout()
        growth = Growth(
            self.p, limits.n_features, max(limits.min_rows_split, 2),
            -1 if limits.max_depth is None else limits.max_depth, float(limits.least_gain),
            rounding, TIDY,
        )  # fmt: skip
        m, moved = grow_levels(
            self.scoring, self.rows, layout, self.others, growth, (start, stop), tree,
            block_of(min(BLOCK, 2 * n)), work_for(self.codes, self.width, n),
        )  # fmt: skip
        if moved:
            self.codes, self.place = self.laid, layout.place
        self.start, self.stop, self.n_nodes = start[:m], stop[:m], m
        grown = NodeArrays(*(a[:m] for a in tree))
        self.leaf = grown.feature == LEAF
        return grown

    def _layout(self) -> Layout:
        n, none = len(self.order), np.zeros(0, dtype=np.int64)
        target, targets = (none if a is None else a for a in (self.target, self.targets))
        place = np.arange(n, dtype=np.uint32) if self.place is None else self.place
        return Layout(
            self.matrix.view(np.uint64), self.laid.view(np.uint64), self.laid, place, target,
            targets, scratch_array((n if len(targets) else 0,), np.int64), self.codes.reshape(-1),
            self.laid.reshape(-1), (self.laid.shape[1], 1),
        )  # fmt: skip


def grower_for(codes: Codes, sample: Sample, rule: SplitRule, threads: int, map_: Map) -> CpuGrower:
    """The grower of a tree: of whole trees, where it can."""
    grows_levels = threads == 1 and is_plain(rule, sample) and by_row(codes).dtype == np.uint8
    return (LevelGrower if grows_levels else CpuGrower)(codes, sample, rule, threads, map_)
