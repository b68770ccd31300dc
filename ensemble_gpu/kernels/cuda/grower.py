"""One tree on the CUDA engine: who is in which node, which sums are kept, who scores.

Nodes of at most `part_rows` rows are small. The device scores small nodes from their rows, large
ones from sums that stay there. Where features are categories, or a feature's sums do not fit the
shared memory of a block, the host scores with the code of the other engines: from the sums of large
nodes and from the rows of small ones, whichever are fewer numbers to copy.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from ensemble_gpu.kernels.cpu import growing as on_host
from ensemble_gpu.kernels.cuda import growing, histogram, partition
from ensemble_gpu.kernels.cuda.best import Best, Search, found_bytes
from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.growing import CodeTree, Frontier, Rule, Sample, Splits
from ensemble_gpu.kernels.hashing import drawn
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.splitting import Found, scoring_of, search, wholes_of

# Sums, or best splits of features, that are on the device at once; sums kept for the children.
CHUNK_BYTES = 2**28
KEPT_BYTES = 2**30

_BY_ROW = threading.Lock()

host_growing: Any = on_host


@njit(cache=True, nogil=True)
def _draw(keys, features, out):
    """What is random about thresholds: features [node, tried], or [1, tried] for all of them."""
    for i in range(keys.shape[0]):
        for j in range(features.shape[1]):
            out[i, j] = drawn(keys[i], features[i if features.shape[0] > 1 else 0, j], 0)


@dataclass(frozen=True)
class RowCodes:
    """Codes [row, tile] as an array and as a kernel argument."""

    array: Any
    handle: Any
    lane_bits: int


def by_row(codes: Codes, device: Device) -> RowCodes:
    """The codes of a row side by side, made once."""
    with _BY_ROW:
        if "rows" not in codes.columns:
            array = device.where.xp.ascontiguousarray(codes.data.T)
            lane_bits = histogram.lanes_of(codes.width).bit_length() - 1
            codes.columns["rows"] = RowCodes(array, device.handle(array), lane_bits)
        return codes.columns["rows"]


@dataclass(frozen=True)
class Kept:
    """Where the sums of a node are: a row of an array on the device."""

    sums: Any
    handle: Any
    slot: int


class CudaGrower:
    """One tree; `order` lists the rows of the sample, a node is a range of it."""

    def __init__(self, codes: Codes, sample: Sample, rule: Rule, device: Device) -> None:
        where, xp = device.where, device.where.xp
        self.device, self.rule, self.n_stats = device, rule, sample.n_stats
        self.codes, self.width, self.p = by_row(codes, device), codes.width, codes.n_features
        self.scoring = scoring_of(rule, sample.n_stats)
        self.columns = sample.n_stats + self.scoring.counted
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
        self.n_rows, self.rows = codes.n_rows, sample.rows
        self.is_leaf = np.ones(1, dtype=bool)
        self.start = np.zeros(1, dtype=np.int64)
        self.stop = np.full(1, self.order.shape[0], dtype=np.int64)
        self.all_features_ = self._put(np.arange(self.p)[None, :])
        self.signs_, self.no_bounds_ = (
            self._put(rule.signs),
            device.handle(where.put(np.zeros((1, 2)))),
        )
        self.no_subset_ = device.handle(where.zeros((1, 1), xp.uint64))
        self.kept: dict[int, Kept] = {}
        self.inherited: dict[int, Kept] = {}  # a left child: the sums of its parent

    @property
    def on_device(self) -> bool:
        """Whether the device scores."""
        return not self.rule.categorical.any() and growing.fits(self.width, self.columns)

    @property
    def rows_(self) -> tuple[Any, Any, Any, Any]:
        return self.codes.handle, self.order_, self.label_, self.values_

    def _put(self, array: np.ndarray) -> Any:
        """Small integers from the host as a kernel argument."""
        array = np.ascontiguousarray(array, dtype=np.int32)
        return self.device.handle(self.device.where.put(array))

    def _features(self, features: np.ndarray | None) -> Any:
        return self.all_features_ if features is None else self._put(features)

    def total(self) -> np.ndarray:
        xp, device = self.device.where.xp, self.device
        with device.active(f"sums of {self.order.shape[0]} rows", 8 * self.values.shape[0]):
            values = xp.take(self.values, self.order, axis=0)
            if not self.labelled:
                return device.where.host(xp.sum(values, axis=0))
            label = xp.astype(xp.take(self.label, self.order), xp.int64)
            return sums_by(label, values, self.n_stats, device)[:, 0]

    # --- splits ------------------------------------------------------------------------------

    def grow_levels(self, limits: Any, rounding: float, *root: np.ndarray) -> None:
        return None

    def split(self, frontier: Frontier) -> Splits:
        nodes = frontier.nodes
        found = Found(len(nodes), self.rule, self.n_stats, self.width)
        large = self.stop[nodes] - self.start[nodes] > self.device.plan.part_rows
        with self.device.active(f"splits of {len(nodes)} nodes", 2 * CHUNK_BYTES):
            self._split_small(frontier, np.flatnonzero(~large), found)
            self._split_large(frontier, np.flatnonzero(large), found)
        self.inherited.clear()
        return found.splits()

    def _split_small(self, frontier: Frontier, at: np.ndarray, found: Found) -> None:
        tried = self.p if frontier.features is None else frontier.features.shape[1]
        size = found_bytes(tried, self.columns)
        step = max(1, CHUNK_BYTES // size) if self.on_device else max(1, len(at))
        for first in range(0, len(at), step):
            here = at[first : first + step]
            if self.on_device:
                self._split_rows(frontier, here, tried, found)
            else:
                self._split_on_host(frontier, here, found)

    def _search(self, frontier: Frontier, at: np.ndarray) -> Search:
        """What the kernels need of these nodes; copied only where it matters."""
        device, where, rule = self.device, self.device.where, self.rule
        bounds_, draws_ = self.no_bounds_, self.no_subset_
        if rule.monotone:
            bounds_ = device.handle(where.put(np.ascontiguousarray(frontier.bounds[at])))
        if rule.random:
            features = np.arange(self.p)[None, :]
            if frontier.features is not None:
                features = frontier.features[at]
            draws = np.empty((len(at), features.shape[1]), dtype=np.uint64)
            _draw(frontier.keys[at], features, draws)
            draws_ = device.handle(where.put(draws))
        return Search(rule, self.n_stats, self.signs_, bounds_, draws_)

    def _split_rows(self, frontier: Frontier, at: np.ndarray, tried: int, found: Found) -> None:
        nodes, device = frontier.nodes[at], self.device
        ranges = self._put(np.stack([self.start[nodes], self.stop[nodes]], axis=1))
        features = frontier.features if frontier.features is None else frontier.features[at]
        features_ = self._features(features)
        best = Best(len(at), tried, self.columns, device)
        growing.launch_split_rows(
            self.codes.lane_bits, self.width, self.columns, tried,
            self._search(frontier, at).arguments, device.plan, device.stream(), *self.rows_,
            ranges, features_, best.scores_, best.found_,
        )  # fmt: skip
        best.choose(features_, at, found)

    def _split_on_host(self, frontier: Frontier, at: np.ndarray, found: Found) -> None:
        """The rows' codes and values to the host, and the CPU engine's search."""
        nodes, where, xp = frontier.nodes[at], self.device.where, self.device.where.xp
        start, size = self.start[nodes], self.stop[nodes] - self.start[nodes]
        stop = np.cumsum(size)
        places = np.arange(stop[-1]) + np.repeat(start - stop + size, size)
        rows = xp.take(self.order, where.put(places))
        lanes = 1 << self.codes.lane_bits
        words = where.host(xp.take(self.codes.array, rows, axis=0))
        codes = words.view(np.uint8 if lanes == histogram.TILE_LANES else np.uint16)
        label = np.zeros(0)
        if self.labelled:
            label = where.host(xp.take(self.label, rows))
        values = where.host(xp.take(self.values, rows, axis=0))
        features = np.arange(self.p)[None, :]
        if frontier.features is not None:
            features = frontier.features[at]
        arrays = [a[at] for a in found.arrays]
        host_growing.split_nodes(
            self.scoring, codes, np.arange(stop[-1], dtype=np.uint32),
            label.astype(np.uint8 if self.n_stats <= 256 else np.uint32), values, self.width,
            stop - size, stop, features, wholes_of(frontier.sums[at], size, self.rule),
            frontier.bounds[at], frontier.keys[at], *arrays, False,
        )  # fmt: skip
        for whole, array in zip(found.arrays, arrays, strict=True):
            whole[at] = array

    def _split_large(self, frontier: Frontier, at: np.ndarray, found: Found) -> None:
        place = {int(frontier.nodes[i]): int(i) for i in at}
        tried = self.p if frontier.features is None else frontier.features.shape[1]
        step = max(2, CHUNK_BYTES // (8 * tried * self.width * self.columns))
        for nodes in _pairs_of(sorted(place), step):
            here = np.array([place[node] for node in nodes])
            features = None if frontier.features is None else frontier.features[here]
            features_ = self._features(features)
            if features is None:
                sums, sums_, slots = self._family_sums(nodes)
            else:
                sums, sums_, slots = self._sums(nodes, features_, tried)
            if self.on_device:
                best = Best(len(here), tried, self.columns, self.device)
                growing.launch_split_sums(
                    self.width, self.columns, tried, self._search(frontier, here).arguments,
                    self.device.plan, self.device.stream(), sums_, self._put(slots), features_,
                    best.scores_, best.found_,
                )  # fmt: skip
                best.choose(features_, here, found)
            else:
                self._search_on_host(frontier, here, features, sums, slots, found)

    def _search_on_host(
        self, frontier: Frontier, at: np.ndarray, features: np.ndarray | None, sums: Any,
        slots: np.ndarray, found: Found,
    ) -> None:  # fmt: skip
        """Sums to the host, and its search."""
        if features is None:
            features = np.tile(np.arange(self.p), (len(at), 1))
        cells = self.device.where.host(sums)[slots]
        cells = cells.reshape(len(at), features.shape[1], self.width, self.columns)
        n_rows = (self.stop - self.start)[frontier.nodes[at]]
        arrays = [a[at] for a in found.arrays]
        search(
            self.scoring, cells, features, wholes_of(frontier.sums[at], n_rows, self.rule),
            frontier.bounds[at], frontier.keys[at], *arrays,
        )  # fmt: skip
        for whole, array in zip(found.arrays, arrays, strict=True):
            whole[at] = array

    # --- sums --------------------------------------------------------------------------------

    def _sums(
        self, nodes: list[int], features_: Any, tried: int, n_slots: int | None = None
    ) -> tuple[Any, Any, np.ndarray]:
        """Sums [slot, cell] of nodes, their handle, and the nodes' slots (the first ones)."""
        device, where = self.device, self.device.where
        shape = (len(nodes) if n_slots is None else n_slots, tried * self.width * self.columns)
        sums = where.zeros(shape, where.xp.int64)
        sums_ = device.handle(sums)
        if nodes:
            parts = cut(self.start[nodes], self.stop[nodes], device.plan.blocks,
                        device.plan.part_rows)  # fmt: skip
            growing.launch_sums(
                self.codes.lane_bits, self.width, self.n_stats, self.scoring.counted, tried,
                min(device.plan.blocks, len(parts)), device.plan.threads, device.stream(),
                *self.rows_, self._put(parts), features_, sums_,
            )  # fmt: skip
        return sums, sums_, np.arange(len(nodes))

    def _family_sums(self, nodes: list[int]) -> tuple[Any, Any, np.ndarray]:
        """Sums of nodes over all features: added up, or the parent's less the sibling's; kept."""
        size, built, taken = self.stop - self.start, [], []
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
        sums, sums_, _ = self._sums(built, self.all_features_, self.p, len(slot))
        self._subtract(taken, slot, sums_)
        total = sum({id(k.sums): k.sums.nbytes for k in self.kept.values()}.values())
        if total + sums.nbytes <= KEPT_BYTES:
            self.kept |= {node: Kept(sums, sums_, slot[node]) for node in nodes}
        return sums, sums_, np.array([slot[node] for node in nodes])

    def _subtract(
        self, taken: list[tuple[Kept, int, int]], slot: dict[int, int], sums_: Any
    ) -> None:
        """One launch for all parents in one array: with level by level growth, for all of them."""
        arrays = {id(parent.sums): parent.handle for parent, _, _ in taken}
        for key, parents_ in arrays.items():
            pairs = [
                (parent.slot, slot[small], slot[large])
                for parent, small, large in taken
                if id(parent.sums) == key
            ]
            growing.launch_subtract(
                self.device.plan, self.device.stream(), self._put(np.array(pairs)), parents_,
                sums_,
            )  # fmt: skip

    # --- rows --------------------------------------------------------------------------------

    def _table(self, nodes: np.ndarray, columns: int) -> np.ndarray:
        """The first two columns of the nodes at hand (see partition.py), and an end."""
        table = np.zeros((len(nodes) + 1, columns), dtype=np.int32)
        start, stop = self.start[nodes], self.stop[nodes]
        table[1:, partition.OFFSET] = np.cumsum(stop - start)
        table[:-1, partition.START] = start
        return table

    def partition(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        device, where, plan = self.device, self.device.where, self.device.plan
        xp = where.xp
        table = self._table(nodes, partition.NODE)
        table[:-1, partition.FEATURE] = splits.feature
        table[:-1, partition.BIN] = splits.bin
        table[:-1, partition.MISSING_LEFT] = splits.missing_left
        total = int(table[-1, partition.OFFSET])
        with device.active(f"the rows of {len(nodes)} nodes", 20 * total):
            table_, subset_ = self._put(table), self.no_subset_
            if splits.subset.shape[1]:
                subset_ = device.handle(where.put(np.ascontiguousarray(splits.subset)))
            node_of, goes, moved = (where.zeros(total, xp.int32) for _ in range(3))
            node_of_ = device.handle(node_of)
            partition.launch_mark(
                self.codes.lane_bits, self.width, plan.row_blocks(total), plan.threads,
                device.stream(), self.codes.handle, self.order_, table_, subset_, node_of_,
                device.handle(goes),
            )  # fmt: skip
            running = xp.cumulative_sum(goes, dtype=xp.int32)
            ends = xp.take(running, where.put(table[1:, partition.OFFSET].astype(np.int64) - 1))
            before = xp.concat([where.zeros(1, xp.int32), ends])
            partition.launch_move(
                plan.row_blocks(total), plan.threads, device.stream(), self.order_, table_,
                node_of_, device.handle(running), device.handle(before), device.handle(moved),
            )  # fmt: skip
            n_left = np.diff(where.host(before)).astype(np.int64)
        self._divide(nodes, n_left)
        return n_left

    def _divide(self, nodes: np.ndarray, n_left: np.ndarray) -> None:
        """The ranges of the children; they inherit the sums of their parents."""
        first, start, stop = len(self.start), self.start[nodes], self.stop[nodes]
        for i, node in enumerate(nodes.tolist()):
            if node in self.kept:
                self.inherited[first + 2 * i] = self.kept.pop(node)
        self.is_leaf[nodes] = False
        self.is_leaf = np.concatenate([self.is_leaf, np.ones(2 * len(nodes), dtype=bool)])
        middle = start + n_left
        self.start = np.concatenate([self.start, np.stack([start, middle], axis=1).reshape(-1)])
        self.stop = np.concatenate([self.stop, np.stack([middle, stop], axis=1).reshape(-1)])

    def nodes(self) -> Any:
        device, where, plan = self.device, self.device.where, self.device.plan
        leaves = np.flatnonzero(self.is_leaf)
        table = self._table(leaves, 3)
        table[:-1, partition.FEATURE] = leaves
        with device.active(f"nodes of {self.n_rows} rows", 8 * self.n_rows):
            out = where.zeros(self.n_rows, where.xp.int64)
            partition.launch_place(
                plan.row_blocks(self.order.shape[0]), plan.threads, device.stream(), self.order_,
                self._put(table), device.handle(out),
            )  # fmt: skip
            return out if self.rows is None else where.xp.take(out, self.rows)

    def pure(self, nodes: np.ndarray) -> np.ndarray:
        if self.target_ is None or not len(nodes):
            return np.zeros(len(nodes), dtype=bool)
        device, where, plan = self.device, self.device.where, self.device.plan
        table = self._table(nodes, 2)
        with device.active(f"the targets of {len(nodes)} nodes", 4 * len(nodes)):
            differs = where.zeros(len(nodes), where.xp.int32)
            partition.launch_compare(
                plan.row_blocks(int(table[-1, partition.OFFSET])), plan.threads, device.stream(),
                self.order_, self._put(table), self.target_, device.handle(differs),
            )  # fmt: skip
            return where.host(differs) == 0


def _pairs_of(nodes: list[int], step: int) -> Iterator[list[int]]:
    """Ascending nodes in lists of at most `step` slots, siblings always together."""
    chunk: list[int] = []
    families = 0
    for node in nodes:
        is_sibling = bool(chunk) and node % 2 == 0 and chunk[-1] == node - 1
        if not is_sibling and 2 * families >= step - 1:
            yield chunk
            chunk, families = [], 0
        chunk.append(node)
        families += not is_sibling
    if chunk:
        yield chunk


def cut(start: np.ndarray, stop: np.ndarray, blocks: int, part_rows: int) -> np.ndarray:
    """Ranges of rows in parts (slot, start, stop) of equal size, but for the last of each."""
    size = max(part_rows, -(-int((stop - start).sum()) // blocks))
    parts_of = -(-(stop - start) // size)
    slot = np.repeat(np.arange(len(start)), parts_of)
    turn = np.arange(len(slot)) - np.repeat(np.cumsum(parts_of) - parts_of, parts_of)
    first = start[slot] + turn * size
    return np.stack([slot, first, np.minimum(first + size, stop[slot])], axis=1)


def leaves(codes: Codes, tree: CodeTree, device: Device) -> Any:
    """The leaf of every row of the matrix."""
    where, plan = device.where, device.plan
    rows, out = by_row(codes, device), where.zeros(codes.n_rows, where.xp.int64)
    columns = (tree.feature, tree.bin, tree.missing_left, tree.left, tree.right)
    nodes = np.stack(columns, axis=1).astype(np.int32)
    subset = tree.subset if tree.subset.shape[1] else np.zeros((1, 1), dtype=np.uint64)
    partition.launch_leaves(
        rows.lane_bits, codes.width, plan.row_blocks(codes.n_rows), plan.threads, device.stream(),
        rows.handle, device.handle(where.put(nodes)),
        device.handle(where.put(np.ascontiguousarray(subset))), device.handle(out),
    )  # fmt: skip
    return out


def sums_by(index: Any, values: Any, n: int, device: Device) -> np.ndarray:
    """sums[i, s] of the values[row, s] of the rows with that index."""
    where, plan, xp = device.where, device.plan, device.where.xp
    sums = where.zeros((n, values.shape[1]), xp.int64)
    partition.launch_sum_by(
        plan.row_blocks(values.shape[0]), plan.threads, device.stream(),
        device.handle(xp.ascontiguousarray(index)), device.handle(xp.ascontiguousarray(values)),
        device.handle(sums),
    )  # fmt: skip
    return where.host(sums)
