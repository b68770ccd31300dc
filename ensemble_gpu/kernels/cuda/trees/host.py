"""Nodes whose splits the host scores, with the code of the other engines.

From the sums of large nodes and from the rows of small ones, whichever are fewer numbers to copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.trees.rows import Rows
from ensemble_gpu.kernels.cpu.trees.splits import node_work, split_nodes
from ensemble_gpu.kernels.cuda import histogram
from ensemble_gpu.kernels.cuda.trees.rows import NodeRows
from ensemble_gpu.kernels.host.records import Found, batch_of, wholes_of
from ensemble_gpu.kernels.host.search import found_in
from ensemble_gpu.kernels.tree_protocol import Frontier, SplitRule


@dataclass(frozen=True)
class HostSearch:
    """Writes the best splits of the nodes `at` of a frontier into the same entries of `found`."""

    rule: SplitRule
    scoring: Any
    rows: NodeRows

    def from_rows(self, frontier: Frontier, at: np.ndarray, found: Found) -> None:
        """The rows' codes and values to the host, and the CPU engine's search."""
        own, where, xp = self.rows, self.rows.device.where, self.rows.device.where.xp
        nodes = frontier.nodes[at]
        start, size = own.start[nodes], own.sizes(nodes)
        stop = np.cumsum(size)
        positions = np.arange(stop[-1]) + np.repeat(start - stop + size, size)
        rows = xp.take(own.order, where.put(positions))
        lanes = 1 << own.codes.lane_bits
        words = where.host(xp.take(own.codes.array, rows, axis=0))
        codes = words.view(np.uint8 if lanes == histogram.TILE_LANES else np.uint16)
        label = np.zeros(0)
        if own.labelled:
            label = where.host(xp.take(own.label, rows))
        values = where.host(xp.take(own.values, rows, axis=0))
        features = np.arange(own.p)[None, :]
        if frontier.features is not None:
            features = frontier.features[at]
        narrow = label.astype(np.uint8 if own.n_stats <= 256 else np.uint32)
        order = np.arange(stop[-1], dtype=np.uint32)
        whole = wholes_of(frontier.sums[at], size, self.rule)
        best = Found(len(at), self.rule, own.n_stats, own.width)
        split_nodes(
            self.scoring, Rows(codes, order, narrow, values, own.width), np.arange(len(at)),
            batch_of(frontier[at], features, stop - size, stop, whole), best.arrays,
            node_work(own.width, whole.shape[1], int(size.max())),
        )  # fmt: skip
        found.put(at, best)

    def from_sums(
        self, frontier: Frontier, at: np.ndarray, features: np.ndarray | None, sums: Any,
        slots: np.ndarray, found: Found,
    ) -> None:  # fmt: skip
        """Sums to the host, and its search."""
        own = self.rows
        cells = own.device.where.host(sums)[slots]
        tried = own.p if features is None else features.shape[1]
        cells = cells.reshape(len(at), tried, own.width, -1)
        n_rows = own.sizes(frontier.nodes[at])
        found.put(at, found_in(self.rule, frontier[at], cells, n_rows))
