"""The CPU engine: numba kernels over host arrays. See kernels/protocol.py for the contract."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY, to_numpy
from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.compiling import announce_compilation
from ensemble_gpu.kernels.cpu import (
    answers,
    binning,
    descent,
    draws,
    evaluate,
    histogram,
    losses,
    ordered_pairs,
    pairs,
    ranking,
    requantise,
    residuals,
    rowwise,
    tabled,
    walk,
    wide_pairs,
)
from ensemble_gpu.kernels.cpu.changes import FollowingSums
from ensemble_gpu.kernels.cpu.even import CpuEvenCodes
from ensemble_gpu.kernels.cpu.gaps import gaps
from ensemble_gpu.kernels.cpu.layouts import by_column, by_row, column
from ensemble_gpu.kernels.cpu.threads import Pace, Run
from ensemble_gpu.kernels.cpu.trees import sums as tree_sums
from ensemble_gpu.kernels.cpu.trees.evaluate import apply_forest, evaluate_forest
from ensemble_gpu.kernels.cpu.trees.grower import CpuGrower
from ensemble_gpu.kernels.cpu.trees.shapley import shapley_values
from ensemble_gpu.kernels.cpu.trees.whole import grow_whole
from ensemble_gpu.kernels.cpu.trees.whole_grower import grower_for
from ensemble_gpu.kernels.cpu.weights import ClassSums, CpuHistograms
from ensemble_gpu.kernels.gradient_pass import GradientPass, LossPass
from ensemble_gpu.kernels.later import Later
from ensemble_gpu.kernels.path_shares import PathShares
from ensemble_gpu.kernels.protocol import (
    N_LEAVES,
    Answers,
    Codes,
    Cut,
    Layout,
    code_width,
    no_counts,
)
from ensemble_gpu.kernels.queries import PairWeights
from ensemble_gpu.kernels.reference.trees.grower import moments
from ensemble_gpu.kernels.residuals import Ruler, Slots
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.kernels.team import ALONE
from ensemble_gpu.kernels.tree_protocol import CodeTree, PackedForest, Sample, SplitRule

# Cells of work below which a second thread costs more than it brings.
CELLS_PER_THREAD = 40_000
# Rows that a second thread sends to their leaves.
LEAVES_PER_THREAD = 8_000
# Derivatives, and items of a draw, of a second thread.
PASS_PER_THREAD, DRAWS_PER_THREAD = 8_000, 16_000
# Rows of a block of NumPy work. Threads take turns at the interpreter's lock between two calls, so
# small blocks, though they fit the cache, cost more: 1e6 rows, 2 threads, 21 ms a round with 2^13
# rows, 6 ms with 2^17 (10 ms on one thread).
LEAST_ROWS, BLOCK_ROWS = 1 << 15, 1 << 17

announce_compilation()


class CpuEngine:
    """Runs on every CPU array through a zero-copy view; `n_jobs` threads."""

    name = "cpu"
    where = NUMPY
    team = ALONE

    def __init__(self, n_jobs: int | None = None) -> None:
        self.run = Run.of(n_jobs)
        self._pace: Pace | None = None
        self._tree_pace: Pace | None = None
        self._whole: Later | None = None
        self._workers: tuple[int, ThreadPoolExecutor] | None = None  # of which process

    @property
    def n_workers(self) -> int:
        """Its threads."""
        return self.run.threads

    def single(self) -> CpuEngine:
        """An engine of one thread."""
        return CpuEngine(1)

    def view(self, array: Any) -> np.ndarray:
        """A host view, read-only: one compiled kernel serves writable and read-only input."""
        view: np.ndarray = to_numpy(array).view()
        view.flags.writeable = False
        return view

    def adopt(self, array: np.ndarray) -> np.ndarray:
        return array

    def gaps(self, X: np.ndarray, rows: np.ndarray, max_bins: int | None) -> list[np.ndarray]:
        return gaps(X, rows, max_bins, self.run)

    def encode(
        self,
        X: Any,
        edges: list[np.ndarray],
        rows: np.ndarray,
        layout: Layout | None,
        width: int | None = None,
    ) -> Codes:
        width, n_features = width or code_width(edges), X.shape[1]
        codes = binning.encode(X, edges, rows, width, self.run, by_row=layout is None)
        bare = Codes(codes, rows.shape[0], n_features, width, no_counts(n_features, width))
        return bare if layout is None else replace(bare, counts=self._counts(bare, layout))

    def even_codes(self, layout: Layout, n_features: int) -> CpuEvenCodes:
        return CpuEvenCodes(
            layout, n_features, lambda codes, logs: self.histograms(codes, layout, logs)
        )

    def take(
        self, codes: Codes, rows: np.ndarray, layout: Layout, counts: np.ndarray | None = None
    ) -> Codes:
        words = np.take(codes.data.view(np.uint64), rows, axis=1)
        bare = replace(codes, data=words.view(codes.data.dtype), n_rows=len(rows), columns={})
        return replace(bare, counts=self._counts(bare, layout) if counts is None else counts)

    def join(self, parts: Sequence[Codes], layout: Layout) -> Codes:
        if len(parts) == 1:
            return parts[0]
        p = sum(part.n_features for part in parts)
        data = np.concatenate([part.data for part in parts])
        counts = np.concatenate([part.counts for part in parts], axis=1)
        return Codes(data, parts[0].n_rows, p, parts[0].width, counts)

    def pack_answers(self, blocks: Iterable[np.ndarray], n_rows: int) -> Answers:
        return answers.pack_answers(blocks, n_rows, self.run)

    def answer_sums(self, given: Answers, q: np.ndarray) -> np.ndarray:
        return answers.answer_sums(given, q, self.run)

    def answer(self, given: Answers, member: int) -> np.ndarray:
        return answers.answer(given, member)

    def quantised(self, logs: np.ndarray, bits: int) -> tuple[np.ndarray, int]:
        q = np.empty(len(logs), dtype=np.int32)
        return q, int(requantise.quantise_logs(logs, fixedpoint.tables(bits), q))

    def _counts(self, codes: Codes, layout: Layout) -> np.ndarray:
        """Rows of each class, feature and code; for one class by the kernel that gradients need."""
        if layout.n_classes == 1:
            return self.sums(codes, np.ones((1, codes.n_rows), dtype=np.int64))
        by_class = Layout(layout.starts, np.arange(layout.n_classes)[None, :])
        sums = ClassSums(codes.data, codes.n_features, codes.width, by_class, self.run)
        sums.add(np.ones((1, codes.n_rows), dtype=np.int32))
        return sums.total.reshape(layout.n_classes, -1, codes.width)[:, : codes.n_features]

    def histograms(
        self, codes: Codes, layout: Layout, log_weights: np.ndarray | None
    ) -> CpuHistograms:
        if self._pace is None:
            self._pace = Pace()
        return CpuHistograms(codes, layout, log_weights, self.run, self._pace)

    def column(self, codes: Codes, feature: int) -> np.ndarray:
        return column(codes, feature)

    def sums(self, codes: Codes, q: np.ndarray) -> np.ndarray:
        return self._unit_sums(pairs.plane_sums, codes, q, 1)[0]

    def pair_sums(self, codes: Codes, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if packed.shape[0] > 1 and codes.data.dtype == np.uint8:
            groups = wide_pairs.groups_of(packed.shape[0])
            G, H = self._unit_sums(wide_pairs.wide_pair_sums, codes, packed, 2, groups)
        else:
            G, H = self._unit_sums(pairs.pair_sums, codes, packed, 2)
        return G, H

    def following_sums(self, codes: Codes) -> FollowingSums:
        return FollowingSums(self, codes, self.run)

    def _unit_sums(
        self, kernel: Any, codes: Codes, q: np.ndarray, results: int, *more: np.ndarray
    ) -> np.ndarray:
        """[result, plane, feature, code]: each thread adds its units into sums of its own."""
        words, p = codes.data.view(np.uint64), codes.n_features
        run = self.run.limited_to(q.size * p, CELLS_PER_THREAD)
        shape = (run.threads, q.shape[0], results, words.shape[0], 8, codes.width)
        sums = np.zeros(shape, dtype=np.int64)
        run.call(kernel, words, p, *more, q, sums)
        total = sums[0] if run.threads == 1 else sums.sum(axis=0)
        total = total.reshape(q.shape[0], results, -1, codes.width)[:, :, :p]
        return np.ascontiguousarray(np.swapaxes(total, 0, 1))

    def move(
        self, F: np.ndarray, column: np.ndarray, cut: Cut, values: np.ndarray, out: Any = None
    ) -> np.ndarray:
        out = np.empty_like(F) if out is None else out
        rowwise.move(F, column, cut.bin, cut.missing_code, cut.missing_leaf, values, out)
        return out

    def add_tables(
        self, F: np.ndarray, codes: Codes, used: np.ndarray, tables: np.ndarray
    ) -> np.ndarray:
        out = np.empty_like(F)
        run = self.run.limited_to(F.size * len(used), CELLS_PER_THREAD)
        run.call(tabled.add_tables, codes.data, F, used, np.ascontiguousarray(tables), out)
        return out

    def derivatives(self, loss: Any, y: np.ndarray, F: np.ndarray) -> tuple[Any, Any]:
        if loss.kernel in ranking.KINDS:
            g, h = np.empty((2, F.shape[0]))
            run = self.run.limited_to(len(F), PASS_PER_THREAD)
            arrays = ranking.KINDS[loss.kernel], ranking.arrays_of(loss)
            run.call(ranking.derivatives, *arrays, F, fixedpoint.tables(), g, h)
            return g, h
        if loss.kernel not in losses.KINDS or F.ndim != 1:
            return loss.derivatives(y, F)
        g, h = np.empty((2, F.shape[0]))
        kind = losses.KINDS[loss.kernel], losses.parameters_of(loss, 1)[0]
        losses.derivatives(*kind, y, F, fixedpoint.tables(), g, h)
        return g, h

    def gradient_pass(self, work: GradientPass) -> tuple[float, float] | None:
        loss, F = work.loss, work.F
        if work.joint != (loss.kernel == losses.JOINT) or loss.kernel is None:
            return None
        run = self.run.limited_to(F.size, PASS_PER_THREAD)
        tops, settings = descent.tops_for(run.threads), descent.settings_of(work)
        if loss.kernel in ranking.KINDS:
            of_pairs = ranking.KINDS[loss.kernel], work.flat, ranking.arrays_of(loss)
            run.call(ranking.query_pass, *of_pairs, F, *settings, tops)
        elif work.joint:
            run.call(descent.joint_gradient_pass, work.flat, work.y, F, *settings, tops)
        else:
            y = work.y if work.y.ndim == 2 else work.y[None, :]
            kind = losses.KINDS[loss.kernel], losses.parameters_of(loss, len(F)), work.flat
            run.call(descent.gradient_pass, kind, y, F, *settings, tops)
        top_g, top_h = tops[:, :2].max(axis=0).view(np.float64).tolist()
        return top_g, top_h

    def loss_pass(self, work: LossPass) -> np.ndarray | None:
        loss, F = work.loss, work.F
        if loss.kernel not in losses.KINDS:
            return None
        y = work.y if work.y.ndim == 2 else work.y[None, :]
        kind = losses.KINDS[loss.kernel], losses.parameters_of(loss, len(F))
        weights = np.zeros(0) if work.weights is None else work.weights
        sums = np.empty(-(-F.shape[1] // losses.BLOCK))
        run = self.run.limited_to(F.size, PASS_PER_THREAD)
        index, table = work.move
        run.call(
            descent.loss_pass, kind, y, F, index, np.ascontiguousarray(table),
            descent.Part(weights, np.zeros(0, dtype=np.bool_)), fixedpoint.tables(), work.out, sums,
        )  # fmt: skip
        return sums

    def ordered_weights(
        self, weights: PairWeights, codes: Codes, has_missing: np.ndarray
    ) -> np.ndarray:
        run = self.run.limited_to(codes.n_rows * codes.n_features, CELLS_PER_THREAD)
        return ordered_pairs.ordered_weights(weights, codes, has_missing, run)

    def drawn(
        self, numbers: np.ndarray, bounds: np.ndarray | None, offset: int, limit: int
    ) -> np.ndarray:
        run = self.run.limited_to(len(numbers), DRAWS_PER_THREAD)
        key = np.uint64(offset), np.uint64(limit)
        if bounds is None:
            out = np.empty(len(numbers), dtype=np.bool_)
            run.call(draws.drawn, numbers, *key, out)
        else:
            out = np.empty(len(bounds) - 1, dtype=np.int64)
            run.call(draws.drawn_counts, numbers, bounds, *key, out)
        return out

    def ranked(
        self, slots: Slots, r: np.ndarray, weights: np.ndarray | None, ranks: np.ndarray
    ) -> np.ndarray:
        return residuals.ranked(slots, r, weights, ranks, self.run)

    def ruled_sums(
        self, slots: Slots, r: np.ndarray, weights: np.ndarray | None, ruler: Ruler
    ) -> np.ndarray:
        return residuals.ruled_sums(slots, r, weights, ruler, self.run)

    def pack(
        self, g: np.ndarray, h: np.ndarray, unit_g: float, unit_h: float, out: Any = None
    ) -> np.ndarray:
        out = np.empty(g.shape, dtype=np.int64) if out is None else out
        rowwise.pack(g, h, 1.0 / unit_g, 1.0 / unit_h, out)
        return out

    def leaf_sums(self, q: np.ndarray, column: np.ndarray, cut: Cut) -> np.ndarray:
        sums = np.zeros((q.shape[0], N_LEAVES), dtype=np.int64)
        rowwise.leaf_sums(q, column, cut.bin, cut.missing_code, cut.missing_leaf, sums)
        return sums

    def pair_counts(self, codes: Codes, feature: int, weights: np.ndarray | None) -> np.ndarray:
        kind = np.int32 if weights is None else np.int64
        w = np.zeros(0, dtype=kind) if weights is None else weights
        table = np.zeros((codes.width, codes.n_features, codes.width), dtype=kind)
        self.run.call(pairs.pair_counts, feature, by_column(codes), w, table)
        return table

    def code_sums(
        self, codes: Codes, feature: int, first: int, last: int, weights: np.ndarray | None
    ) -> np.ndarray:
        words, n, p = codes.data.view(np.uint64), codes.n_rows, codes.n_features
        index, noted = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
        w = np.zeros(0, dtype=np.int64) if weights is None else weights
        sums = np.zeros((words.shape[0], 8, codes.width), dtype=np.int64)
        asked = column(codes, feature), first, last
        run = self.run.limited_to(n * p // 4, CELLS_PER_THREAD)
        run.call(histogram.code_sums, words, p, asked, w, index, noted, sums)
        return sums.reshape(-1, codes.width)[:p]

    def exp(self, x: np.ndarray) -> np.ndarray:
        out = np.empty(x.shape)
        flat = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
        losses.exp_into(flat, fixedpoint.tables(), out.reshape(-1))
        return out

    def by_block(self, function: Callable[[slice], Any], n_rows: int) -> list[Any]:
        size = min(BLOCK_ROWS, max(LEAST_ROWS, -(-n_rows // self.run.threads)))
        starts = range(0, n_rows, size)
        return self._map(function, [slice(a, min(a + size, n_rows)) for a in starts])

    def _map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) for every item, on a pool of Python threads."""
        if self.run.threads == 1 or len(items) == 1:
            return [function(item) for item in items]
        if self._workers is None or self._workers[0] != os.getpid():  # a fork keeps no threads
            self._workers = os.getpid(), ThreadPoolExecutor(self.run.threads)
        return list(self._workers[1].map(function, items))

    def grower(self, codes: Codes, sample: Sample, rule: SplitRule) -> CpuGrower:
        # made when it is asked for: a prediction of one row makes an engine as well
        self._tree_pace = self._tree_pace or Pace()
        self._whole = self._whole or Later(grow_whole)
        return grower_for(codes, sample, rule, self.run, self._tree_pace, self._map, self._whole)

    def moments(self, packed: np.ndarray) -> np.ndarray:
        if packed.shape[0] > 1:
            return moments(packed, NUMPY)
        return packed.reshape(-1, 1)

    def leaves(self, codes: Codes, tree: CodeTree) -> np.ndarray:
        run = self.run.limited_to(codes.n_rows, LEAVES_PER_THREAD)
        out = np.empty(codes.n_rows, dtype=np.int64)
        arrays = tree.feature, tree.bin, tree.missing_left, tree.left, tree.right
        run.call(walk.walk, by_row(codes), arrays, tree.subset, codes.width - 1, out)
        return out

    def sums_by(self, index: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
        sums = np.zeros((n, values.shape[1]), dtype=np.int64)
        tree_sums.sums_by(index, values, sums)
        return sums

    def evaluate(self, X: np.ndarray, tables: PackedTables) -> np.ndarray:
        run = self.run.limited_to(X.shape[0] * len(tables.features), CELLS_PER_THREAD)
        return evaluate.evaluate(X, tables, run)

    def contributions(self, X: np.ndarray, tables: PackedTables) -> np.ndarray:
        run = self.run.limited_to(X.shape[0] * len(tables.features), CELLS_PER_THREAD)
        return evaluate.contributions(X, tables, run)

    def evaluate_forest(self, X: np.ndarray, forest: PackedForest) -> np.ndarray:
        return evaluate_forest(X, forest, self.run)

    def apply_forest(self, X: np.ndarray, forest: PackedForest) -> np.ndarray:
        return apply_forest(X, forest, self.run)

    def shapley_values(self, X: np.ndarray, forest: PackedForest, shares: PathShares) -> np.ndarray:
        return shapley_values(X, forest, shares, self.run)
