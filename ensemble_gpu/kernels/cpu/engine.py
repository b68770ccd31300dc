"""The CPU engine: numba kernels over host arrays. See kernels/protocol.py for the contract."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import NUMPY
from ensemble_gpu.kernels import exponential, fixedpoint
from ensemble_gpu.kernels.compiling import announce_compilation
from ensemble_gpu.kernels.cpu import (
    binning,
    derivatives,
    evaluate,
    histogram,
    pairs,
    requantise,
    score,
)
from ensemble_gpu.kernels.cpu.exponential import exp_into
from ensemble_gpu.kernels.cpu.threads import Pace, Run
from ensemble_gpu.kernels.cpu.trees import grower as trees
from ensemble_gpu.kernels.cpu.trees import sums as tree_sums
from ensemble_gpu.kernels.cpu.trees.evaluate import apply_forest, evaluate_forest
from ensemble_gpu.kernels.cpu.trees.level_grower import grower_for
from ensemble_gpu.kernels.protocol import (
    N_LEAVES,
    Codes,
    Criterion,
    Cut,
    Layout,
    PackedTables,
    Split,
    code_width,
    no_counts,
)
from ensemble_gpu.kernels.reference.trees.grower import moments
from ensemble_gpu.kernels.tree_protocol import CodeTree, PackedForest, Sample, SplitRule

# Cells of work below which a second thread costs more than it brings.
CELLS_PER_THREAD = 40_000
PART_ROWS = 4096
# Rows of a block of NumPy work. Threads take turns at the interpreter's lock between two calls, so
# small blocks, though they fit the cache, cost more: 1e6 rows, 2 threads, 21 ms a round with 2^13
# rows, 6 ms with 2^17 (10 ms on one thread).
LEAST_ROWS, BLOCK_ROWS = 1 << 15, 1 << 17

announce_compilation()


class CpuEngine:
    """Runs on every CPU array through a zero-copy view; `n_jobs` threads."""

    name = "cpu"
    where = NUMPY

    def __init__(self, n_jobs: int | None = None) -> None:
        self.run = Run.of(n_jobs)
        self.pace = Pace()
        self._workers: ThreadPoolExecutor | None = None

    def adopt(self, array: np.ndarray) -> np.ndarray:
        return array

    def gaps(self, X: np.ndarray, rows: np.ndarray, max_bins: int | None) -> list[np.ndarray]:
        return binning.gaps(X, rows, max_bins, self.run.threads)

    def encode(
        self, X: np.ndarray, edges: list[np.ndarray], rows: np.ndarray, layout: Layout | None
    ) -> Codes:
        width, n_features = code_width(edges), X.shape[1]
        codes = binning.encode(X, edges, rows, width, self.run, by_row=layout is None)
        if layout is None:
            return Codes(codes, rows.shape[0], n_features, width, no_counts(n_features, width))
        by_class = Layout(layout.starts, np.arange(layout.n_classes)[None, :])
        sums = _Sums(codes, n_features, width, by_class, self.run)
        sums.add(np.ones((1, rows.shape[0]), dtype=np.int32), sums.all_rows, sums.rows_of_part)
        counts = sums.sums.reshape(layout.n_classes, -1, width)[:, :n_features]
        return Codes(codes, rows.shape[0], n_features, width, counts)

    def histograms(
        self, codes: Codes, layout: Layout, log_weights: np.ndarray | None
    ) -> CpuHistograms:
        return CpuHistograms(codes, layout, log_weights, self.run, self.pace)

    def column(self, codes: Codes, feature: int) -> np.ndarray:
        return _column(codes, feature)

    def sums(self, codes: Codes, q: np.ndarray) -> np.ndarray:
        return self._unit_sums(pairs.plane_sums, codes, q, 1)[0]

    def pair_sums(self, codes: Codes, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        G, H = self._unit_sums(pairs.pair_sums, codes, packed, 2)
        return G, H

    def _unit_sums(self, kernel: Any, codes: Codes, q: np.ndarray, results: int) -> np.ndarray:
        """[result, plane, feature, code]: each thread adds its units into sums of its own."""
        words, p = codes.data.view(np.uint64), codes.n_features
        threads = self.run.limited_to(q.size * p, CELLS_PER_THREAD).threads
        shape = (threads, q.shape[0], results, words.shape[0], 8, codes.width)
        sums = np.zeros(shape, dtype=np.int64)
        units = pairs.n_units(words, q)
        bounds = [units * t // threads for t in range(threads + 1)]
        self._map(lambda t: kernel(bounds[t], bounds[t + 1], words, p, q, sums[t]), range(threads))
        total = sums[0] if threads == 1 else sums.sum(axis=0)
        total = total.reshape(q.shape[0], results, -1, codes.width)[:, :, :p]
        return np.ascontiguousarray(np.swapaxes(total, 0, 1))

    def move(
        self, F: np.ndarray, column: np.ndarray, cut: Cut, values: np.ndarray, out: Any = None
    ) -> np.ndarray:
        out = np.empty_like(F) if out is None else out
        pairs.move(F, column, cut.bin, cut.missing_code, cut.missing_leaf, values, out)
        return out

    def derivatives(self, loss: Any, y: np.ndarray, F: np.ndarray) -> tuple[Any, Any]:
        if loss.kernel != "logistic" or F.ndim != 1:
            return loss.derivatives(y, F)
        g, h = np.empty((2, F.shape[0]))
        tables = exponential.powers(), fixedpoint.tables()
        derivatives.logistic(y, F, loss.largest_exponent, *tables, g, h)
        return g, h

    def pack(
        self, g: np.ndarray, h: np.ndarray, unit_g: float, unit_h: float, out: Any = None
    ) -> np.ndarray:
        out = np.empty(g.shape, dtype=np.int64) if out is None else out
        pairs.pack(g, h, 1.0 / unit_g, 1.0 / unit_h, out)
        return out

    def leaf_sums(self, q: np.ndarray, column: np.ndarray, cut: Cut) -> np.ndarray:
        sums = np.zeros((q.shape[0], N_LEAVES), dtype=np.int64)
        pairs.leaf_sums(q, column, cut.bin, cut.missing_code, cut.missing_leaf, sums)
        return sums

    def pair_counts(self, codes: Codes, feature: int, weights: np.ndarray | None) -> np.ndarray:
        kind = np.int32 if weights is None else np.int64
        w = np.zeros(0, dtype=kind) if weights is None else weights
        table = np.zeros((codes.width, codes.n_features, codes.width), dtype=kind)
        own = self.column(codes, feature)

        def count(f: int) -> None:
            pairs.pair_counts(own, self.column(codes, f), w, table[:, f])

        self._map(count, range(codes.n_features))
        return table

    def exp(self, x: np.ndarray) -> np.ndarray:
        out = np.empty(x.shape)
        flat = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
        exp_into(flat, exponential.powers(), fixedpoint.tables(), out.reshape(-1))
        return out

    def by_block(self, function: Callable[[slice], Any], n_rows: int) -> list[Any]:
        size = min(BLOCK_ROWS, max(LEAST_ROWS, -(-n_rows // self.run.threads)))
        starts = range(0, n_rows, size)
        return self._map(function, [slice(a, min(a + size, n_rows)) for a in starts])

    def _map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """function(item) for every item, on a pool of Python threads."""
        if self.run.threads == 1 or len(items) == 1:
            return [function(item) for item in items]
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self.run.threads)
        return list(self._workers.map(function, items))

    def grower(self, codes: Codes, sample: Sample, rule: SplitRule) -> trees.CpuGrower:
        return grower_for(codes, sample, rule, self.run.threads, self._map)

    def moments(self, packed: np.ndarray) -> np.ndarray:
        if packed.shape[0] > 1:
            return moments(packed, NUMPY)
        out = np.empty_like(packed)
        self.by_block(lambda rows: tree_sums.turn(packed[0, rows], out[0, rows]), packed.shape[1])
        return out.reshape(-1, 1)

    def leaves(self, codes: Codes, tree: CodeTree) -> np.ndarray:
        threads = self.run.limited_to(codes.n_rows, CELLS_PER_THREAD).threads
        return trees.leaves(codes, tree, threads, self._map)

    def sums_by(self, index: np.ndarray, values: np.ndarray, n: int) -> np.ndarray:
        sums = np.zeros((n, values.shape[1]), dtype=np.int64)
        tree_sums.sums_by(index, values, sums)
        return sums

    def evaluate(self, X: np.ndarray, tables: PackedTables) -> np.ndarray:
        out = np.zeros((X.shape[0], len(tables.intercept)))
        run = self.run.limited_to(X.shape[0] * len(tables.features), CELLS_PER_THREAD)
        run.call(
            evaluate.evaluate_serial, evaluate.evaluate_parallel,
            X, tables.features, tables.first, tables.steps, tables.thresholds, tables.values,
            tables.missing, out,
        )  # fmt: skip
        if tables.intercept.any():
            out += tables.intercept
        return out

    def evaluate_forest(self, X: np.ndarray, forest: PackedForest) -> np.ndarray:
        return evaluate_forest(X, forest, self.run)

    def apply_forest(self, X: np.ndarray, forest: PackedForest) -> np.ndarray:
        return apply_forest(X, forest, self.run)


class _Sums:
    """Sums of integers per (group, tile, lane, code), and how the rows are cut for the threads."""

    def __init__(
        self, codes: np.ndarray, n_features: int, width: int, layout: Layout, run: Run
    ) -> None:
        tiles, n, _ = codes.shape
        self.run = run.limited_to(n * n_features * layout.n_planes, CELLS_PER_THREAD)
        self.words = codes.view(np.uint64)
        self.n_features = n_features
        self.group_of = layout.group_of
        self.parts = _parts(layout.starts, self.run.threads)
        self.rows_of_part = self.parts[:, 2] - self.parts[:, 1]
        self.sums = np.zeros((layout.n_groups, tiles, 8, width), dtype=np.int64)
        self.spill = np.zeros((self.run.threads, layout.n_groups, 8, width), dtype=np.int64)
        self.all_rows = (np.zeros(0, dtype=np.int32), np.zeros((layout.n_planes, 0), np.int32))

    def arguments(self, q: np.ndarray, lists: Any, count: np.ndarray) -> tuple[Any, ...]:
        return (
            self.words, self.n_features, self.parts, self.group_of, q, lists, count, self.sums,
            self.spill,
        )  # fmt: skip

    def add(self, q: np.ndarray, lists: Any, count: np.ndarray) -> None:
        self.run.call(
            histogram.add_serial, histogram.add_parallel, *self.arguments(q, lists, count)
        )


class CpuHistograms:
    """q per plane and row, and their sums."""

    def __init__(
        self, codes: Codes, layout: Layout, log_weights: np.ndarray | None, run: Run, pace: Pace
    ) -> None:
        n, planes, groups = codes.n_rows, layout.n_planes, layout.n_groups
        self.totals = _Sums(codes.data, codes.n_features, codes.width, layout, run)
        self.run, self.pace = self.totals.run, pace
        scored = codes.n_features * codes.width * groups
        self.score_run = run.limited_to(scored, CELLS_PER_THREAD)
        self.codes = codes
        self.log_weights = np.zeros(0, dtype=np.int64) if log_weights is None else log_weights
        self.powers = fixedpoint.tables(layout.quantum_bits)
        self.q = np.zeros((planes, n), dtype=np.int32)
        self.lists = (np.zeros(n, dtype=np.int32), np.zeros((planes, n), dtype=np.int32))
        self.count = np.zeros(len(self.totals.parts), dtype=np.int64)
        self.largest = np.zeros((len(self.totals.parts), groups), dtype=np.int64)
        self.lowest = np.zeros(codes.n_features)
        self.record = np.zeros(3, dtype=np.int64)
        self.leaf_sums = np.zeros((groups, 3), dtype=np.int64)

    def requantise(self, log_tables: np.ndarray, used: np.ndarray) -> np.ndarray:
        totals = self.totals
        exponent = np.zeros(totals.sums.shape[0], dtype=np.int64)
        logs = np.empty(self.q.shape[1], dtype=np.int64)
        self.run.call(
            requantise.requantise_serial, requantise.requantise_parallel,
            self.codes.data, totals.parts, totals.group_of, log_tables, used, self.log_weights,
            logs, self.powers, exponent, self.q, self.largest,
        )  # fmt: skip
        totals.sums[:] = 0
        totals.add(self.q, totals.all_rows, totals.rows_of_part)
        return exponent

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        cost = self.score_run.call(
            score.split_serial, score.split_parallel,
            self.totals.sums, criterion.n_thresholds, criterion.kind, scale, criterion.abstention,
            criterion.learn_missing, self.lowest, self.leaf_sums, self.record,
        )  # fmt: skip
        if cost == np.inf:
            return None
        feature, last_bin, missing_leaf = self.record.tolist()
        largest = np.maximum.reduce(self.largest)
        return Split(cost, feature, last_bin, missing_leaf, self.leaf_sums.copy(), largest)

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        together = self.run.threads > 1 and self.pace.choose()
        start = time.perf_counter()
        (self.run if together else Run(1)).call(
            histogram.rescale_serial, histogram.rescale_parallel,
            *self.totals.arguments(self.q, self.lists, self.count),
            _column(self.codes, feature), leaf_of, kept, ratio, self.largest,
        )  # fmt: skip
        if self.run.threads > 1:
            cells = self.q.shape[1] + self.totals.n_features * int(self.count.sum())
            self.pace.note(together, (time.perf_counter() - start) / cells)


def _column(codes: Codes, feature: int) -> np.ndarray:
    """The feature's codes side by side, kept: a round reads one code a row, not eight."""
    if feature not in codes.columns:
        codes.columns[feature] = np.ascontiguousarray(codes.data[feature // 8, :, feature % 8])
    return codes.columns[feature]


def _parts(starts: np.ndarray, threads: int) -> np.ndarray:
    """Cut the classes' row ranges into (class, start, stop) parts; none is empty."""
    size = max(PART_ROWS, -(-int(starts[-1]) // (16 * threads)))
    parts = [
        (c, start, min(start + size, int(starts[c + 1])))
        for c in range(len(starts) - 1)
        for start in range(int(starts[c]), int(starts[c + 1]), size)
    ]
    return np.array(parts, dtype=np.int64)
