"""The rows of a tree on the device: what they carry, and who is in which node."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda.device import Device, integers, thread_a_row
from ensemble_gpu.kernels.cuda.trees import partition
from ensemble_gpu.kernels.cuda.trees.codes import by_row
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.tree_protocol import Sample, Splits


class NodeRows:
    """`order` lists the rows of the sample, a node is a range of it."""

    def __init__(self, codes: Codes, sample: Sample, device: Device) -> None:
        where, xp = device.where, device.where.xp
        self.device, self.n_stats = device, sample.n_stats
        self.codes, self.width, self.p = by_row(codes, device), codes.width, codes.n_features
        if sample.rows is None:
            self.order = xp.arange(codes.n_rows, dtype=xp.int32, device=where.device)
        else:
            self.order = xp.astype(sample.rows, xp.int32)
        self.values = xp.ascontiguousarray(sample.values)
        self.labelled = sample.label is not None
        none = where.zeros(1, xp.int32)
        self.label = xp.astype(sample.label, xp.int32) if self.labelled else none
        self.order_, self.label_ = device.handle(self.order), device.handle(self.label)
        self.values_ = device.handle(self.values)
        self.target_ = None
        if sample.target is not None:
            self.target_ = device.handle(xp.ascontiguousarray(sample.target))
        self.no_subset_ = device.handle(where.zeros((1, 1), xp.uint64))
        self.n_rows, self.sampled = codes.n_rows, sample.rows
        self.is_leaf = np.ones(1, dtype=bool)
        self.start = np.zeros(1, dtype=np.int64)
        self.stop = np.full(1, self.order.shape[0], dtype=np.int64)

    @property
    def arguments(self) -> tuple[Any, Any, Any, Any]:
        """What the kernels that add up rows need of them."""
        return self.codes.handle, self.order_, self.label_, self.values_

    @property
    def n_nodes(self) -> int:
        return len(self.start)

    def sizes(self, nodes: Any) -> np.ndarray:
        """How many rows the nodes have."""
        return self.stop[nodes] - self.start[nodes]

    def total(self) -> np.ndarray:
        """Sums [statistic] of all rows of the sample."""
        xp, device = self.device.where.xp, self.device
        with device.active(f"sums of {self.order.shape[0]} rows", 8 * self.values.shape[0]):
            values = xp.take(self.values, self.order, axis=0)
            if not self.labelled:
                return device.where.host(xp.sum(values, axis=0))
            label = xp.astype(xp.take(self.label, self.order), xp.int64)
            return sums_by(label, values, self.n_stats, device)[:, 0]

    def _table(self, nodes: np.ndarray, columns: int) -> np.ndarray:
        """The first two columns of the nodes at hand (see partition.py), and an end."""
        table = np.zeros((len(nodes) + 1, columns), dtype=np.int32)
        start, stop = self.start[nodes], self.stop[nodes]
        table[1:, partition.OFFSET] = np.cumsum(stop - start)
        table[:-1, partition.START] = start
        return table

    def partition(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        """Send the rows of each node to its two new children; how many went left."""
        device, where, xp = self.device, self.device.where, self.device.where.xp
        table = self._table(nodes, partition.NODE)
        table[:-1, partition.FEATURE] = splits.feature
        table[:-1, partition.BIN] = splits.bin
        table[:-1, partition.MISSING_LEFT] = splits.missing_left
        total = int(table[-1, partition.OFFSET])
        with device.active(f"the rows of {len(nodes)} nodes", 20 * total):
            table_, subset_ = integers(table, device), self.no_subset_
            if splits.subset.shape[1]:
                subset_ = device.handle(where.put(np.ascontiguousarray(splits.subset)))
            node_of, goes, moved = (where.zeros(total, xp.int32) for _ in range(3))
            node_of_ = device.handle(node_of)
            partition.launch_mark(
                thread_a_row(device, total), self.codes.lane_bits, self.width, self.codes.handle,
                self.order_, table_, subset_, node_of_, device.handle(goes),
            )  # fmt: skip
            running = xp.cumulative_sum(goes, dtype=xp.int32)
            ends = xp.take(running, where.put(table[1:, partition.OFFSET].astype(np.int64) - 1))
            before = xp.concat([where.zeros(1, xp.int32), ends])
            partition.launch_reorder(
                thread_a_row(device, total), self.order_, table_, node_of_,
                device.handle(running), device.handle(before), device.handle(moved),
            )  # fmt: skip
            n_left = np.diff(where.host(before)).astype(np.int64)
        self._divide(nodes, n_left)
        return n_left

    def _divide(self, nodes: np.ndarray, n_left: np.ndarray) -> None:
        """The ranges of the children."""
        start, stop = self.start[nodes], self.stop[nodes]
        self.is_leaf[nodes] = False
        self.is_leaf = np.concatenate([self.is_leaf, np.ones(2 * len(nodes), dtype=bool)])
        middle = start + n_left
        self.start = np.concatenate([self.start, np.stack([start, middle], axis=1).reshape(-1)])
        self.stop = np.concatenate([self.stop, np.stack([middle, stop], axis=1).reshape(-1)])

    def nodes(self) -> Any:
        """The node of every row of the sample, in its order."""
        device, where = self.device, self.device.where
        leaves = np.flatnonzero(self.is_leaf)
        table = self._table(leaves, 3)
        table[:-1, partition.FEATURE] = leaves
        with device.active(f"nodes of {self.n_rows} rows", 8 * self.n_rows):
            out = where.zeros(self.n_rows, where.xp.int64)
            partition.launch_number_rows(
                thread_a_row(device, self.order.shape[0]), self.order_, integers(table, device),
                device.handle(out),
            )  # fmt: skip
            return out if self.sampled is None else where.xp.take(out, self.sampled)

    def pure(self, nodes: np.ndarray) -> np.ndarray:
        """Whether all rows of a node have the same target."""
        if self.target_ is None or not len(nodes):
            return np.zeros(len(nodes), dtype=bool)
        device, where = self.device, self.device.where
        table = self._table(nodes, 2)
        with device.active(f"the targets of {len(nodes)} nodes", 4 * len(nodes)):
            differs = where.zeros(len(nodes), where.xp.int32)
            partition.launch_compare(
                thread_a_row(device, int(table[-1, partition.OFFSET])), self.order_,
                integers(table, device), self.target_, device.handle(differs),
            )  # fmt: skip
            return where.host(differs) == 0


def sums_by(index: Any, values: Any, n: int, device: Device) -> np.ndarray:
    """sums[i, s] of the values[row, s] of the rows with that index."""
    where, xp = device.where, device.where.xp
    sums = where.zeros((n, values.shape[1]), xp.int64)
    partition.launch_sum_by(
        thread_a_row(device, values.shape[0]), device.handle(xp.ascontiguousarray(index)),
        device.handle(xp.ascontiguousarray(values)), device.handle(sums),
    )  # fmt: skip
    return where.host(sums)
