"""Sums of nodes on the device, and those kept until the children are split.

Of two siblings the smaller one is added up; the other's sums are the parent's less the sibling's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda.device import integers
from ensemble_gpu.kernels.cuda.trees import sums as summing
from ensemble_gpu.kernels.cuda.trees.rows import NodeRows

KEPT_BYTES = 2**30


@dataclass(frozen=True)
class Kept:
    """Where the sums of a node are: a row of an array on the device."""

    sums: Any
    handle: Any
    slot: int


class NodeSums:
    """Sums [slot, cell] of nodes; `counted`: with a column for the number of rows."""

    def __init__(self, rows: NodeRows, counted: bool) -> None:
        self.rows, self.counted = rows, counted
        self.cells = rows.width * (rows.n_stats + counted)  # of a feature
        self.all_features_ = integers(np.arange(rows.p)[None, :], rows.device)
        self.kept: dict[int, Kept] = {}
        self.inherited: dict[int, Kept] = {}  # a left child: the sums of its parent

    def of(
        self, nodes: list[int], features_: Any, tried: int, n_slots: int | None = None
    ) -> tuple[Any, Any, np.ndarray]:
        """Sums of nodes, their handle, and the nodes' slots (the first ones)."""
        rows, device, where = self.rows, self.rows.device, self.rows.device.where
        shape = (len(nodes) if n_slots is None else n_slots, tried * self.cells)
        sums = where.zeros(shape, where.xp.int64)
        sums_ = device.handle(sums)
        if nodes:
            parts = summing.node_parts(
                rows.start[nodes], rows.stop[nodes], device.plan.blocks, device.plan.part_rows
            )
            summing.launch_sums(
                device.plan, device.stream(), rows.codes.lane_bits, rows.width, rows.n_stats,
                self.counted, tried, rows.arguments, integers(parts, device), features_, sums_,
            )  # fmt: skip
        return sums, sums_, np.arange(len(nodes))

    def of_families(self, nodes: list[int]) -> tuple[Any, Any, np.ndarray]:
        """Sums of nodes over all features: added up, or the parent's less the sibling's; kept."""
        size, built, taken = self.rows.sizes(slice(None)), [], []
        for left in sorted({node - (node + 1) % 2 for node in nodes}):
            wanted = [node for node in (left, left + 1) if node in nodes]
            parent = self.inherited.pop(left, None)
            if parent is None:
                built += wanted
                continue
            small, large = (left, left + 1) if size[left] <= size[left + 1] else (left + 1, left)
            built.append(small)
            if large in wanted:
                taken.append((parent, small, large))
        slot = {node: i for i, node in enumerate([*built, *(t[2] for t in taken)])}
        sums, sums_, _ = self.of(built, self.all_features_, self.rows.p, len(slot))
        self._subtract(taken, slot, sums_)
        total = sum({id(k.sums): k.sums.nbytes for k in self.kept.values()}.values())
        if total + sums.nbytes <= KEPT_BYTES:
            self.kept |= {node: Kept(sums, sums_, slot[node]) for node in nodes}
        return sums, sums_, np.array([slot[node] for node in nodes])

    def _subtract(
        self, taken: list[tuple[Kept, int, int]], slot: dict[int, int], sums_: Any
    ) -> None:
        """One launch for all parents in one array: with level by level growth, for all of them."""
        device = self.rows.device
        arrays = {id(parent.sums): parent.handle for parent, _, _ in taken}
        for key, parents_ in arrays.items():
            pairs = [
                (parent.slot, slot[small], slot[large])
                for parent, small, large in taken
                if id(parent.sums) == key
            ]
            summing.launch_subtract(
                device.plan, device.stream(), integers(np.array(pairs), device), parents_, sums_
            )

    def inherit(self, nodes: np.ndarray, first: int) -> None:
        """Children, numbered from `first`, inherit the sums of their parents."""
        for i, node in enumerate(nodes.tolist()):
            if node in self.kept:
                self.inherited[first + 2 * i] = self.kept.pop(node)


def families(nodes: list[int], step: int) -> Iterator[list[int]]:
    """Ascending nodes in lists of at most `step` slots, siblings always together."""
    chunk: list[int] = []
    n_families = 0
    for node in nodes:
        is_sibling = bool(chunk) and node % 2 == 0 and chunk[-1] == node - 1
        if not is_sibling and 2 * n_families >= step - 1:
            yield chunk
            chunk, n_families = [], 0
        chunk.append(node)
        n_families += not is_sibling
    if chunk:
        yield chunk
