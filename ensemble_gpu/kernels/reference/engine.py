"""The reference engine: array-API calls only, on whatever device the arrays live.

Slow, portable, and the oracle that the compiled engines are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.kernels import exponential
from ensemble_gpu.kernels.edges import cut_positions, sample_positions
from ensemble_gpu.kernels.gradient_pass import GradientPass, LossPass
from ensemble_gpu.kernels.joined_codes import JoinedCodes
from ensemble_gpu.kernels.path_shares import PathShares
from ensemble_gpu.kernels.protocol import (
    Answers,
    Codes,
    Cut,
    Layout,
    code_width,
    no_counts,
)
from ensemble_gpu.kernels.queries import PairWeights
from ensemble_gpu.kernels.reference import answers, residuals, rowwise
from ensemble_gpu.kernels.reference.histogram import ReferenceHistograms, SortedRows
from ensemble_gpu.kernels.reference.ranking import ordered_weights
from ensemble_gpu.kernels.reference.trees.evaluate import apply_forest, evaluate_forest
from ensemble_gpu.kernels.reference.trees.grower import ReferenceGrower, leaves, moments, sums_by
from ensemble_gpu.kernels.reference.trees.shapley import shapley_values
from ensemble_gpu.kernels.residuals import Ruler, Slots
from ensemble_gpu.kernels.sparse import encode as encode_sparse
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.kernels.team import ALONE
from ensemble_gpu.kernels.tree_protocol import CodeTree, PackedForest, Sample, SplitRule

# Cells of the sample that are sorted at once: bounds the memory that gaps take on a device.
EDGE_CELLS = 1 << 19


def code_sums(
    engine: Any, codes: Codes, feature: int, first: int, last: int, weights: Any | None
) -> np.ndarray:
    """`Engine.code_sums` by the engine's sums over all rows."""
    xp, column = engine.where.xp, engine.column(codes, feature)
    inside = xp.astype((column >= first) & (column <= last), xp.int64)
    q = inside if weights is None else inside * weights
    sums: np.ndarray = engine.sums(codes, q[None, :])[0]
    return sums


