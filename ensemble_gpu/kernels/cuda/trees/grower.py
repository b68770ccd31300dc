"""One tree on the CUDA engine: which nodes are split how.

Nodes of at most `part_rows` rows are small. The device scores small nodes from their rows, large
ones from sums that stay there. Where features are categories, or a feature's sums do not fit the
shared memory of a block, the host scores (host.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda.device import Device, integers
from ensemble_gpu.kernels.cuda.trees import splits as split_kernels
from ensemble_gpu.kernels.cuda.trees.best import BestSplits, found_bytes
from ensemble_gpu.kernels.cuda.trees.host import HostSearch
from ensemble_gpu.kernels.cuda.trees.kept import NodeSums, families
from ensemble_gpu.kernels.cuda.trees.rows import NodeRows
from ensemble_gpu.kernels.cuda.trees.search import Search
from ensemble_gpu.kernels.cuda.trees.sums import fits
from ensemble_gpu.kernels.host.criteria import scoring_of
from ensemble_gpu.kernels.host.records import Found
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.tree_protocol import Frontier, Sample, SplitRule, Splits

# Sums, or best splits of features, that are on the device at once.
CHUNK_BYTES = 2**28


class CudaGrower:
    """The rows of one tree, node by node."""

    def __init__(self, codes: Codes, sample: Sample, rule: SplitRule, device: Device) -> None:
        self.device, self.rule, self.n_stats = device, rule, sample.n_stats
        self.width, self.p = codes.width, codes.n_features
        scoring = scoring_of(rule, sample.n_stats)
        self.columns = sample.n_stats + scoring.counted
        self.rows = NodeRows(codes, sample, device)
        self.node_sums = NodeSums(self.rows, scoring.counted)
        self.search = Search(rule, sample.n_stats, codes.n_features, device)
        self.host = HostSearch(rule, scoring, self.rows)

    @property
    def on_device(self) -> bool:
        """Whether the device scores."""
        return not self.rule.categorical.any() and fits(self.width, self.columns)

    def total(self) -> np.ndarray:
        return self.rows.total()

    def sums(self, frontier: Frontier) -> np.ndarray:
        tried, width, columns = self._tried(frontier), self.width, self.columns
        step = max(1, CHUNK_BYTES // (8 * tried * width * columns))
        cells = []
        with self.device.active(f"sums of {len(frontier.nodes)} nodes", CHUNK_BYTES):
            for first in range(0, len(frontier.nodes), step):
                part = frontier[first : first + step]
                features_ = self._features(part.features)
                own = self.node_sums.of(part.nodes.tolist(), features_, tried)[0]
                cells.append(self.device.where.host(own))
        return np.concatenate(cells).reshape(len(frontier.nodes), tried, width, columns)

    def split(self, frontier: Frontier) -> Splits:
        nodes = frontier.nodes
        found = Found(len(nodes), self.rule, self.n_stats, self.width)
        large = self.rows.sizes(nodes) > self.device.plan.part_rows
        with self.device.active(f"splits of {len(nodes)} nodes", 2 * CHUNK_BYTES):
            self._split_small(frontier, np.flatnonzero(~large), found)
            self._split_large(frontier, np.flatnonzero(large), found)
        self.node_sums.inherited.clear()
        return found.splits()

    def _tried(self, frontier: Frontier) -> int:
        return self.p if frontier.features is None else frontier.features.shape[1]

    def _features(self, features: np.ndarray | None) -> Any:
        return self.node_sums.all_features_ if features is None else integers(features, self.device)

    def _split_small(self, frontier: Frontier, at: np.ndarray, found: Found) -> None:
        tried = self._tried(frontier)
        size = found_bytes(tried, self.columns)
        step = max(1, CHUNK_BYTES // size) if self.on_device else max(1, len(at))
        for first in range(0, len(at), step):
            chunk = at[first : first + step]
            if self.on_device:
                self._split_rows(frontier, chunk, tried, found)
            else:
                self.host.from_rows(frontier, chunk, found)

    def _split_rows(self, frontier: Frontier, at: np.ndarray, tried: int, found: Found) -> None:
        nodes, rows, device = frontier.nodes[at], self.rows, self.device
        ranges = integers(np.stack([rows.start[nodes], rows.stop[nodes]], axis=1), device)
        features = frontier.features if frontier.features is None else frontier.features[at]
        features_ = self._features(features)
        best = BestSplits(len(at), tried, self.columns, device)
        split_kernels.launch_split_rows(
            device.plan, device.stream(), rows.codes.lane_bits, self.width, self.columns,
            rows.arguments, ranges, features_, self.search.arguments(frontier, at), best.arguments,
        )  # fmt: skip
        best.choose(features_, at, found)

    def _split_large(self, frontier: Frontier, at: np.ndarray, found: Found) -> None:
        position = {int(frontier.nodes[i]): int(i) for i in at}
        tried, device = self._tried(frontier), self.device
        step = max(2, CHUNK_BYTES // (8 * tried * self.width * self.columns))
        for nodes in families(sorted(position), step):
            chunk = np.array([position[node] for node in nodes])
            features = None if frontier.features is None else frontier.features[chunk]
            features_ = self._features(features)
            if features is None:
                sums, sums_, slots = self.node_sums.of_families(nodes)
            else:
                sums, sums_, slots = self.node_sums.of(nodes, features_, tried)
            if self.on_device:
                best = BestSplits(len(chunk), tried, self.columns, device)
                split_kernels.launch_split_sums(
                    device.plan, device.stream(), self.width, self.columns, sums_,
                    integers(slots, device), features_, self.search.arguments(frontier, chunk),
                    best.arguments,
                )  # fmt: skip
                best.choose(features_, chunk, found)
            else:
                self.host.from_sums(frontier, chunk, features, sums, slots, found)

    def partition(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        first = self.rows.n_nodes
        n_left = self.rows.partition(nodes, splits)
        self.node_sums.inherit(nodes, first)
        return n_left

    def n_sampled(self) -> int:
        return int(self.rows.sizes(np.zeros(1, dtype=np.int64))[0])

    def nodes(self) -> Any:
        return self.rows.nodes()

    def pure(self, nodes: np.ndarray) -> np.ndarray:
        return self.rows.pure(nodes)
