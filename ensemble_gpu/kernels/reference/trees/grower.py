"""Trees on the reference engine: array-API calls only.

Every row knows its node. Sums per (node, code) of a feature need no scatter: rows are sorted by
that pair, and a sum is the difference of a running sum at the ends of a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels.host.search import choose
from ensemble_gpu.kernels.protocol import Codes
from ensemble_gpu.kernels.tree_protocol import (
    LEAF,
    CodeTree,
    Frontier,
    Sample,
    SplitRule,
    Splits,
    subset_words,
    unpacked,
)

NOWHERE = -1
# Cells [node, feature, code, column] of sums that are scored at once.
MOST_CELLS = 1 << 22


class ReferenceGrower:
    """One tree: `node[row]` is the node of a row of the matrix, NOWHERE outside of the sample."""

    def __init__(self, codes: Codes, sample: Sample, rule: SplitRule, where: Where) -> None:
        xp = where.xp
        self.rule, self.where, self.width = rule, where, codes.width
        self.n_stats = sample.n_stats
        rows = xp.arange(codes.n_rows, device=where.device) if sample.rows is None else sample.rows
        self.codes = xp.take(codes.data[0], rows, axis=1)
        self.node = xp.zeros_like(rows)
        self.n_nodes = 1
        self.values = self._columns(sample, rows)
        self.target = None if sample.target is None else xp.take(sample.target, rows)

    def _columns(self, sample: Sample, rows: Any) -> Any:
        """What is added up, one column after the other: [column, row]."""
        xp = self.where.xp
        values = xp.permute_dims(xp.take(sample.values, rows, axis=0), (1, 0))
        if sample.label is not None:
            label = xp.take(sample.label, rows)
            every = xp.arange(sample.n_stats, dtype=label.dtype, device=self.where.device)
            own = xp.astype(label[None, :] == every[:, None], xp.int64)
            values = own * values
        if self.rule.min_rows > 1:
            values = xp.concat([values, xp.ones_like(values[:1, :])], axis=0)
        return values

    def total(self) -> np.ndarray:
        return self.where.host(self.where.xp.sum(self.values, axis=1))[: self.n_stats]

    def n_sampled(self) -> int:
        return int(self.node.shape[0])

    def _slots(self, nodes: np.ndarray) -> Any:
        """Which of the nodes every row is in; NOWHERE where in none."""
        slot_of = np.full(self.n_nodes, NOWHERE)
        slot_of[nodes] = np.arange(len(nodes))
        return self.where.xp.take(self.where.put(slot_of), self.node)

    def split(self, frontier: Frontier) -> Splits:
        nodes, p = frontier.nodes, self.codes.shape[0]
        words = subset_words(self.rule.categorical, self.width)
        found = Splits.none(len(nodes), self.n_stats, words)
        step = max(1, MOST_CELLS // (p * self.width * self.values.shape[0]))
        for start in range(0, len(nodes), step):
            part = frontier[start : start + step]
            sums, n_rows = self._sums(part)
            at = np.arange(start, start + len(part.nodes))
            found.replace(at, choose(self.rule, part, sums, n_rows))
        return found

    def sums(self, frontier: Frontier) -> np.ndarray:
        return self._sums(frontier)[0]

    def _sums(self, frontier: Frontier) -> tuple[np.ndarray, np.ndarray]:
        """Sums [node, tried, code, column] and rows [node], on the host."""
        xp, where, width, nodes = self.where.xp, self.where, self.width, frontier.nodes
        slot = self._slots(nodes)
        rows = xp.nonzero(slot >= 0)[0]
        slot, values = xp.take(slot, rows), xp.take(self.values, rows, axis=1)
        cells = len(nodes) * width
        runs = where.put(np.arange(cells + 1))
        features = []
        for f in range(self.codes.shape[0]):
            key = slot * width + xp.take(self.codes[f, :], rows)
            order = xp.argsort(key, stable=True)
            ends = xp.searchsorted(xp.take(key, order), runs, side="left")
            start = where.zeros((values.shape[0], 1), xp.int64)
            running = xp.cumulative_sum(xp.take(values, order, axis=1), axis=1, dtype=xp.int64)
            at = xp.take(xp.concat([start, running], axis=1), ends, axis=1)
            features.append(where.host(at[:, 1:] - at[:, :-1]).reshape(-1, len(nodes), width))
            n_rows = where.host(ends[1:] - ends[:-1]).reshape(len(nodes), width).sum(axis=1)
        sums = np.stack(features).transpose(2, 0, 3, 1)
        if frontier.features is not None:
            sums = np.take_along_axis(sums, frontier.features[:, :, None, None], axis=1)
        return np.ascontiguousarray(sums), n_rows

    def partition(self, nodes: np.ndarray, splits: Splits) -> np.ndarray:
        xp, where, n = self.where.xp, self.where, self.codes.shape[1]
        slot = self._slots(nodes)
        inside = slot >= 0
        slot = xp.where(inside, slot, xp.zeros_like(slot))
        rows = xp.arange(n, dtype=xp.int64, device=where.device)
        flat = xp.reshape(self.codes, (-1,))
        code = xp.take(flat, xp.take(where.put(splits.feature), slot) * n + rows)
        tests = _Tests(splits.bin, splits.missing_left, splits.subset, self.width, where)
        left = tests.go_left(slot, code)
        child = self.n_nodes + 2 * slot + xp.astype(~left, xp.int64)
        self.node = xp.where(inside, child, self.node)
        children = where.put(np.arange(2 * len(nodes) + 1) + self.n_nodes)
        ends = where.host(xp.searchsorted(xp.sort(self.node), children))
        self.n_nodes += 2 * len(nodes)
        return np.diff(ends)[::2]

    def nodes(self) -> Any:
        return self.node

    def pure(self, nodes: np.ndarray) -> np.ndarray:
        if self.target is None or not len(nodes):
            return np.zeros(len(nodes), dtype=bool)
        xp, where = self.where.xp, self.where
        slot = self._slots(nodes)
        by_target = xp.argsort(self.target)
        slot = xp.take(slot, by_target)
        by_slot = xp.argsort(slot, stable=True)
        target = xp.take(xp.take(self.target, by_target), by_slot)
        ends = xp.searchsorted(xp.take(slot, by_slot), where.put(np.arange(len(nodes) + 1)))
        lowest, highest = xp.take(target, ends[:-1]), xp.take(target, ends[1:] - 1)
        return where.host(lowest == highest)


class _Tests:
    """The tests of some nodes: code <= bin or, where bin is -1, a bit of the subset."""

    def __init__(
        self, last_bin: np.ndarray, missing_left: np.ndarray, subset: np.ndarray, width: int,
        where: Where,
    ) -> None:  # fmt: skip
        self.where, self.missing_code = where, width - 1
        self.bin, self.missing_left = where.put(last_bin), where.put(missing_left)
        by_subset = last_bin < 0
        self.number = where.put(np.where(by_subset, np.cumsum(by_subset) - 1, NOWHERE))
        self.table = unpacked(subset[by_subset])

    def go_left(self, at: Any, code: Any) -> Any:
        """Whether codes of the features of nodes `at` do."""
        xp = self.where.xp
        left = code <= xp.take(self.bin, at)
        if self.table.size:
            number, categories = xp.take(self.number, at), self.table.shape[1]
            tested = (number >= 0) & (code < categories)
            place = xp.where(tested, number * categories + code, xp.zeros_like(code))
            by_subset = xp.take(self.where.put(self.table.reshape(-1)), place)
            left = xp.where(tested, by_subset, left)
        missing = code == self.missing_code
        return xp.where(missing, xp.take(self.missing_left, at), left)


def moments(packed: Any, where: Where) -> Any:
    """(h of every output, s of every output) as int64 [rows, 2 K], of s 2^32 + h."""
    h = packed & 0xFFFFFFFF
    return where.xp.permute_dims(where.xp.concat([h, (packed - h) >> 32], axis=0), (1, 0))


def sums_by(index: Any, values: Any, n: int, where: Where) -> np.ndarray:
    """sums[i, s] of the int64 values[row, s] of the rows with that index, on the host."""
    xp = where.xp
    order = xp.argsort(index, stable=True)
    running = xp.cumulative_sum(xp.take(values, order, axis=0), axis=0, dtype=xp.int64)
    running = xp.concat([where.zeros((1, values.shape[1]), xp.int64), running], axis=0)
    ends = xp.searchsorted(xp.take(index, order), where.put(np.arange(n + 1)))
    at = where.host(xp.take(running, ends, axis=0))
    return at[1:] - at[:-1]


def leaves(codes: Codes, tree: CodeTree, where: Where) -> Any:
    """The leaf of every row, level by level."""
    xp, n, width = where.xp, codes.n_rows, codes.width
    node = where.zeros(n, xp.int64)
    if tree.feature[0] == LEAF:
        return node
    inner = tree.feature != LEAF
    bins = np.where(inner, tree.bin, 0)  # leaves have -1, as tests of categories do
    tests = _Tests(bins, tree.missing_left, tree.subset, width, where)
    itself = np.arange(len(inner))
    feature = where.put(np.where(inner, tree.feature, 0))
    left = where.put(np.where(inner, tree.left, itself))
    right = where.put(np.where(inner, tree.right, itself))
    is_inner, flat = where.put(inner), xp.reshape(codes.data[0], (-1,))
    rows = xp.arange(n, dtype=xp.int64, device=where.device)
    while bool(xp.any(xp.take(is_inner, node))):
        code = xp.take(flat, xp.take(feature, node) * n + rows)
        to_left = tests.go_left(node, code)
        node = xp.where(to_left, xp.take(left, node), xp.take(right, node))
    return node