class ReferenceEngine:
    """Any namespace, any device."""

    name = "reference"
    team = ALONE
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

    def encode(
        self,
        X: Any,
        edges: list[np.ndarray],
        rows: Any,
        layout: Layout | None,
        width: int | None = None,
    ) -> Codes:
        width, n, p = width or code_width(edges), rows.shape[0], len(edges)
        codes = self._codes(X, edges, rows, width)
        if layout is None:
            return Codes((codes, None), n, p, width, no_counts(p, width))
        return self._sorted(codes, layout, width)

    def _sorted(self, codes: Any, layout: Layout, width: int) -> Codes:
        (p, n), where = codes.shape, self.where
        sorted_rows = SortedRows(codes, layout, width, where)
        counts = sorted_rows.sums(where.zeros(n, where.xp.int64) + 1)
        return Codes((codes, sorted_rows), n, p, width, where.host(counts))

    def even_codes(self, layout: Layout, n_features: int) -> JoinedCodes:
        rows = self.where.xp.arange(layout.n_rows, device=self.where.device)
        return JoinedCodes(self, rows, layout)

    def take(
        self, codes: Codes, rows: Any, layout: Layout, counts: np.ndarray | None = None
    ) -> Codes:
        return self._sorted(self.where.xp.take(codes.data[0], rows, axis=1), layout, codes.width)

    def join(self, parts: Sequence[Codes], layout: Layout) -> Codes:
        if len(parts) == 1:
            return parts[0]
        codes = self.where.xp.concat([part.data[0] for part in parts], axis=0)
        return self._sorted(codes, layout, parts[0].width)

    def pack_answers(self, blocks: Iterable[Any], n_rows: int) -> Answers:
        return answers.pack_answers(blocks, n_rows, self.where)

    def answer_sums(self, given: Answers, q: Any) -> np.ndarray:
        return answers.answer_sums(given, q, self.where)

    def answer(self, given: Answers, member: int) -> Any:
        return answers.answer(given, member, self.where)

    def quantised(self, logs: Any, bits: int) -> tuple[Any, int]:
        return answers.quantised(logs, bits, self.where)

    def _codes(self, X: Any, edges: list[np.ndarray], rows: Any, width: int) -> Any:
        """int64 [feature, row]."""
        xp, where = self.where.xp, self.where
        if is_sparse(X):
            out = np.empty((len(edges), rows.shape[0], 1), dtype=np.int64)
            encode_sparse(X, edges, where.host(rows), width, out)
            return where.put(out[:, :, 0])
        columns = []
        for f, e in enumerate(edges):
            x = where.as_float64(xp.take(X[:, f], rows))
            absent = xp.isnan(x)
            code = xp.searchsorted(where.put(e), xp.where(absent, where.full(0.0), x), side="left")
            code = xp.where(absent, where.full(width - 1, xp.int64), xp.astype(code, xp.int64))
            columns.append(code)
        return xp.stack(columns)

    def histograms(
        self, codes: Codes, layout: Layout, log_weights: Any | None
    ) -> ReferenceHistograms:
        return ReferenceHistograms(codes, layout, log_weights, self.where)

    def column(self, codes: Codes, feature: int) -> Any:
        return codes.data[0][feature, :]

    def sums(self, codes: Codes, q: Any) -> np.ndarray:
        every, sorted_rows = codes.data
        if sorted_rows is None:  # codes for trees
            values = self.where.xp.permute_dims(q, (1, 0))
            sums = [self.sums_by(every[f, :], values, codes.width) for f in range(every.shape[0])]
            return np.stack(sums).transpose(2, 0, 1)
        planes = [self.where.host(sorted_rows.sums(q[k, :])) for k in range(q.shape[0])]
        return np.stack(planes).sum(axis=1)

    def pair_sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        h = packed & 0xFFFFFFFF
        return self.sums(codes, (packed - h) >> 32), self.sums(codes, h)

    def following_sums(self, codes: Codes) -> Callable[[Any], tuple[np.ndarray, np.ndarray]]:
        return partial(self.pair_sums, codes)

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
        counts = where.host(SortedRows(in_order, layout, width, where).sums(q))
        return counts.astype(np.int32) if weights is None else counts

    def code_sums(
        self, codes: Codes, feature: int, first: int, last: int, weights: Any | None
    ) -> np.ndarray:
        return code_sums(self, codes, feature, first, last, weights)

    def move(self, F: Any, column: Any, cut: Cut, values: np.ndarray, out: Any = None) -> Any:
        return rowwise.move(F, column, cut, values, self.where)

    def add_tables(self, F: Any, codes: Codes, used: np.ndarray, tables: np.ndarray) -> Any:
        return rowwise.add_tables(self, F, codes, used, tables)

    def derivatives(self, loss: Any, y: Any, F: Any) -> tuple[Any, Any]:
        return loss.derivatives(y, F)

    def gradient_pass(self, work: GradientPass) -> None:
        return None

    def loss_pass(self, work: LossPass) -> None:
        return None

    def ordered_weights(
        self, weights: PairWeights, codes: Codes, has_missing: np.ndarray
    ) -> np.ndarray:
        return ordered_weights(self, weights, codes, has_missing)

    def drawn(self, numbers: Any, bounds: Any | None, offset: int, limit: int) -> Any:
        return rowwise.drawn(numbers, bounds, offset, limit, self.where)

    def ranked(self, slots: Slots, r: Any, weights: Any | None, ranks: np.ndarray) -> np.ndarray:
        return residuals.ranked(slots, r, weights, ranks, self.where)

    def ruled_sums(self, slots: Slots, r: Any, weights: Any | None, ruler: Ruler) -> np.ndarray:
        return residuals.ruled_sums(slots, r, weights, ruler, self.where)

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
        where = self.where
        out = where.zeros((X.shape[0], len(tables.intercept)), where.xp.float64)
        for u in range(len(tables.features)):
            out = out + self._looked_up(X, tables, u)
        return out + where.put(tables.intercept)[None, :]

    def _looked_up(self, X: Any, tables: PackedTables, u: int) -> Any:
        """The values of one table [n, outputs]."""
        xp, where = self.where.xp, self.where
        size = 1 << int(tables.steps[u])
        at = slice(int(tables.first[u]), int(tables.first[u]) + size)
        x = where.as_float64(X[:, int(tables.features[u])])
        absent = xp.isnan(x)
        thresholds = where.put(tables.thresholds[at][: size - 1])
        place = xp.searchsorted(thresholds, xp.where(absent, where.full(0.0), x), side="left")
        value = xp.take(where.put(tables.values[at]), place, axis=0)
        return xp.where(absent[:, None], where.put(tables.missing[u])[None, :], value)

    def contributions(self, X: Any, tables: PackedTables) -> Any:
        where = self.where
        columns = [where.zeros((X.shape[0], len(tables.intercept)), where.xp.float64)] * X.shape[1]
        for u, f in enumerate(tables.features.tolist()):
            columns[f] = self._looked_up(X, tables, u)
        return where.xp.stack(columns, axis=1)

    def evaluate_forest(self, X: Any, forest: PackedForest) -> Any:
        return evaluate_forest(X, forest, self.where)

    def apply_forest(self, X: Any, forest: PackedForest) -> Any:
        return apply_forest(X, forest, self.where)

    def shapley_values(self, X: Any, forest: PackedForest, shares: PathShares) -> Any:
        return shapley_values(X, forest, shares, self.where)
