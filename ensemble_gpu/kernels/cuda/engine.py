"""The CUDA engine: numba kernels over device arrays. See kernels/protocol.py for the contract.

A round is three launches (update, score, choose), two small copies to the device (factors, scales)
and one back (the record of the best split).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.binning import SAMPLE_ROWS
from ensemble_gpu.kernels import exponential, fixedpoint, rowwise
from ensemble_gpu.kernels.cuda import binning, evaluate, histogram, requantise, score
from ensemble_gpu.kernels.cuda.device import Device, device_for
from ensemble_gpu.kernels.cuda.launch import LaunchPlan
from ensemble_gpu.kernels.protocol import (
    N_LEAVES,
    Codes,
    Criterion,
    Cut,
    Layout,
    PackedTables,
    Split,
    code_width,
)
from ensemble_gpu.kernels.reference import ReferenceEngine

# Row and cell counters of the kernels are int32.
MOST_ROWS = 2**31 - 1
# Digits of wide integers, so that each fits the kernels' int32.
DIGIT_BITS = 30
DIGIT = (1 << DIGIT_BITS) - 1
# A factor that says: rows with this code keep their q.
KEEP = -1.0


class CudaEngine:
    """Runs where the arrays are: a GPU, or NumPy arrays under the simulator."""

    name = "cuda"

    def __init__(self, where: Where, plan: LaunchPlan | None = None) -> None:
        self.device: Device = device_for(where, plan)
        self.where = self.device.where

    def adopt(self, array: Any) -> Any:
        return self.device.adopt(array)

    def edges(self, X: Any, rows: Any, max_bins: int) -> list[np.ndarray]:
        """Sorting is the array library's: the reference engine's code, on this device."""
        device = self.device
        # The sample in X's type, as float64, with NaN replaced, and sorted.
        needed = 32 * min(rows.shape[0], SAMPLE_ROWS) * X.shape[1]
        with device.active(f"sorting a sample of X {tuple(X.shape)}", needed):
            reference = ReferenceEngine(device.where)
            return reference.edges(device.adopt(X), device.adopt(rows), max_bins)

    def encode(self, X: Any, edges: list[np.ndarray], rows: Any, layout: Layout) -> Codes:
        width, device = code_width(edges), self.device
        lanes = histogram.lanes_of(width)
        n, p = layout.n_rows, len(edges)
        if n > MOST_ROWS:
            raise ValueError(f"The CUDA engine takes at most {MOST_ROWS} rows; got {n}.")
        tiles = -(-p // lanes)
        with device.active(f"encoding {n} rows of {p} features", 8 * tiles * n):
            where, plan = device.where, device.plan
            codes = where.zeros((tiles, n), where.xp.uint64)
            padded, steps = binning.padded_edges(edges)
            binning.launch_encode(
                steps, width, lanes, plan.blocks, plan.threads, device.stream(),
                device.handle(device.adopt(X)), device.handle(device.adopt(rows)),
                device.handle(where.put(padded)), device.handle(codes),
            )  # fmt: skip
            counts = self._counts(codes, layout, p, width)
        return Codes(codes, n, p, width, counts)

    def _counts(self, codes: Any, layout: Layout, p: int, width: int) -> np.ndarray:
        """Rows per (class, feature, code): the histogram of a plane of ones, a group a class."""
        each = np.arange(layout.n_classes)[None, :]
        return self._build(codes, Layout(layout.starts, each), 1, p, width)

    def histograms(self, codes: Codes, layout: Layout, log_weights: Any | None) -> CudaHistograms:
        needed = (4 * layout.n_planes + 8) * codes.n_rows
        with self.device.active(f"weights of {codes.n_rows} rows", needed):
            return CudaHistograms(self.device, codes, layout, log_weights)

    def column(self, codes: Codes, feature: int) -> Any:
        lanes, xp = histogram.lanes_of(codes.width), self.device.where.xp
        bits = 64 // lanes
        shifted = codes.data[feature // lanes, :] >> xp.asarray(
            bits * (feature % lanes), dtype=xp.uint64
        )
        return xp.astype(shifted & xp.asarray((1 << bits) - 1, dtype=xp.uint64), xp.int32)

    def sums(self, codes: Codes, q: Any) -> np.ndarray:
        """The kernel adds int32: an int64 is taken in digits of 30 bits, signed at the top."""
        digits = [q & DIGIT, (q >> DIGIT_BITS) & DIGIT, q >> (2 * DIGIT_BITS)]
        low, middle, high = (self._plane_sums(codes, d) for d in digits)
        return low + (middle << DIGIT_BITS) + (high << (2 * DIGIT_BITS))

    def pair_sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        h = packed & 0xFFFFFFFF
        return self._plane_sums(codes, (packed - h) >> 32), self._plane_sums(codes, h)

    def _plane_sums(self, codes: Codes, q: Any) -> np.ndarray:
        """A group a plane; q fits int32."""
        planes, n = q.shape
        layout = Layout(np.array([0, n]), np.arange(planes)[:, None])
        return self._build(codes.data, layout, q, codes.n_features, codes.width)

    def pair_counts(self, codes: Codes, feature: int, weights: Any | None) -> np.ndarray:
        """Rows in order of the feature's code; then every code is a group."""
        xp, width = self.device.where.xp, codes.width
        order = xp.argsort(self.column(codes, feature), stable=True)
        starts = np.concatenate([[0], np.cumsum(codes.counts.sum(axis=0)[feature])])
        layout = Layout(starts, np.arange(width)[None, :])
        in_order = xp.take(codes.data, order, axis=1)
        if weights is None:
            return self._build(in_order, layout, 1, codes.n_features, width).astype(np.int32)
        weights = xp.take(weights, order)[None, :]
        high, low = (
            self._build(in_order, layout, digit, codes.n_features, width)
            for digit in (weights >> DIGIT_BITS, weights & DIGIT)
        )
        return low + (high << DIGIT_BITS)

    def _build(self, codes: Any, layout: Layout, q: Any, p: int, width: int) -> np.ndarray:
        """Sums [group, feature, code] of q (planes of int32 values, or one value for all)."""
        device = self.device
        with device.active(f"summing over {layout.n_rows} rows", 4 * layout.n_rows):
            rows = Rows(device, codes, layout, width)
            rows.q[...] = q
            rows.build()
            sums = device.where.host(rows.sums)
        return sums.reshape(layout.n_groups, -1, rows.stride)[:, :p, :width].copy()

    def move(self, F: Any, column: Any, cut: Cut, values: np.ndarray) -> Any:
        return rowwise.move(F, column, cut, values, self.where)

    def pack(self, s: Any, h: Any, unit_s: float, unit_h: float) -> Any:
        return rowwise.pack(s, h, unit_s, unit_h, self.where)

    def exp(self, x: Any) -> Any:
        return exponential.exp(x, self.device.where)

    def by_block(self, function: Callable[[slice], Any], n_rows: int) -> list[Any]:
        return [function(slice(0, n_rows))]

    def evaluate(self, X: Any, tables: PackedTables) -> Any:
        device = self.device
        n, outputs = X.shape[0], len(tables.intercept)
        with device.active(f"predictions of {n} rows", 8 * n * outputs):
            where, plan = device.where, device.plan
            out = where.zeros((n, outputs), where.xp.float64)
            out += where.put(tables.intercept)[None, :]
            if len(tables.features):
                places = np.stack([tables.features, tables.first, tables.steps], axis=1)
                arrays = (places, tables.thresholds, tables.values, tables.missing)
                places_, thresholds_, values_, missing_ = (
                    device.handle(where.put(np.ascontiguousarray(a))) for a in arrays
                )
                evaluate.launch_evaluate(
                    plan.blocks, plan.threads, device.stream(), device.handle(device.adopt(X)),
                    places_, thresholds_, values_, missing_, device.handle(out),
                )  # fmt: skip
            return device.hand_back(out)


