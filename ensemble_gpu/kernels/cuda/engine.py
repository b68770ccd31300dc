"""The CUDA engine: numba kernels over device arrays. See kernels/protocol.py for the contract.

What a round costs, in launches and copies between host and device:

AdaBoost  3 launches (update, score, choose), 2 small copies to the device (factors, scales) and
          one back (the record of the best split).
gram      none: its rounds are the host's. A table costs a sort of the rows, a gather of the codes,
          a build and a copy back; a round without a table 5 launches for the sums, a copy back.
rebuild   the engine's part: column (1 launch), move (1, and the leaf values to the device), exp
          (1), pack (1), sums (3: words, zeros, build; 5 for Fine; one copy back). Nothing is
          allocated but the results. With the arithmetic of the logistic loss (7) and the largest
          |g| and h (3 reductions, 3 numbers back) 17 launches, 2 small copies to the device, 4
          back; a line search adds a move, a gradient and 3 sums for every slope it looks at.
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
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.data.binning import SAMPLE_ROWS
from ensemble_gpu.kernels import exponential, fixedpoint
from ensemble_gpu.kernels import rowwise as arraywise
from ensemble_gpu.kernels.cuda import binning, evaluate, histogram, requantise, rowwise, score
from ensemble_gpu.kernels.cuda.device import Device, device_for
from ensemble_gpu.kernels.cuda.forest import launch_apply_forest, launch_evaluate_forest, packed
from ensemble_gpu.kernels.cuda.grower import CudaGrower, leaves, sums_by
from ensemble_gpu.kernels.cuda.launch import LaunchPlan
from ensemble_gpu.kernels.growing import CodeTree, PackedForest, Rule, Sample
from ensemble_gpu.kernels.protocol import (
    LEFT,
    N_LEAVES,
    RIGHT,
    Codes,
    Criterion,
    Cut,
    Layout,
    PackedTables,
    Split,
    code_width,
)
from ensemble_gpu.kernels.reference import ReferenceEngine
from ensemble_gpu.kernels.reference_growing import moments

# Row counters of the kernels are int32 and go up to a grid (below 2^20 threads) beyond the last.
MOST_ROWS = 2**31 - 2**20
# The kernels add int32: an int64 is two words.
WORDS, WORD_BITS = 2, 32
# Sums of pairs of codes that are on the device at once.
PAIR_BYTES = 2**28
# A factor that says: rows with this code keep their q.
KEEP = -1.0


class CudaEngine:
    """Runs where the arrays are: a GPU, or NumPy arrays under the simulator."""

    name = "cuda"

    def __init__(self, where: Where, plan: LaunchPlan | None = None) -> None:
        self.device: Device = device_for(where, plan)
        self.where = self.device.where
        self._summed: Rows | None = None
        self._powers: tuple[Any, Any] | None = None

    def adopt(self, array: Any) -> Any:
        """float64 where a library without 64-bit numbers gave narrower ones, which are exact."""
        xp = self.where.xp
        ours = self.device.adopt(array)
        if not xp.isdtype(ours.dtype, "real floating") or ours.dtype == xp.float64:
            return ours
        with self.device.active(f"a copy of {ours.shape[0]} numbers", 8 * ours.shape[0]):
            return xp.astype(ours, xp.float64)

    def gaps(self, X: Any, rows: Any, max_bins: int) -> list[np.ndarray]:
        """Sorting is the array library's: the reference engine's code, on this device."""
        device = self.device
        # The sample in X's type, as float64, with NaN replaced, and sorted.
        needed = 32 * min(rows.shape[0], SAMPLE_ROWS) * X.shape[1]
        with device.active(f"sorting a sample of X {tuple(X.shape)}", needed):
            reference = ReferenceEngine(device.where)
            return reference.gaps(device.adopt(X), device.adopt(rows), max_bins)

    def encode(self, X: Any, edges: list[np.ndarray], rows: Any, layout: Layout) -> Codes:
        width, device = code_width(edges), self.device
        lanes = histogram.lanes_of(width)
        n, p = layout.n_rows, len(edges)
        if n > MOST_ROWS:
            raise ValueError(f"The CUDA engine takes at most {MOST_ROWS} rows; got {n}.")
        tiles = -(-p // lanes)
        with device.active(f"encoding {n} rows of {p} features", 8 * tiles * n):
            where, plan = device.where, device.plan
            codes = where.zeros((tiles, n), where.xp.uint64)
            padded, steps = binning.padded_edges(edges)
            binning.launch_encode(
                steps, width, lanes, plan.blocks, plan.threads, device.stream(),
                device.handle(device.adopt(X)), device.handle(device.adopt(rows)),
                device.handle(where.put(padded)), device.handle(codes),
            )  # fmt: skip
            counts = self._counts(codes, layout, p, width)
        return Codes(codes, n, p, width, counts)

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
        """A word's bytes are its codes, the first lane first (GPUs and hosts are little-endian)."""
        lanes, xp = histogram.lanes_of(codes.width), self.where.xp
        with self.device.active(f"codes of {codes.n_rows} rows", 4 * codes.n_rows):
            tile = codes.data[feature // lanes, :].view(xp.uint8 if lanes == 8 else xp.uint16)
            return xp.astype(xp.reshape(tile, (-1, lanes))[:, feature % lanes], xp.int32)

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
        rows.words[...] = self._in_words(q)
        return rows

    def _in_words(self, q: Any) -> Any:
        """An int64 array as int32 [word, ...]: a view, the lower word first."""
        xp = self.where.xp
        words = xp.reshape(xp.ascontiguousarray(q).view(xp.int32), (*q.shape, WORDS))
        return xp.permute_dims(words, (q.ndim, *range(q.ndim)))

    def pair_counts(self, codes: Codes, feature: int, weights: Any | None) -> np.ndarray:
        """Rows in order of the feature's code; then every code is a group."""
        xp, width, n = self.where.xp, codes.width, codes.n_rows
        tiles, planes = codes.data.shape[0], 1 if weights is None else WORDS
        starts = [0, *np.cumsum(codes.counts.sum(axis=0)[feature]).tolist()]
        dtype = np.int32 if weights is None else np.int64
        counts = np.zeros((width, codes.n_features, width), dtype=dtype)
        a_code = 8 * planes * tiles * histogram.lanes_of(width) * histogram.stride_of(width)
        step = max(1, PAIR_BYTES // a_code)
        needed = (12 + 8 * tiles + 4 * planes) * n + a_code * min(step, width)
        with self.device.active(f"pairs of codes of {n} rows", needed):
            order = xp.argsort(self.column(codes, feature), stable=True)
            for first in range(0, width, step):
                ends = starts[first : first + step + 1]
                if ends[0] < ends[-1]:
                    here = order[ends[0] : ends[-1]]
                    counts[first : first + step] = self._pairs(codes, here, ends, weights)
        return counts

    def _pairs(self, codes: Codes, order: Any, ends: list[int], weights: Any | None) -> np.ndarray:
        """Counts [group, feature, code] of rows in order, group g those up to ends[g + 1]."""
        xp, groups = self.where.xp, len(ends) - 1
        planes = 1 if weights is None else WORDS
        group_of = np.arange(planes * groups).reshape(planes, groups)
        layout = Layout(np.array(ends) - ends[0], group_of)
        blocks = self.device.plan.blocks + groups  # so that a full code is shared by many
        in_order = xp.take(codes.data, order, axis=1)
        rows = Rows(self.device, in_order, layout, codes.width, blocks)
        if weights is None:
            rows.q[...] = 1
            return rows.fetch(codes.n_features)
        rows.q[...] = self._in_words(xp.take(weights, order))
        return rows.fetch_wide(codes.n_features)

    def derivatives(self, loss: Any, y: Any, F: Any) -> tuple[Any, Any]:
        return loss.derivatives(y, F)

    def leaf_sums(self, q: Any, column: Any, cut: Cut) -> np.ndarray:
        with self.device.active("slopes of the loss", 24 * math.prod(q.shape)):
            return arraywise.leaf_sums(q, column, cut, self.where)

    def move(self, F: Any, column: Any, cut: Cut, values: np.ndarray, out: Any = None) -> Any:
        device, xp, plan = self.device, self.where.xp, self.device.plan
        sides = np.ascontiguousarray(values[:, [LEFT, RIGHT, cut.missing_leaf]])
        with device.active(f"outputs {tuple(F.shape)}", 8 * math.prod(F.shape)):
            out = xp.empty(F.shape, dtype=xp.float64, device=self.where.device)
            rowwise.launch_move(
                cut.bin, cut.missing_code, plan.blocks, plan.threads, device.stream(),
                device.handle(xp.ascontiguousarray(F)),
                device.handle(xp.ascontiguousarray(column)),
                device.handle(self.where.put(sides)), device.handle(out),
            )  # fmt: skip
            return out

    def pack(self, g: Any, h: Any, unit_g: float, unit_h: float, out: Any = None) -> Any:
        device, xp, plan = self.device, self.where.xp, self.device.plan
        with device.active(f"packed gradients {tuple(g.shape)}", 8 * math.prod(g.shape)):
            out = xp.empty(g.shape, dtype=xp.int64, device=self.where.device)
            rowwise.launch_pack(
                unit_g, unit_h, plan.blocks, plan.threads, device.stream(),
                device.handle(xp.ascontiguousarray(g)), device.handle(xp.ascontiguousarray(h)),
                device.handle(out),
            )  # fmt: skip
            return out

    def exp(self, x: Any) -> Any:
        device, where, plan = self.device, self.where, self.device.plan
        xp = where.xp
        with device.active(f"exp of {tuple(x.shape)}", 8 * math.prod(x.shape)):
            if self._powers is None:
                tables = exponential.powers(), fixedpoint.tables()
                self._powers = tuple(device.handle(where.put(t)) for t in tables)
            x = xp.ascontiguousarray(x, dtype=xp.float64)
            out = xp.empty(x.shape, dtype=xp.float64, device=where.device)
            lines = (-1, max(x.shape))  # each no longer than the rows, whose number fits int32
            rowwise.launch_exponentiate(
                plan.blocks, plan.threads, device.stream(),
                device.handle(xp.reshape(x, lines)), *self._powers,
                device.handle(xp.reshape(out, lines)),
            )  # fmt: skip
            return out

    def by_block(self, function: Callable[[slice], Any], n_rows: int) -> list[Any]:
        return [function(slice(0, n_rows))]

    def evaluate(self, X: Any, tables: PackedTables) -> Any:
        device = self.device
        n, outputs = X.shape[0], len(tables.intercept)
        with device.active(f"predictions of {n} rows", 8 * n * outputs):
            where, plan = device.where, device.plan
            out = where.zeros((n, outputs), where.xp.float64)
            if len(tables.features):
                places = np.stack([tables.features, tables.first, tables.steps], axis=1)
                arrays = (places, tables.thresholds, tables.values, tables.missing)
                places_, thresholds_, values_, missing_ = (
                    device.handle(where.put(np.ascontiguousarray(a))) for a in arrays
                )
                evaluate.launch_evaluate(
                    plan.blocks, plan.threads, device.stream(), device.handle(device.adopt(X)),
                    places_, thresholds_, values_, missing_, device.handle(out),
                )  # fmt: skip
            out += where.put(tables.intercept)[None, :]
            return device.hand_back(out)

    def grower(self, codes: Codes, sample: Sample, rule: Rule) -> CudaGrower:
        with self.device.active(f"a tree on {codes.n_rows} rows", 32 * codes.n_rows):
            return CudaGrower(codes, sample, rule, self.device)

    def moments(self, packed: Any) -> Any:
        with self.device.active("sums of gradients", 16 * math.prod(packed.shape)):
            return moments(packed, self.where)

    def leaves(self, codes: Codes, tree: CodeTree) -> Any:
        with self.device.active(f"leaves of {codes.n_rows} rows", 8 * codes.n_rows):
            return leaves(codes, tree, self.device)

    def sums_by(self, index: Any, values: Any, n: int) -> np.ndarray:
        with self.device.active(f"{n} sums", 8 * n * values.shape[1]):
            return sums_by(index, values, n, self.device)

    def evaluate_forest(self, X: Any, forest: PackedForest) -> Any:
        device, where, plan = self.device, self.where, self.device.plan
        n, outputs = X.shape[0], len(forest.intercept)
        with device.active(f"predictions of {n} rows", 8 * n * outputs):
            out = where.zeros((n, outputs), where.xp.float64)
            if n:
                nodes_, thresholds_, subsets_, values_ = self._forest(forest)
                launch_evaluate_forest(
                    forest.divisor, plan.row_blocks(n), plan.threads, device.stream(),
                    device.handle(device.adopt(X)), self._roots(forest), nodes_, thresholds_,
                    subsets_, values_, self._handle(forest.intercept), device.handle(out),
                )  # fmt: skip
            return device.hand_back(out)

    def apply_forest(self, X: Any, forest: PackedForest) -> Any:
        device, where, plan = self.device, self.where, self.device.plan
        n, trees = X.shape[0], len(forest.roots)
        with device.active(f"leaves of {n} rows in {trees} trees", 8 * n * trees):
            out = where.zeros((n, trees), where.xp.int64)
            if n and trees:
                nodes_, thresholds_, subsets_, _ = self._forest(forest)
                launch_apply_forest(
                    plan.row_blocks(n), plan.threads, device.stream(),
                    device.handle(device.adopt(X)), self._roots(forest), nodes_, thresholds_,
                    subsets_, device.handle(out),
                )  # fmt: skip
            return device.hand_back(out)

    def _forest(self, forest: PackedForest) -> tuple[Any, Any, Any, Any]:
        """Nodes, thresholds, subsets, values on this device; made once, kept with the forest."""
        key = (self.name, str(self.where.device))
        if key not in forest.layouts:
            arrays = (*packed(forest), forest.values)
            forest.layouts[key] = tuple(self._handle(a) for a in arrays)
        return forest.layouts[key]

    def _roots(self, forest: PackedForest) -> Any:
        """Not kept: forests that share their nodes may differ in the trees that they add up."""
        return self._handle(forest.roots.astype(np.int32))

    def _handle(self, array: np.ndarray) -> Any:
        """A host array as a kernel argument."""
        return self.device.handle(self.where.put(np.ascontiguousarray(array)))


class Rows:
    """The rows' codes and weights on the device, their parts, and the sums, as kernel arguments."""

    def __init__(
        self, device: Device, codes: Any, layout: Layout, width: int, blocks: int | None = None
    ) -> None:
        where, xp, plan = device.where, device.where.xp, device.plan
        blocks = plan.blocks if blocks is None else blocks
        self.device, self.codes, self.width, self.groups = device, codes, width, layout.n_groups
        self.lanes, self.stride = histogram.lanes_of(width), histogram.stride_of(width)
        cells = codes.shape[0] * self.lanes * self.stride
        parts = histogram.cut(layout.starts, blocks, plan.part_rows)
        self.grid, self.block = min(blocks, len(parts)), plan.threads
        self.q = where.zeros((layout.n_planes, layout.n_rows), xp.int32)
        self.sums = where.zeros((self.groups, cells), xp.int64)
        self.codes_ = device.handle(codes)
        self.parts_ = device.handle(where.put(parts))
        self.group_of_ = device.handle(where.put(layout.group_of.astype(np.int32)))
        self.q_, self.sums_ = device.handle(self.q), device.handle(self.sums)

    @property
    def words(self) -> Any:
        """q as [word, plane, row]: a view."""
        return self.device.where.xp.reshape(self.q, (WORDS, -1, self.q.shape[1]))

    def build(self) -> None:
        self.sums[...] = 0
        histogram.launch_build(
            self.width, self.grid, self.block, self.device.stream(), self.codes_, self.parts_,
            self.group_of_, self.q_, self.sums_,
        )  # fmt: skip

    def fetch(self, p: int) -> np.ndarray:
        """Sums [group, feature, code] of q, built and brought to the host."""
        self.build()
        sums = self.device.where.host(self.sums)
        return sums.reshape(self.groups, -1, self.stride)[:, :p, : self.width].copy()

    def fetch_words(self, p: int) -> np.ndarray:
        """The same as [word, group of a word, feature, code]."""
        sums = self.fetch(p)
        return sums.reshape(WORDS, -1, *sums.shape[1:])

    def fetch_wide(self, p: int) -> np.ndarray:
        """Sums of int64 from their words.

        The lower word is taken with its sign, so the upper one counts one more where it is
        negative: q = low + 2^32 high modulo 2^64.
        """
        words = self.words
        high = words[1]
        high -= words[0] >> (WORD_BITS - 1)
        lower, upper = self.fetch_words(p)
        return lower + (upper << WORD_BITS)


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

    def requantise(self, log_tables: np.ndarray, used: np.ndarray) -> np.ndarray:
        device, rows = self.device, self.rows
        tables = requantise.used_tables(log_tables, used)
        with device.active("requantising", tables.nbytes):
            self.top[...] = requantise.LOWEST
            self.largest[...] = 0
            places = requantise.used_places(used, rows.lanes)
            requantise.launch_requantise(
                rows.lanes, len(used), rows.grid, rows.block, device.stream(), rows.codes_,
                rows.parts_, rows.group_of_, device.handle(device.where.put(places)),
                device.handle(device.where.put(tables)), self.start_log_, self.top_,
                self.powers_, rows.q_, self.largest_,
            )  # fmt: skip
            rows.build()
            return (device.where.host(self.top) >> fixedpoint.FRACTION_BITS) + 1

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        device, rows, groups = self.device, self.rows, self.rows.groups
        with device.active("scoring", 0):
            if not np.array_equal(self.n_thresholds, criterion.n_thresholds):
                self.n_thresholds = criterion.n_thresholds.astype(np.int32)
                device.overwrite(self.thresholds, self.n_thresholds)
            device.overwrite(self.weights, np.stack([scale, criterion.abstention]))
            score.launch_split(
                criterion.kind, criterion.learn_missing, rows.width, rows.stride,
                min(device.plan.feature_blocks, len(self.n_thresholds)),
                device.plan.feature_threads, device.stream(), rows.sums_, self.running_,
                self.thresholds_, self.weights_, self.lowest_, self.largest_,
                self.record_, self.record_score_,
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
                rows.width, feature, rows.grid, rows.block, device.stream(), rows.codes_,
                rows.parts_, rows.group_of_, self.factors_, rows.q_, rows.sums_, self.largest_,
            )  # fmt: skip
