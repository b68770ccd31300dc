"""The best split of every (node, tried feature) on the GPU: one feature of a node a block.

`split_sums` scores large nodes from their sums (sums.py). A small node never leaves shared memory:
`split_rows` adds up its rows there (words.py) and scores them.

Codes that occur are the candidates, and of equal scores (criteria.py) the first in order of
(feature, bin, missing left before right) wins, as in kernels/host/search.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int32, int64, uint32

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import LaunchPlan, Shape, launch
from ensemble_gpu.kernels.cuda.scan import scan_with, team_bits_of
from ensemble_gpu.kernels.cuda.trees.best import FOUND, HAS_MISSING, KEY, NEXT
from ensemble_gpu.kernels.cuda.trees.candidates import any_missing, drawn, occurs
from ensemble_gpu.kernels.cuda.trees.codes import code_of
from ensemble_gpu.kernels.cuda.trees.criteria import child_sum, score_of
from ensemble_gpu.kernels.cuda.trees.words import MOST_CELLS, add_row, clear, store, value_at

FEW_CELLS = 1024  # 8 KB: many blocks of NODE_THREADS share a multiprocessor
NODE_THREADS = 128
# Seven blocks of NODE_THREADS on a multiprocessor, and nothing spills. Unasked, the compilers take
# 66 on 7.5 to 8.6, but 94 on 9.0, and on 12.0 the linker takes 100.
NODE_REGISTERS = 72
NOTHING = 2**31 - 1

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _load(data, c, t):
    low, high, columns, _ = data
    return value_at(low, high, np.int32(t * columns + c))


@cuda.jit(device=True)
def _store(data, c, t, total):
    low, high, columns, _ = data
    store(low, high, np.int32(t * columns + c), total)


@cuda.jit(device=True)
def _finish(data, last):
    if last >= 0:
        cuda.atomic.max(data[3], 0, last)


# Running sums of every column over the codes, in place; top[0] = the last code that occurs.
_accumulate = scan_with(_load, _store, _finish)


@cuda.jit(device=True)
def _block_best(scores, keys, score, key):
    """Highest score of the block, and the lowest key that has it, in scores[0] and keys[0].

    Barriers: (1) all scores are there before one is read; (2) a level of the tree is complete
    before the next reads it.
    """
    tid = np.int32(cuda.threadIdx.x)
    scores[tid] = score
    keys[tid] = key
    cuda.syncthreads()  # (1)
    half = np.int32(cuda.blockDim.x >> 1)
    while half > 0:
        if tid < half:
            other = scores[tid + half]
            if other > scores[tid] or (other == scores[tid] and keys[tid + half] < keys[tid]):
                scores[tid] = other
                keys[tid] = keys[tid + half]
        cuda.syncthreads()  # (2)
        half = np.int32(half >> 1)


@cuda.jit(device=True)
def _best(rule, sums, last, missing, sign, bounds, node, random, draw, scores, keys):
    """The block's best split after one of the codes 0 ... `last` that occur, into scores, keys.

    Missing values, where there are any, may be all that goes right: behind the last code.
    """
    best, key = -math.inf, np.int32(NOTHING)
    t, end, step = np.int32(cuda.threadIdx.x), np.int32(last), np.int32(cuda.blockDim.x)
    if random and last >= 0:
        step = np.int32(1)
        t, end = drawn(sums, last, missing, draw)
        if cuda.threadIdx.x > 0:
            end = np.int32(-1)
    while t <= end:
        if occurs(sums, t):
            at, side = np.int32(t * sums[2]), np.int64(missing and t < last)
            stop = np.int64(0 if missing or t < last else 1)
            while side >= stop:
                score = score_of(rule, sums, at, side, sign, bounds, node)
                if score > best:
                    best, key = score, np.int32(2 * t + 1 - side)
                side -= 1
        t = np.int32(t + step)
    _block_best(scores, keys, best, key)


@cuda.jit(device=True)
def _write(sums, last, n, missing, key, found, node, j):
    """Write down the split of the lowest key: thread 0 the next code, all of them left sums."""
    if key == NOTHING:
        return
    t, columns = np.int32(key >> 1), sums[2]
    if cuda.threadIdx.x == 0:
        above = np.int32(t + 1)
        while above <= last and not occurs(sums, above):
            above = np.int32(above + 1)
        found[node, j, KEY] = key
        found[node, j, NEXT] = above if above <= last else n
        found[node, j, HAS_MISSING] = missing
    side = np.int64(1 - (key & 1))
    c = np.int32(cuda.threadIdx.x)
    while c < columns:
        found[node, j, FOUND + c] = child_sum(sums, c, np.int32(t * columns), side, False)
        c = np.int32(c + cuda.blockDim.x)


# --- kernels ---------------------------------------------------------------------------------


def split_rows_with(most_cells: int) -> Any:
    """The kernel for features of so many sums at most."""

    @kernel(NODE_REGISTERS)
    def split_rows(
        codes, order, label, values, ranges, features, lane_bits, width, kind, n_stats, min_rows,
        min_weight, l2, random, signs, bounds, draws, team_bits, scores, found,
    ):  # fmt: skip
        """The best split on each tried feature of small nodes (start, stop), from their rows.

        Barriers: (1) nobody adds before every cell is zero; (2) nobody scans before every add has
        arrived; (3) the split is written down before the next feature's sums replace its own.
        """
        low = cuda.shared.array(most_cells, uint32)
        high = cuda.shared.array(most_cells, int32)
        scratch = cuda.shared.array(NODE_THREADS, int64)
        values_ = cuda.shared.array(NODE_THREADS, float64)
        keys = cuda.shared.array(NODE_THREADS, int32)
        top = cuda.shared.array(1, int32)
        counted = np.int32(min_rows > 1)
        columns, n = np.int32(n_stats + counted), np.int32(width - 1)
        rule, sums = (
            (kind, n_stats, min_rows, min_weight, l2),
            (low, high, columns, np.int32(n * columns)),
        )
        node = np.int32(cuda.blockIdx.x)
        while node < ranges.shape[0]:
            own = np.int32(min(node, features.shape[0] - 1))
            j = np.int32(cuda.blockIdx.y)
            while j < features.shape[1]:
                if cuda.threadIdx.x == 0:
                    top[0] = -1
                clear(low, high, np.int32(width * columns))
                cuda.syncthreads()  # (1)
                i = np.int32(ranges[node, 0] + cuda.threadIdx.x)
                while i < ranges[node, 1]:
                    row = order[i]
                    code = code_of(codes, row, features[own, j], lane_bits)
                    at = np.int32(code * columns)
                    add_row(label, values, row, at, n_stats, counted, low, high)
                    i = np.int32(i + cuda.blockDim.x)
                cuda.syncthreads()  # (2)
                _accumulate((low, high, columns, top), scratch, columns, n, team_bits)
                last, missing = top[0], any_missing(sums)
                _best(
                    rule, sums, last, missing, signs[features[own, j]], bounds, node, random,
                    draws[node, j] if random else np.uint64(0), values_, keys,
                )  # fmt: skip
                if cuda.threadIdx.x == 0:
                    scores[node, j] = values_[0]
                _write(sums, last, n, missing, keys[0], found, node, j)
                cuda.syncthreads()  # (3)
                j = np.int32(j + cuda.gridDim.y)
            node = np.int32(node + cuda.gridDim.x)

    return split_rows


def split_sums_with(most_cells: int) -> Any:
    """The kernel for features of so many sums at most."""

    @kernel(NODE_REGISTERS)
    def split_sums(
        totals, slots, features, width, kind, n_stats, min_rows, min_weight, l2, random, signs,
        bounds, draws, team_bits, scores, found,
    ):  # fmt: skip
        """The best split on each tried feature from the sums in these slots.

        Barriers: (1) nobody scans before every sum has been loaded; (2) the split is written down
        before the next feature's sums replace its own.
        """
        low = cuda.shared.array(most_cells, uint32)
        high = cuda.shared.array(most_cells, int32)
        scratch = cuda.shared.array(NODE_THREADS, int64)
        values_ = cuda.shared.array(NODE_THREADS, float64)
        keys = cuda.shared.array(NODE_THREADS, int32)
        top = cuda.shared.array(1, int32)
        columns, n = np.int32(n_stats + (min_rows > 1)), np.int32(width - 1)
        cells = np.int32(width * columns)
        rule, sums = (
            (kind, n_stats, min_rows, min_weight, l2),
            (low, high, columns, np.int32(n * columns)),
        )
        node = np.int32(cuda.blockIdx.x)
        while node < slots.shape[0]:
            own = np.int32(min(node, features.shape[0] - 1))
            j = np.int32(cuda.blockIdx.y)
            while j < features.shape[1]:
                if cuda.threadIdx.x == 0:
                    top[0] = -1
                k = np.int32(cuda.threadIdx.x)
                while k < cells:
                    store(low, high, k, totals[slots[node], np.int64(j) * cells + k])
                    k = np.int32(k + cuda.blockDim.x)
                cuda.syncthreads()  # (1)
                _accumulate((low, high, columns, top), scratch, columns, n, team_bits)
                last, missing = top[0], any_missing(sums)
                _best(
                    rule, sums, last, missing, signs[features[own, j]], bounds, node, random,
                    draws[node, j] if random else np.uint64(0), values_, keys,
                )  # fmt: skip
                if cuda.threadIdx.x == 0:
                    scores[node, j] = values_[0]
                _write(sums, last, n, missing, keys[0], found, node, j)
                cuda.syncthreads()  # (2)
                j = np.int32(j + cuda.gridDim.y)
            node = np.int32(node + cuda.gridDim.x)

    return split_sums


split_rows, split_rows_large = (split_rows_with(n) for n in (FEW_CELLS, MOST_CELLS))
split_sums, split_sums_large = (split_sums_with(n) for n in (FEW_CELLS, MOST_CELLS))


# --- launchers -------------------------------------------------------------------------------


def launch_split_rows(
    plan: LaunchPlan, stream: Any, lane_bits: int, width: int, columns: int,
    rows: tuple[Any, Any, Any, Any], ranges: Any, features: Any, search: tuple[Any, ...],
    best: tuple[Any, Any],
) -> None:  # fmt: skip
    """The best split of every (node, tried feature) of nodes with these ranges.

    `rows` are codes, order, label, values; `search` is search.py's; `best` are scores, found.
    """
    kernel = split_rows if width * columns <= FEW_CELLS else split_rows_large
    grid = plan.pair_blocks(ranges.shape[0], features.shape[1])
    launch(
        kernel, *Shape(grid, plan.node_threads, stream), *rows, ranges, features,
        np.int32(lane_bits), np.int32(width), *search, team_bits_of(plan.node_threads), *best,
    )  # fmt: skip


def launch_split_sums(
    plan: LaunchPlan, stream: Any, width: int, columns: int, sums: Any, slots: Any, features: Any,
    search: tuple[Any, ...], best: tuple[Any, Any],
) -> None:  # fmt: skip
    """The best split of every (node, tried feature) of nodes with sums in these slots."""
    kernel = split_sums if width * columns <= FEW_CELLS else split_sums_large
    grid = plan.pair_blocks(slots.shape[0], features.shape[1])
    launch(
        kernel, *Shape(grid, plan.node_threads, stream), sums, slots, features, np.int32(width),
        *search, team_bits_of(plan.node_threads), *best,
    )  # fmt: skip