class Rows:
    """The rows' codes and weights on the device, their parts, and the sums, as kernel arguments."""

    def __init__(self, device: Device, codes: Any, layout: Layout, width: int) -> None:
        where, xp, plan = device.where, device.where.xp, device.plan
        self.device, self.width, self.groups = device, width, layout.n_groups
        self.lanes, self.stride = histogram.lanes_of(width), histogram.stride_of(width)
        cells = codes.shape[0] * self.lanes * self.stride
        parts = histogram.cut(layout.starts, plan.blocks, plan.part_rows)
        self.grid, self.block = min(plan.blocks, len(parts)), plan.threads
        self.q = where.zeros((layout.n_planes, layout.n_rows), xp.int32)
        self.sums = where.zeros((self.groups, cells), xp.int64)
        self.codes_ = device.handle(codes)
        self.parts_ = device.handle(where.put(parts))
        self.group_of_ = device.handle(where.put(layout.group_of.astype(np.int32)))
        self.q_, self.sums_ = device.handle(self.q), device.handle(self.sums)

    def build(self) -> None:
        self.sums[...] = 0
        histogram.launch_build(
            self.width, self.grid, self.block, self.device.stream(), self.codes_, self.parts_,
            self.group_of_, self.q_, self.sums_,
        )  # fmt: skip


