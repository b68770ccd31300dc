"""The CUDA engine: numba kernels over device arrays. See kernels/protocol.py for the contract.

What a round costs, in launches and copies between host and device:

AdaBoost  3 launches (update, score, choose), 2 small copies to the device (factors, scales; each
          is copied once more there) and one back (the record of the best split).
ranking   as rebuild; the gradients of pairs are array calls: of the exponential loss two sorts, an
          exponential and two running sums, segments to the host and back.
gram      none: its rounds are the host's. A table costs a sort of the rows, a gather of the codes,
          a build and a copy back; a round without a table 5 launches for the sums, a copy back.
rebuild   the engine's part: column (1 launch), move (1, and the leaf values to the device), exp
          (1), pack (1), sums (3: words, zeros, build; 5 for Fine; one copy back). Nothing is
          allocated but the results. With the arithmetic of the logistic loss (7) and the largest
          |g| and h (3 reductions, 3 numbers back) 17 launches, 2 small copies to the device, 4
          back; a line search adds a move, a gradient and 3 sums for every slope it looks at, a
          step for each leaf two sorts of the rows, a running sum and a number a leaf back.
tree      a level: split (small nodes 2 launches: split_rows, choose_feature; large ones 4: sums,
          subtract, split_sums, choose_feature; ranges, parts, features to the device, one record
          a node back), partition (3: mark, scatter, restore, and a running sum; a row a node to
          the device, one number a node back), of a regression compare (1; one number a node
          back). A tree begins with sum_by and ends, of a regression, with leaves and sum_by. The
          host scores categories and features of thousands of codes: then sums of large nodes, or
          the codes and values of small ones, are copied back instead of records.

GPU work is queued on CuPy's current stream. Methods make their GPU the current one; array calls
between them need `arrays.cupy.current`, as CuPy's functions ignore the argument `device`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.arrays.sparse import is_sparse
from ensemble_gpu.kernels import exponential, fixedpoint
from ensemble_gpu.kernels.cuda import (
    answers,
    binning,
    evaluate,
    histogram,
    ranking,
    residuals,
    rowwise,
)
from ensemble_gpu.kernels.cuda.device import Device, device_for, few_blocks
from ensemble_gpu.kernels.cuda.launch import LaunchPlan
from ensemble_gpu.kernels.cuda.limits import check_codes, check_rows
from ensemble_gpu.kernels.cuda.pairs import pair_counts
from ensemble_gpu.kernels.cuda.rounds import CudaHistograms
from ensemble_gpu.kernels.cuda.rows import WORDS, Rows, column, in_words
from ensemble_gpu.kernels.cuda.trees import predict
from ensemble_gpu.kernels.cuda.trees.grower import CudaGrower
from ensemble_gpu.kernels.cuda.trees.rows import sums_by
from ensemble_gpu.kernels.cuda.trees.shapley import shapley_values
from ensemble_gpu.kernels.edges import SAMPLE_ROWS
from ensemble_gpu.kernels.gradient_pass import GradientPass, LossPass
from ensemble_gpu.kernels.joined_codes import JoinedCodes
from ensemble_gpu.kernels.path_shares import PathShares
from ensemble_gpu.kernels.protocol import (
    LEFT,
    RIGHT,
    Answers,
    Codes,
    Cut,
    Layout,
    code_width,
    no_counts,
)
from ensemble_gpu.kernels.queries import PairWeights
from ensemble_gpu.kernels.reference import rowwise as arraywise
from ensemble_gpu.kernels.reference.answers import quantised
from ensemble_gpu.kernels.reference.engine import ReferenceEngine, code_sums
from ensemble_gpu.kernels.reference.trees.grower import moments
from ensemble_gpu.kernels.residuals import Ruler, Slots
from ensemble_gpu.kernels.tables import PackedTables
from ensemble_gpu.kernels.team import ALONE
from ensemble_gpu.kernels.tree_protocol import CodeTree, PackedForest, Sample, SplitRule


class CudaEngine:
    """Runs where the arrays are: a GPU, or NumPy arrays under the simulator."""

    name = "cuda"
    team = ALONE
    n_workers = 1  # a kernel uses the whole GPU

    def __init__(self, where: Where, plan: LaunchPlan | None = None) -> None:
        self.device: Device = device_for(where, plan)
        self.where = self.device.where
        self._summed: Rows | None = None
        self._powers: tuple[Any, Any] | None = None

    def single(self) -> CudaEngine:
        """Itself: there is one worker."""
        return self

    def view(self, array: Any) -> Any:
        """The array itself."""
        return array

    def adopt(self, array: Any) -> Any:
        """float64 where a library without 64-bit numbers gave narrower ones, which are exact."""
        xp = self.where.xp
        ours = self.device.adopt(array)
        if not xp.isdtype(ours.dtype, "real floating") or ours.dtype == xp.float64:
            return ours
        with self.device.active(f"a copy of {ours.shape[0]} numbers", 8 * ours.shape[0]):
            return xp.astype(ours, xp.float64)

    def gaps(self, X: Any, rows: Any, max_bins: int | None) -> list[np.ndarray]:
        """Sorting is the array library's: the reference engine's code, on this device."""
        device, n = self.device, rows.shape[0]
        # The sample in X's type, as float64, with NaN replaced, and sorted.
        needed = 32 * (n if max_bins is None else min(n, SAMPLE_ROWS)) * X.shape[1]
        with device.active(f"sorting a sample of X {tuple(X.shape)}", needed):
            reference = ReferenceEngine(device.where)
            return reference.gaps(device.adopt(X), device.adopt(rows), max_bins)

    def encode(
        self,
        X: Any,
        edges: list[np.ndarray],
        rows: Any,
        layout: Layout | None,
        width: int | None = None,
    ) -> Codes:
        width, device = width or code_width(edges), self.device
        lanes = histogram.lanes_of(width)
        n, p = rows.shape[0], len(edges)
        check_rows(n)
        check_codes(p, width)
        tiles = -(-p // lanes)
        with device.active(f"encoding {n} rows of {p} features", 8 * tiles * n):
            where = device.where
            if is_sparse(X):
                host = where.host(device.adopt(rows))
                codes = where.put(binning.sparse_words(X, edges, host, width, lanes))
            else:
                codes = where.zeros((tiles, n), where.xp.uint64)
                padded, steps = binning.padded_edges(edges)
                binning.launch_encode(
                    few_blocks(device), steps, width, lanes, device.handle(device.adopt(X)),
                    device.handle(device.adopt(rows)), device.handle(where.put(padded)),
                    device.handle(codes),
                )  # fmt: skip
            counts = no_counts(p, width)
            if layout is not None:
                counts = self._counts(codes, layout, p, width)
        return Codes(codes, n, p, width, counts)

    def even_codes(self, layout: Layout, n_features: int) -> JoinedCodes:
        xp, n = self.where.xp, layout.n_rows
        with self.device.active(f"positions of {n} rows", 8 * n):
            return JoinedCodes(self, xp.arange(n, dtype=xp.int64), layout)

    def take(
        self, codes: Codes, rows: Any, layout: Layout, counts: np.ndarray | None = None
    ) -> Codes:
        n, p, width = rows.shape[0], codes.n_features, codes.width
        with self.device.active(f"codes of {n} rows of {p} features", 8 * len(codes.data) * n):
            data = self.where.xp.take(codes.data, rows, axis=1)
            counts = self._counts(data, layout, p, width) if counts is None else counts
            return Codes(data, n, p, width, counts)

    def join(self, parts: Sequence[Codes], layout: Layout) -> Codes:
        if len(parts) == 1:
            return parts[0]
        n, p = parts[0].n_rows, sum(part.n_features for part in parts)
        with self.device.active(f"codes of {p} features", p * n):
            data = self.where.xp.concat([part.data for part in parts], axis=0)
        counts = np.concatenate([part.counts for part in parts], axis=1)
        return Codes(data, n, p, parts[0].width, counts)

    def pack_answers(self, blocks: Iterable[Any], n_rows: int) -> Answers:
        return answers.pack_answers(blocks, n_rows, self.device)

    def answer_sums(self, given: Answers, q: Any) -> np.ndarray:
        return answers.answer_sums(given, q, self.device)

    def answer(self, given: Answers, member: int) -> Any:
        return answers.answer(given, member, self.device)

    def quantised(self, logs: Any, bits: int) -> tuple[Any, int]:
        with self.device.active("weights of rows", 64 * logs.shape[0]):
            return quantised(logs, bits, self.where)

    def _counts(self, codes: Any, layout: Layout, p: int, width: int) -> np.ndarray:
        """Rows per (class, feature, code): the histogram of a plane of ones, a group a class."""
        each = np.arange(layout.n_classes)[None, :]
        rows = Rows(self.device, codes, Layout(layout.starts, each), width)
        rows.q[...] = 1
        return rows.fetch(p)

    def histograms(self, codes: Codes, layout: Layout, log_weights: Any | None) -> CudaHistograms:
        needed = (4 * layout.n_planes + 8) * codes.n_rows
        with self.device.active(f"weights of {codes.n_rows} rows", needed):
            return CudaHistograms(self.device, codes, layout, log_weights)

    def column(self, codes: Codes, feature: int) -> Any:
        return column(codes, feature, self.device)

    def sums(self, codes: Codes, q: Any) -> np.ndarray:
        """Exact modulo 2^64, as sums of words are."""
        with self._summing(codes, q):
            return self._words(codes, q).fetch_wide(codes.n_features)

    def pair_sums(self, codes: Codes, packed: Any) -> tuple[np.ndarray, np.ndarray]:
        """0 <= h < 2^31, so the words are h and g."""
        with self._summing(codes, packed):
            H, G = self._words(codes, packed).fetch_words(codes.n_features)
        return G, H

    def _summing(self, codes: Codes, q: Any) -> AbstractContextManager[None]:
        planes, n = q.shape
        return self.device.active(f"sums of {planes} x {n} integers", 8 * planes * n)

    def _words(self, codes: Codes, q: Any) -> Rows:
        """The lower words of q[plane, row], then the upper ones, a group each; buffers are kept."""
        planes, n = q.shape
        rows = self._summed
        if rows is None or rows.codes is not codes.data or rows.groups != WORDS * planes:
            layout = Layout(np.array([0, n]), np.arange(WORDS * planes)[:, None])
            self._summed = rows = Rows(self.device, codes.data, layout, codes.width)
        rows.words[...] = in_words(q, self.where)
        return rows

    def following_sums(self, codes: Codes) -> Callable[[Any], tuple[np.ndarray, np.ndarray]]:
        return partial(self.pair_sums, codes)

    def pair_counts(self, codes: Codes, feature: int, weights: Any | None) -> np.ndarray:
        return pair_counts(codes, feature, weights, self.device)

    def code_sums(
        self, codes: Codes, feature: int, first: int, last: int, weights: Any | None
    ) -> np.ndarray:
        return code_sums(self, codes, feature, first, last, weights)

    def derivatives(self, loss: Any, y: Any, F: Any) -> tuple[Any, Any]:
        return loss.derivatives(y, F)

    def gradient_pass(self, work: GradientPass) -> None:
        return None

    def loss_pass(self, work: LossPass) -> None:
        return None

    def ordered_weights(
        self, weights: PairWeights, codes: Codes, has_missing: np.ndarray
    ) -> np.ndarray:
        return ranking.ordered_weights(self, weights, codes, has_missing)

    def drawn(self, numbers: Any, bounds: Any | None, offset: int, limit: int) -> Any:
        with self.device.active("a draw of rows", 24 * numbers.shape[0]):
            return arraywise.drawn(numbers, bounds, offset, limit, self.where)

    def ranked(self, slots: Slots, r: Any, weights: Any | None, ranks: np.ndarray) -> np.ndarray:
        return residuals.ranked(slots, r, weights, ranks, self.device)

    def ruled_sums(self, slots: Slots, r: Any, weights: Any | None, ruler: Ruler) -> np.ndarray:
        return residuals.ruled_sums(slots, r, weights, ruler, self.device)

    def leaf_sums(self, q: Any, column: Any, cut: Cut) -> np.ndarray:
        with self.device.active("slopes of the loss", 24 * math.prod(q.shape)):
            return arraywise.leaf_sums(q, column, cut, self.where)

    def move(self, F: Any, column: Any, cut: Cut, values: np.ndarray, out: Any = None) -> Any:
        device, xp = self.device, self.where.xp
        sides = np.ascontiguousarray(values[:, [LEFT, RIGHT, cut.missing_leaf]])
        with device.active(f"outputs {tuple(F.shape)}", 8 * math.prod(F.shape)):
            out = xp.empty(F.shape, dtype=xp.float64, device=self.where.device)
            rowwise.launch_move(
                few_blocks(device), cut.bin, cut.missing_code,
                device.handle(xp.ascontiguousarray(F)), device.handle(xp.ascontiguousarray(column)),
                device.handle(self.where.put(sides)), device.handle(out),
            )  # fmt: skip
            return out

    def add_tables(self, F: Any, codes: Codes, used: np.ndarray, tables: np.ndarray) -> Any:
        with self.device.active(f"outputs {tuple(F.shape)}", 16 * math.prod(F.shape)):
            return arraywise.add_tables(self, F, codes, used, tables)

    def pack(self, g: Any, h: Any, unit_g: float, unit_h: float, out: Any = None) -> Any:
        device, xp = self.device, self.where.xp
        with device.active(f"packed gradients {tuple(g.shape)}", 8 * math.prod(g.shape)):
            out = xp.empty(g.shape, dtype=xp.int64, device=self.where.device)
            rowwise.launch_pack(
                few_blocks(device), unit_g, unit_h, device.handle(xp.ascontiguousarray(g)),
                device.handle(xp.ascontiguousarray(h)), device.handle(out),
            )  # fmt: skip
            return out

    def exp(self, x: Any) -> Any:
        device, where, xp = self.device, self.where, self.where.xp
        with device.active(f"exp of {tuple(x.shape)}", 8 * math.prod(x.shape)):
            if self._powers is None:
                tables = exponential.powers(), fixedpoint.tables()
                self._powers = tuple(device.handle(where.put(t)) for t in tables)
            x = xp.ascontiguousarray(x, dtype=xp.float64)
            out = xp.empty(x.shape, dtype=xp.float64, device=where.device)
            lines = (-1, max(x.shape))  # each no longer than the rows, whose number fits int32
            rowwise.launch_exponentiate(
                few_blocks(device), device.handle(xp.reshape(x, lines)), *self._powers,
                device.handle(xp.reshape(out, lines)),
            )  # fmt: skip
            return out

    def by_block(self, function: Callable[[slice], Any], n_rows: int) -> list[Any]:
        return [function(slice(0, n_rows))]

    def evaluate(self, X: Any, tables: PackedTables) -> Any:
        device = self.device
        n, outputs = X.shape[0], len(tables.intercept)
        check_rows(n)
        with device.active(f"predictions of {n} rows", 8 * n * outputs):
            where = device.where
            out = where.zeros((n, outputs), where.xp.float64)
            if len(tables.features):
                features = np.stack([tables.features, tables.first, tables.steps], axis=1)
                arrays = (features, tables.thresholds, tables.values, tables.missing)
                features_, thresholds_, values_, missing_ = (
                    device.handle(where.put(np.ascontiguousarray(a))) for a in arrays
                )
                evaluate.launch_evaluate(
                    few_blocks(device), device.handle(device.adopt(X)), features_, thresholds_,
                    values_, missing_, device.handle(out),
                )  # fmt: skip
            out += where.put(tables.intercept)[None, :]
            return device.hand_back(out)

    def contributions(self, X: Any, tables: PackedTables) -> Any:
        """Searches are the array library's: the reference engine's code, on this device."""
        device, cells = self.device, math.prod(X.shape) * len(tables.intercept)
        with device.active(f"contributions to {X.shape[0]} rows", 16 * cells):
            reference = ReferenceEngine(device.where)
            return device.hand_back(reference.contributions(device.adopt(X), tables))

    def grower(self, codes: Codes, sample: Sample, rule: SplitRule) -> CudaGrower:
        with self.device.active(f"a tree on {codes.n_rows} rows", 32 * codes.n_rows):
            return CudaGrower(codes, sample, rule, self.device)

    def moments(self, packed: Any) -> Any:
        with self.device.active("sums of gradients", 16 * math.prod(packed.shape)):
            return moments(packed, self.where)

    def leaves(self, codes: Codes, tree: CodeTree) -> Any:
        with self.device.active(f"leaves of {codes.n_rows} rows", 8 * codes.n_rows):
            return predict.leaves(codes, tree, self.device)

    def sums_by(self, index: Any, values: Any, n: int) -> np.ndarray:
        with self.device.active(f"{n} sums", 8 * n * values.shape[1]):
            return sums_by(index, values, n, self.device)

    def evaluate_forest(self, X: Any, forest: PackedForest) -> Any:
        return predict.evaluate_forest(X, forest, self.device)

    def apply_forest(self, X: Any, forest: PackedForest) -> Any:
        return predict.apply_forest(X, forest, self.device)

    def shapley_values(self, X: Any, forest: PackedForest, shares: PathShares) -> Any:
        return shapley_values(X, forest, shares, self.device)
