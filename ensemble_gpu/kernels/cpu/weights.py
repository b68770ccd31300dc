"""The weights of AdaBoost on the CPU: q per plane and row, and their sums, kept in step."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.cpu import histogram, requantise, score
from ensemble_gpu.kernels.cpu.bounds import block_space
from ensemble_gpu.kernels.cpu.layouts import column
from ensemble_gpu.kernels.cpu.rounds import CpuRounds
from ensemble_gpu.kernels.cpu.threads import Pace, Run
from ensemble_gpu.kernels.protocol import N_LEAVES, Codes, Criterion, Layout, Split, WeightRule

# Cells of work below which a second thread costs more than it brings.
CELLS_PER_THREAD = 40_000
PART_ROWS = 4096
# Bytes of sums from which threads share the tiles of them: to clear and add up sums for each thread
# would cost more than to wake the threads a second time.
LARGE_SUMS = 1 << 20


class ClassSums:
    """Sums of integers per (worker, group, tile, lane, code); the parts that rows are cut into."""

    def __init__(
        self, codes: np.ndarray, n_features: int, width: int, layout: Layout, run: Run
    ) -> None:
        n_tiles, n, _ = codes.shape
        self.run = run.limited_to(n * n_features * layout.n_planes, CELLS_PER_THREAD)
        threads = self.run.threads
        self.parts = class_parts(layout.starts, threads)
        self.tiles = (codes.view(np.uint64), n_features, self.parts, layout.group_of)
        shape = (layout.n_groups, n_tiles, 8, width)
        by_tile = 8 * np.prod(shape) > LARGE_SUMS and n_tiles >= threads
        self.sums = np.zeros((1 if by_tile else threads, *shape), dtype=np.int64)
        self.total = self.sums[0]

    def add(self, q: np.ndarray) -> None:
        self.run.call(histogram.add, self.tiles, q, self.sums)


class CpuHistograms:
    """q per plane and row, and their sums (kernels/protocol.py: Histograms)."""

    def __init__(
        self, codes: Codes, layout: Layout, log_weights: np.ndarray | None, run: Run, pace: Pace
    ) -> None:
        n, planes, groups = codes.n_rows, layout.n_planes, layout.n_groups
        self.totals = ClassSums(codes.data, codes.n_features, codes.width, layout, run)
        n_parts = len(self.totals.parts)
        self.run, self.pace = self.totals.run, pace
        scored = codes.n_features * codes.width * groups
        self.score_run = run.limited_to(scored, CELLS_PER_THREAD)
        self.all_threads = max(self.run, self.score_run, key=lambda one: one.threads)
        self.spaces = score.workspace(self.all_threads.threads, groups, codes.width)
        self.blocks = block_space(
            self.all_threads.threads, groups, codes.n_features, codes.width,
            groups == 2 * planes or groups == 2,
        )  # fmt: skip
        self.codes, self.layout = codes, layout
        self.log_weights = np.zeros(0, dtype=np.int64) if log_weights is None else log_weights
        self.powers = fixedpoint.tables(layout.quantum_bits)
        self.q = np.zeros((planes, n), dtype=np.int32)
        self.count = np.zeros(n_parts, dtype=np.int64)
        lists = np.zeros(n, dtype=np.int32), np.zeros((planes, n), dtype=np.int32)
        self.rows = (self.q, *lists, self.count)
        self.largest = np.zeros((n_parts, groups), dtype=np.int64)
        self.record = np.zeros(3, dtype=np.int64)
        self.leaf_sums = np.zeros((groups, N_LEAVES), dtype=np.int64)
        self.top = np.zeros(groups, dtype=np.int64)
        lowest = np.zeros(codes.n_features)
        self.found = (lowest, self.leaf_sums, self.record, self.largest, self.top)

    def begin_again(self, codes: Codes, log_weights: np.ndarray) -> None:
        """Other weights of rows whose codes are other ones at the same place; then `requantise`."""
        self.codes, self.log_weights = codes, log_weights

    def requantise(
        self, log_tables: np.ndarray, used: np.ndarray, least: np.ndarray | None = None
    ) -> np.ndarray:
        totals, q = self.totals, self.q
        exponent = np.full(len(totals.total), fixedpoint.LOWEST_EXPONENT)
        if least is not None:
            exponent[:] = least
        self.run.call(
            requantise.requantise, self.codes.data, totals.tiles[2:], log_tables, used,
            self.log_weights, self.powers, exponent, q, self.largest,
        )  # fmt: skip
        totals.total[:] = 0
        totals.add(q)
        return exponent

    def add_up(self) -> np.ndarray:
        sums = self.totals.total
        return sums.reshape(len(sums), -1, sums.shape[-1])[:, : self.codes.n_features].copy()

    def heaviest(self) -> np.ndarray:
        return self.largest.max(axis=0, initial=0)

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        n_thresholds, abstention = criterion.n_thresholds, criterion.abstention
        asked = n_thresholds, criterion.kind, abstention, criterion.learn_missing
        total, run = self.totals.total, self.score_run
        cost = run.call(score.split, total, scale, asked, self.spaces, self.blocks, self.found)
        if cost == np.inf:
            return None
        feature, last_bin, missing_leaf = self.record.tolist()
        return Split(cost, feature, last_bin, missing_leaf, self.leaf_sums.copy(), self.top)

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        change = column(self.codes, feature), leaf_of, kept, ratio, self.largest
        self.pace.call(
            self.run, lambda: self.q.shape[1] + self.codes.n_features * int(self.count.sum()),
            histogram.rescale, self.totals.tiles, self.rows, change, self.totals.sums,
        )  # fmt: skip

    def rounds(self, criterion: Criterion, rule: WeightRule) -> CpuRounds:
        return CpuRounds(self, self.codes, self.layout, criterion, rule)


def class_parts(starts: np.ndarray, threads: int) -> np.ndarray:
    """Cut the classes' row ranges into (class, start, stop) parts; none is empty."""
    size = max(PART_ROWS, -(-int(starts[-1]) // (16 * threads)))
    parts = [
        (c, start, min(start + size, int(starts[c + 1])))
        for c in range(len(starts) - 1)
        for start in range(int(starts[c]), int(starts[c + 1]), size)
    ]
    return np.array(parts, dtype=np.int64).reshape(-1, 3)