class CudaHistograms:
    """q per plane and row, sums per (group, feature, code), all on the device."""

    def __init__(
        self, device: Device, codes: Codes, layout: Layout, log_weights: Any | None
    ) -> None:
        where, xp = device.where, device.where.xp
        self.device = device
        self.rows = Rows(device, codes.data, layout, codes.width)
        groups, width, p = layout.n_groups, codes.width, codes.n_features
        start_log = where.zeros(1, xp.int64) if log_weights is None else device.adopt(log_weights)
        self.start_log_ = device.handle(start_log)
        self.powers_ = device.handle(where.put(fixedpoint.tables(layout.quantum_bits)))
        self.top = where.zeros(groups, xp.int64)
        self.largest = where.zeros(groups, xp.int32)
        self.factors = where.zeros((groups, width), xp.float64)
        self.weights = where.zeros((2, groups), xp.float64)
        self.record = where.zeros(score.record_length(groups), xp.int64)
        self.top_, self.largest_ = device.handle(self.top), device.handle(self.largest)
        self.factors_, self.weights_ = device.handle(self.factors), device.handle(self.weights)
        self.record_ = device.handle(self.record)
        self.record_score_ = device.handle(self.record.view(xp.float64))
        self.running_ = device.handle(where.zeros((groups, p * width), xp.int64))
        self.lowest_ = device.handle(where.zeros(p, xp.float64))
        self.n_thresholds = np.zeros(p, dtype=np.int32)
        self.thresholds = where.zeros(p, xp.int32)
        self.thresholds_ = device.handle(self.thresholds)

    def requantise(self, log_tables: np.ndarray, used: np.ndarray) -> np.ndarray:
        device, rows = self.device, self.rows
        tables = requantise.used_tables(log_tables, used)
        with device.active("requantising", tables.nbytes):
            self.top[...] = requantise.LOWEST
            self.largest[...] = 0
            places = requantise.used_places(used, rows.lanes)
            requantise.launch_requantise(
                rows.lanes, len(used), rows.grid, rows.block, device.stream(), rows.codes_,
                rows.parts_, rows.group_of_, device.handle(device.where.put(places)),
                device.handle(device.where.put(tables)), self.start_log_, self.top_,
                self.powers_, rows.q_, self.largest_,
            )  # fmt: skip
            rows.build()
            return (device.where.host(self.top) >> fixedpoint.FRACTION_BITS) + 1

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        device, rows, groups = self.device, self.rows, self.rows.groups
        with device.active("scoring", 0):
            if not np.array_equal(self.n_thresholds, criterion.n_thresholds):
                self.n_thresholds = criterion.n_thresholds.astype(np.int32)
                device.overwrite(self.thresholds, self.n_thresholds)
            device.overwrite(self.weights, np.stack([scale, criterion.abstention]))
            score.launch_split(
                criterion.kind, criterion.learn_missing, rows.width, rows.stride,
                min(device.plan.feature_blocks, len(self.n_thresholds)),
                device.plan.feature_threads, device.stream(), rows.sums_, self.running_,
                self.thresholds_, self.weights_, self.lowest_, self.largest_,
                self.record_, self.record_score_,
            )  # fmt: skip
            record = device.where.host(self.record)
        feature, last_bin, missing_leaf = (int(v) for v in record[1 : score.HEADER])
        if feature < 0:
            return None
        sums, largest = np.split(record[score.HEADER :].copy(), [N_LEAVES * groups])
        return Split(
            float(record[:1].view(np.float64)[0]), feature, last_bin, missing_leaf,
            sums.reshape(groups, N_LEAVES), largest,
        )  # fmt: skip

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        device, rows = self.device, self.rows
        with device.active("rescaling", 0):
            device.overwrite(self.factors, np.where(leaf_of == kept, KEEP, ratio[:, leaf_of]))
            histogram.launch_update(
                rows.width, feature, rows.grid, rows.block, device.stream(), rows.codes_,
                rows.parts_, rows.group_of_, self.factors_, rows.q_, rows.sums_, self.largest_,
            )  # fmt: skip
