"""The CPU engine: numba kernels over host arrays. See kernels/protocol.py for the contract."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.cpu import binning, evaluate, histogram, score
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.protocol import (
    Codes,
    Criterion,
    Layout,
    PackedTables,
    Split,
    code_width,
)

# Cells of work below which a second thread costs more than it brings.
CELLS_PER_THREAD = 40_000
PART_ROWS = 4096


class CpuEngine:
    """Runs on every CPU array through a zero-copy view; `n_jobs` threads."""

    name = "cpu"

    def __init__(self, n_jobs: int | None = None) -> None:
        self.run = Run.of(n_jobs)

    def edges(self, X: np.ndarray, rows: np.ndarray, max_bins: int) -> list[np.ndarray]:
        return binning.edges(X, rows, max_bins, self.run.threads)

    def encode(
        self, X: np.ndarray, edges: list[np.ndarray], rows: np.ndarray, layout: Layout
    ) -> Codes:
        width = code_width(edges)
        codes = binning.encode(X, edges, rows, width, self.run)
        n_features = X.shape[1]
        counts = np.zeros((layout.n_classes, n_features, width), dtype=np.int64)
        histogram.count_codes(codes, layout.starts, counts)
        return Codes(codes, rows.shape[0], n_features, width, counts)

    def histograms(
        self, codes: Codes, layout: Layout, log_weights: np.ndarray | None
    ) -> CpuHistograms:
        return CpuHistograms(codes, layout, log_weights, self.run)

    def evaluate(self, X: np.ndarray, tables: PackedTables) -> np.ndarray:
        out = np.tile(tables.intercept, (X.shape[0], 1))
        run = self.run.limited_to(X.shape[0] * len(tables.features), CELLS_PER_THREAD)
        args = (
            X, tables.features, tables.first, tables.steps, tables.thresholds, tables.values,
            tables.missing, out,
        )  # fmt: skip
        if run.threads == 1:
            evaluate.evaluate_serial(*args)
        else:
            with run.pool():
                evaluate.evaluate_parallel(*args)
        return out


class CpuHistograms:
    """q per plane and row, sums per (group, tile, lane, code)."""

    def __init__(
        self, codes: Codes, layout: Layout, log_weights: np.ndarray | None, run: Run
    ) -> None:
        n, planes, groups = codes.n_rows, layout.n_planes, layout.n_groups
        self.run = run.limited_to(n * codes.n_features * planes, CELLS_PER_THREAD)
        self.codes = codes.data
        self.group_of = layout.group_of
        self.width = codes.width
        self.columns: dict[int, np.ndarray] = {}
        self.parts = _parts(layout.starts, self.run.threads)
        self.rows_of_part = self.parts[:, 2] - self.parts[:, 1]
        self.log_weights = np.zeros(0, dtype=np.int64) if log_weights is None else log_weights
        self.q = np.zeros((planes, n), dtype=np.int32)
        self.sums = np.zeros((groups, self.codes.shape[0], 8, codes.width), dtype=np.int64)
        self.spill = np.zeros((self.run.threads, groups, 8, codes.width), dtype=np.int64)
        self.index = np.zeros(n, dtype=np.int32)
        self.difference = np.zeros((planes, n), dtype=np.int32)
        self.count = np.zeros(len(self.parts), dtype=np.int64)
        self.largest = np.zeros((len(self.parts), groups), dtype=np.int64)
        self.lowest = np.zeros(codes.n_features)
        self.record = np.zeros(3, dtype=np.int64)
        self.leaf_sums = np.zeros((groups, 3), dtype=np.int64)

    def _call(self, serial: Any, parallel: Any, *args: Any) -> Any:
        alone = self.run.threads == 1
        with nullcontext() if alone else self.run.pool():
            return (serial if alone else parallel)(*args)

    def requantise(self, log_tables: np.ndarray, used: np.ndarray) -> np.ndarray:
        exponent = np.zeros(self.sums.shape[0], dtype=np.int64)
        logs = np.empty(self.q.shape[1], dtype=np.int64)
        self._call(
            histogram.requantise_serial, histogram.requantise_parallel,
            self.codes, self.parts, self.group_of, log_tables, used, self.log_weights, logs,
            fixedpoint.tables(), exponent, self.q, self.largest,
        )  # fmt: skip
        self._call(
            histogram.build_serial, histogram.build_parallel,
            self.codes, self.parts, self.group_of, self.q, self.index, self.difference[:, :0],
            self.rows_of_part, self.sums, self.spill,
        )  # fmt: skip
        return exponent

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        cost = self._call(
            score.split_serial, score.split_parallel,
            self.sums, criterion.n_thresholds, criterion.kind, scale, criterion.abstention,
            criterion.learn_missing, self.lowest, self.leaf_sums, self.record,
        )  # fmt: skip
        if cost == np.inf:
            return None
        feature, last_bin, missing_leaf = self.record.tolist()
        largest = self.largest.max(axis=0)
        return Split(cost, feature, last_bin, missing_leaf, self.leaf_sums, largest)

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        table = np.empty((ratio.shape[0] + 1, self.width))
        table[0] = leaf_of != kept
        table[1:] = ratio[:, leaf_of]
        self._call(
            histogram.rescale_serial, histogram.rescale_parallel,
            self.codes, self._column(feature), self.parts, table, self.group_of, self.q,
            self.index, self.difference, self.count, self.largest, self.sums, self.spill,
        )  # fmt: skip

    def _column(self, feature: int) -> np.ndarray:
        """The feature's codes side by side: the select reads one byte a row, not eight."""
        if feature not in self.columns:
            self.columns[feature] = np.ascontiguousarray(self.codes[feature // 8, :, feature % 8])
        return self.columns[feature]


def _parts(starts: np.ndarray, threads: int) -> np.ndarray:
    """Cut the classes' row ranges into (class, start, stop) parts; none is empty."""
    size = max(PART_ROWS, -(-int(starts[-1]) // (16 * threads)))
    parts = [
        (c, start, min(start + size, int(starts[c + 1])))
        for c in range(len(starts) - 1)
        for start in range(int(starts[c]), int(starts[c + 1]), size)
    ]
    return np.array(parts, dtype=np.int64)
