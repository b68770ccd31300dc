"""The reference engine: array-API calls only, on whatever device the arrays live.

Slow, portable, and the oracle that the compiled engines are compared with. Histograms need no
scatter: the rows are sorted by (class, code) once per feature, and a histogram is then the
difference of a running sum of q at the ends of the runs. q are integers, so rebuilding gives what
the other engines get by adding differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels import exponential, fixedpoint
from ensemble_gpu.kernels.edges import cut_positions, sample_positions
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    CONFIDENCE,
    LEFT,
    MAJORITY,
    RIGHT,
    TIE,
    Codes,
    Criterion,
    Cut,
    Layout,
    PackedTables,
    Split,
    code_width,
    no_counts,
)
from ensemble_gpu.kernels.reference import rowwise
from ensemble_gpu.kernels.reference.trees.evaluate import apply_forest, evaluate_forest
from ensemble_gpu.kernels.reference.trees.grower import ReferenceGrower, leaves, moments, sums_by
from ensemble_gpu.kernels.tree_protocol import CodeTree, PackedForest, Sample, SplitRule

# Cells of the sample that are sorted at once: bounds the memory that gaps take on a device.
EDGE_CELLS = 1 << 19


class ReferenceEngine:
    """Any namespace, any device."""

    name = "reference"
    n_workers = 1  # array calls use the whole device

    def __init__(self, where: Where) -> None:
        self.where = where

    def single(self) -> ReferenceEngine:
        """Itself: there is one worker."""
        return self

    def view(self, array: Any) -> Any:
        """The array itself."""
        return array

    def adopt(self, array: Any) -> Any:
        return array

    def gaps(self, X: Any, rows: Any, max_bins: int | None) -> list[np.ndarray]:
        chosen = rows
        if max_bins is not None:
            chosen = self.where.xp.take(rows, self.where.put(sample_positions(rows.shape[0])))
        max_bins = max(2, rows.shape[0]) if max_bins is None else max_bins
        step = max(1, EDGE_CELLS // chosen.shape[0])
        gaps: list[np.ndarray] = []
        for start in range(0, X.shape[1], step):
            columns = X[:, start : min(start + step, X.shape[1])]
            gaps += self._gaps_of_columns(columns, chosen, max_bins)
        return gaps

    def _gaps_of_columns(self, columns: Any, chosen: Any, max_bins: int) -> list[np.ndarray]:
        xp, where = self.where.xp, self.where
        sample = where.as_float64(xp.take(columns, chosen, axis=0))
        absent = xp.isnan(sample)
        ordered = xp.sort(xp.where(absent, where.full(xp.inf), sample), axis=0)
        present = where.host(xp.sum(xp.astype(~absent, xp.int64), axis=0))
        return [self._column_gaps(ordered[: int(m), f], max_bins) for f, m in enumerate(present)]

    def _column_gaps(self, values: Any, max_bins: int) -> np.ndarray:
        xp, where = self.where.xp, self.where
        if values.shape[0] < 2:
            return np.zeros((2, 0))
        changed = xp.astype(values[1:] > values[:-1], xp.int64)
        rank = xp.concat([where.zeros(1, xp.int64), xp.cumulative_sum(changed, dtype=xp.int64)])
        cuts = cut_positions(rank, max_bins, xp, where.device)
        return np.stack([where.host(xp.take(values, at)) for at in (cuts - 1, cuts)])

    def encode(self, X: Any, edges: list[np.ndarray], rows: Any, layout: Layout | None) -> Codes:
        xp, where = self.where.xp, self.where
        width = code_width(edges)
        columns = []
        for f, e in enumerate(edges):
            x = where.as_float64(xp.take(X[:, f], rows))
            absent = xp.isnan(x)
            code = xp.searchsorted(where.put(e), xp.where(absent, where.full(0.0), x), side="left")
            code = xp.where(absent, where.full(width - 1, xp.int64), xp.astype(code, xp.int64))
            columns.append(code)
        codes, n, p = xp.stack(columns), rows.shape[0], len(edges)
        if layout is None:
            return Codes((codes, None), n, p, width, no_counts(p, width))
        sorted_rows = _SortedRows(codes, layout, width, self.where)
        counts = sorted_rows.sums(where.zeros(n, xp.int64) + 1)
        return Codes((codes, sorted_rows), n, p, width, where.host(counts))

    def histograms(
        self, codes: Codes, layout: Layout, log_weights: Any | None
    ) -> ReferenceHistograms:
        return ReferenceHistograms(codes, layout, log_weights, self.where)

    def column(self, codes: Codes, feature: int) -> Any:
        return codes.data[0][feature, :]

    def sums(self, codes: Codes, q: Any) -> np.ndarray:
        sorted_rows = codes.data[1]
        planes = [self.where.host(sorted_rows.sums(q[k, :])) for k in range(q.shape[0])]
        return np.stack(planes).sum(axis=1)

    def pair_sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        h = packed & 0xFFFFFFFF
        return self.sums(codes, (packed - h) >> 32), self.sums(codes, h)

    def pair_counts(self, codes: Codes, feature: int, weights: Any | None) -> np.ndarray:
        xp, where = self.where.xp, self.where
        all_codes, width = codes.data[0], codes.width
        order = xp.argsort(all_codes[feature, :], stable=True)
        in_order = xp.take(all_codes, order, axis=1)
        sizes = codes.counts.sum(axis=0)[feature]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        layout = Layout(starts, np.arange(width)[None, :])
        ones = where.zeros(codes.n_rows, xp.int64) + 1
        q = ones if weights is None else xp.take(weights, order)
        counts = where.host(_SortedRows(in_order, layout, width, where).sums(q))
        return counts.astype(np.int32) if weights is None else counts

    def move(self, F: Any, column: Any, cut: Cut, values: np.ndarray, out: Any = None) -> Any:
        return rowwise.move(F, column, cut, values, self.where)

    def derivatives(self, loss: Any, y: Any, F: Any) -> tuple[Any, Any]:
        return loss.derivatives(y, F)

    def pack(self, g: Any, h: Any, unit_g: float, unit_h: float, out: Any = None) -> Any:
        return rowwise.pack(g, h, unit_g, unit_h, self.where)

    def leaf_sums(self, q: Any, column: Any, cut: Cut) -> np.ndarray:
        return rowwise.leaf_sums(q, column, cut, self.where)

    def exp(self, x: Any) -> Any:
        return exponential.exp(x, self.where)

    def by_block(self, function: Callable[[slice], Any], n_rows: int) -> list[Any]:
        return [function(slice(0, n_rows))]

    def grower(self, codes: Codes, sample: Sample, rule: SplitRule) -> ReferenceGrower:
        return ReferenceGrower(codes, sample, rule, self.where)

    def moments(self, packed: Any) -> Any:
        return moments(packed, self.where)

    def leaves(self, codes: Codes, tree: CodeTree) -> Any:
        return leaves(codes, tree, self.where)

    def sums_by(self, index: Any, values: Any, n: int) -> np.ndarray:
        return sums_by(index, values, n, self.where)

    def evaluate(self, X: Any, tables: PackedTables) -> Any:
        xp, where = self.where.xp, self.where
        out = where.zeros((X.shape[0], len(tables.intercept)), xp.float64)
        for u, f in enumerate(tables.features):
            size = 1 << int(tables.steps[u])
            at = slice(int(tables.first[u]), int(tables.first[u]) + size)
            x = where.as_float64(X[:, int(f)])
            absent = xp.isnan(x)
            thresholds = where.put(tables.thresholds[at][: size - 1])
            place = xp.searchsorted(thresholds, xp.where(absent, where.full(0.0), x), side="left")
            value = xp.take(where.put(tables.values[at]), place, axis=0)
            out = out + xp.where(absent[:, None], where.put(tables.missing[u])[None, :], value)
        return out + where.put(tables.intercept)[None, :]

    def evaluate_forest(self, X: Any, forest: PackedForest) -> Any:
        return evaluate_forest(X, forest, self.where)

    def apply_forest(self, X: Any, forest: PackedForest) -> Any:
        return apply_forest(X, forest, self.where)


class _SortedRows:
    """For every feature the rows in order of (class, code), and where each run ends."""

    def __init__(self, codes: Any, layout: Layout, width: int, where: Where) -> None:
        xp = where.xp
        p, n = codes.shape
        classes = np.repeat(np.arange(layout.n_classes), np.diff(layout.starts))
        key = where.put(classes)[None, :] * width + codes
        order = xp.argsort(key, axis=1, stable=True)
        self.order = xp.reshape(order, (-1,))
        runs = where.put(np.arange(layout.n_classes * width))
        ends = [
            xp.searchsorted(xp.take(key[f, :], order[f, :]), runs, side="right") for f in range(p)
        ]
        offset = where.put(np.arange(p) * (n + 1))
        self.ends = xp.reshape(xp.stack(ends) + offset[:, None], (-1,))
        self.shape = (p, n, layout.n_classes, width)
        self.where = where

    def sums(self, q: Any) -> Any:
        """sums[class, feature, code] of q, int64."""
        xp = self.where.xp
        p, n, classes, width = self.shape
        sorted_q = xp.reshape(xp.take(q, self.order), (p, n))
        running = xp.cumulative_sum(sorted_q, axis=1, dtype=xp.int64)
        start = self.where.zeros((p, 1), xp.int64)
        running = xp.reshape(xp.concat([start, running], axis=1), (-1,))
        at_end = xp.reshape(xp.take(running, self.ends), (p, classes * width))
        per_run = at_end - xp.concat([start, at_end[:, :-1]], axis=1)
        return xp.permute_dims(xp.reshape(per_run, (p, classes, width)), (1, 0, 2))


class ReferenceHistograms:
    """q[plane] per row; sums [group, feature, code]."""

    def __init__(self, codes: Codes, layout: Layout, log_weights: Any | None, where: Where) -> None:
        self.codes, self.sorted_rows = codes.data
        self.layout, self.width, self.where = layout, codes.width, where
        self.log_weights = log_weights
        classes = np.repeat(np.arange(layout.n_classes), np.diff(layout.starts))
        self.group = [where.put(layout.group_of[k][classes]) for k in range(layout.n_planes)]
        self.q: list[Any] = []
        self.sums: Any = None
        self.largest = np.zeros(layout.n_groups, dtype=np.int64)

    def requantise(self, log_tables: np.ndarray, used: np.ndarray) -> np.ndarray:
        xp, where = self.where.xp, self.where
        powers = where.put(fixedpoint.tables(self.layout.quantum_bits))
        exponent = np.zeros(self.layout.n_groups, dtype=np.int64)
        self.q = []
        for group in self.group:
            logs = where.zeros(self.layout.n_rows, xp.int64)
            if self.log_weights is not None:
                logs = logs + self.log_weights
            for f in used:
                table = where.put(np.reshape(log_tables[:, f, :], (-1,)))
                logs = logs + xp.take(table, group * self.width + self.codes[int(f), :])
            for g in np.unique(where.host(xp.unique_values(group))):
                top = where.host(xp.max(logs[group == int(g)]))
                exponent[g] = (int(top) >> fixedpoint.FRACTION_BITS) + 1
            down = xp.take(where.put(exponent), group) - (logs >> fixedpoint.FRACTION_BITS)
            self.q.append(self._quantise(logs, down, powers))
        self.largest[:] = 0
        self._rebuild()
        return exponent

    def _quantise(self, logs: Any, down: Any, powers: Any) -> Any:
        xp, where = self.where.xp, self.where
        bits, mask = fixedpoint.DIGIT_BITS, fixedpoint.DIGIT_MASK
        high = xp.take(powers[0, :], (logs >> (2 * bits)) & mask)
        middle = xp.take(powers[1, :], (logs >> bits) & mask)
        low = xp.take(powers[2, :], logs & mask)
        kept = down < fixedpoint.N_POWERS
        power = xp.take(powers[3, :], xp.where(kept, down, where.full(0, xp.int64)))
        q = xp.round(high * middle * low * power)
        return xp.astype(xp.where(kept, q, where.full(0.0)), xp.int32)

    def _rebuild(self) -> None:
        """Sums per group from sums per class, and the largest q that each group has had."""
        xp, layout = self.where.xp, self.layout
        parts: list[Any] = [None] * layout.n_groups
        for k, q in enumerate(self.q):
            per_class = self.sorted_rows.sums(xp.astype(q, xp.int64))
            for c, g in enumerate(layout.group_of[k]):
                here = per_class[c, :, :]
                parts[g] = here if parts[g] is None else parts[g] + here
                rows = q[int(layout.starts[c]) : int(layout.starts[c + 1])]
                self.largest[g] = max(self.largest[g], int(self.where.host(xp.max(rows))))
        self.sums = xp.stack(parts)

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        xp, where = self.where.xp, self.where
        n = int(max(criterion.n_thresholds, default=0))
        if n == 0:
            return None
        left = xp.cumulative_sum(self.sums[:, :, : self.width - 1], axis=2, dtype=xp.int64)
        total = left[:, :, -1:]
        missing = self.sums[:, :, self.width - 1 :]
        left = left[:, :, :n]
        scales = where.put(scale)[:, None, None]

        def cost(left: Any, total: Any) -> Any:
            weights_left = scales * xp.astype(left, xp.float64)
            weights_right = scales * xp.astype(total - left, xp.float64)
            return _cost(xp, criterion.kind, weights_left, weights_right)

        if criterion.learn_missing:
            every = total + missing
            sides = [cost(left + missing, every), cost(left, every)]
        else:
            abstention = where.put(criterion.abstention)[:, None, None]
            apart = _running_total(abstention * xp.astype(missing, xp.float64))
            sides = [cost(left, total) + apart]
        costs = xp.stack(sides, axis=2)
        tried = where.put(np.arange(n))[None, :] < where.put(criterion.n_thresholds)[:, None]
        costs = xp.where(tried[:, :, None], costs, where.full(xp.inf))
        flat = xp.reshape(costs, (-1,))
        lowest = xp.min(flat)
        at = int(where.host(xp.argmax(xp.astype(flat <= lowest * TIE, xp.int64))))
        score = float(where.host(flat[at]))
        feature, rest = divmod(at, n * len(sides))
        last_bin, side = divmod(rest, len(sides))
        missing_leaf = side if criterion.learn_missing else ABSTAIN
        leaf_sums = _leaf_sums(where.host(self.sums[:, feature, :]), last_bin, missing_leaf)
        return Split(score, feature, last_bin, missing_leaf, leaf_sums, self.largest)

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        xp, where = self.where.xp, self.where
        column = self.codes[feature, :]
        touched = xp.take(where.put(leaf_of != kept), column)
        table = where.put(np.reshape(ratio[:, leaf_of], (-1,)))
        for k, (q, group) in enumerate(zip(self.q, self.group, strict=True)):
            factor = xp.take(table, group * self.width + column)
            new = xp.astype(xp.round(xp.astype(q, xp.float64) * factor), xp.int32)
            self.q[k] = xp.where(touched, new, q)
        self._rebuild()


def _running_total(parts: Any) -> Any:
    """Sum over the first axis, one after the other: the order that the other engines use."""
    total = parts[0, ...]
    for g in range(1, parts.shape[0]):
        total = total + parts[g, ...]
    return total


def _cost(xp: Any, kind: int, left: Any, right: Any) -> Any:
    """Score of every (feature, threshold) from leaf weights [group, feature, threshold]."""
    if kind == MAJORITY:
        left_cost = _running_total(left) - xp.max(left, axis=0)
        return left_cost + (_running_total(right) - xp.max(right, axis=0))
    pairs = [
        _pair_cost(xp, kind, left[g, ...], left[g + 1, ...])
        + _pair_cost(xp, kind, right[g, ...], right[g + 1, ...])
        for g in range(0, left.shape[0], 2)
    ]
    total = pairs[0]
    for pair in pairs[1:]:
        total = total + pair
    return total


def _pair_cost(xp: Any, kind: int, plus: Any, minus: Any) -> Any:
    if kind == CONFIDENCE:
        return xp.sqrt(plus * minus)
    whole = plus + minus
    filled = whole > 0.0
    return xp.where(
        filled, plus * minus / xp.where(filled, whole, xp.ones_like(whole)), xp.zeros_like(whole)
    )


def _leaf_sums(column: np.ndarray, last_bin: int, missing_leaf: int) -> np.ndarray:
    """Integer weight per (group, leaf) of one feature's sums [group, code]."""
    sums = np.zeros((column.shape[0], 3), dtype=np.int64)
    sums[:, LEFT] = column[:, : last_bin + 1].sum(axis=1)
    sums[:, RIGHT] = column[:, last_bin + 1 : -1].sum(axis=1)
    sums[:, missing_leaf] += column[:, -1]
    return sums
