"""The rounds of AdaBoost on the device: weights and histograms, kept in step."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.cuda import histogram, requantise, score
from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.cuda.launch import Shape
from ensemble_gpu.kernels.cuda.rows import Rows
from ensemble_gpu.kernels.protocol import N_LEAVES, Codes, Criterion, Layout, Split, WeightRule

# A factor that says: rows with this code keep their q.
KEEP = -1.0


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

    def requantise(
        self, log_tables: np.ndarray, used: np.ndarray, least: np.ndarray | None = None
    ) -> np.ndarray:
        device, rows = self.device, self.rows
        tables = requantise.used_tables(log_tables, used)
        with device.active("requantising", tables.nbytes):
            self.top[...] = requantise.LOWEST
            if least is not None:  # of logarithms that have these exponents
                device.overwrite(self.top, (least - 1) << fixedpoint.FRACTION_BITS)
            self.largest[...] = 0
            lanes = requantise.used_lanes(used, rows.lanes)
            requantise.launch_requantise(
                rows.shape, rows.lanes, len(used), rows.arguments,
                device.handle(device.where.put(lanes)), device.handle(device.where.put(tables)),
                self.start_log_, self.top_, self.powers_, rows.q_, self.largest_,
            )  # fmt: skip
            rows.build()
            return (device.where.host(self.top) >> fixedpoint.FRACTION_BITS) + 1

    def add_up(self) -> np.ndarray:
        return self.rows.read(len(self.n_thresholds))

    def heaviest(self) -> np.ndarray:
        return self.device.where.host(self.largest).astype(np.int64)

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        device, rows, groups = self.device, self.rows, self.rows.groups
        with device.active("scoring", 0):
            if not np.array_equal(self.n_thresholds, criterion.n_thresholds):
                self.n_thresholds = criterion.n_thresholds.astype(np.int32)
                device.overwrite(self.thresholds, self.n_thresholds)
            device.overwrite(self.weights, np.stack([scale, criterion.abstention]))
            blocks = min(device.plan.feature_blocks, len(self.n_thresholds))
            score.launch_split(
                Shape(blocks, device.plan.feature_threads, device.stream()), criterion.kind,
                criterion.learn_missing, rows.width, rows.stride, rows.sums_, self.running_,
                self.thresholds_, self.weights_, self.lowest_, self.largest_, self.record_,
                self.record_score_,
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
                rows.shape, rows.width, feature, rows.arguments, self.factors_, rows.q_,
                rows.sums_, self.largest_,
            )  # fmt: skip

    def rounds(self, criterion: Criterion, rule: WeightRule) -> None:
        return None
