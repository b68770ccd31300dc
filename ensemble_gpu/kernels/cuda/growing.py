"""Sums and splits of a tree's nodes on the GPU.

A node is a range of `order`, which lists rows; codes[row, tile] has the codes of a row side by side
(eight of 8 bits or four of 16 in a word), because the rows of a deep node lie far apart. What is
added up per (node, tried feature, code, column) are 64-bit integers, and 64-bit atomics are native
in global memory only. In shared memory a sum is two 32-bit words: the lower is added first, and the
one add that makes it wrap around carries into the upper, so the sum is exact modulo 2^64 in any
order of the adds. A small weight has an empty upper word and costs one atomic.

A large node is cut into parts of rows: blocks add up a few features of a part in shared memory and
flush to global memory; `split_sums` then scores one feature a block. A small node never leaves
shared memory: `split_rows` adds up and scores one feature of it. Where a feature's sums do not fit
shared memory (MOST_CELLS), rows are added to global memory directly, and the host scores.

Codes that occur are the candidates, and of equal scores (criteria.py) the first in order of
(feature, bin, missing left before right) wins, as in kernels/splitting.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import float64, int32, int64, uint32

from ensemble_gpu.kernels.cuda._numba import cuda
from ensemble_gpu.kernels.cuda.criteria import (
    WORD,
    any_missing,
    child_sum,
    occurs,
    remainder,
    score_of,
    store,
    value_at,
)
from ensemble_gpu.kernels.cuda.launch import LaunchPlan, launch

MOST_CELLS = 4096  # sums in shared memory: 32 KB
FEW_CELLS = 1024  # 8 KB: many blocks of NODE_THREADS share a multiprocessor
NODE_THREADS = 128
TEAM_BITS = 4  # 16 threads scan one column's codes
NOTHING = 2**31 - 1
# Of a feature's best split: key = 2 bin + (missing right), next code, has missing; then left sums.
KEY, NEXT, HAS_MISSING, FOUND = range(4)
# The record of a node's best split: the score's bits, the columns of splitting.py, left sums.
RECORD = 6

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def code_of(codes, row, feature, lane_bits):
    """The code of a feature: one of the 2^lane_bits lanes of a word."""
    lane = feature & ((1 << lane_bits) - 1)
    mask = (1 << (64 >> lane_bits)) - 1
    word = codes[row, feature >> lane_bits]
    return np.int32((word >> np.uint64(lane << (6 - lane_bits))) & np.uint64(mask))


@cuda.jit(device=True)
def _add(low, high, at, value):
    """sum[at] += value: the lower words, then the upper ones with what is carried."""
    part = value & WORD
    old = cuda.atomic.add(low, at, np.uint32(part))
    upper = value >> 32
    if np.int64(old) + part > WORD:
        upper += 1
    if upper != 0:
        cuda.atomic.add(high, at, np.int32(upper))


@cuda.jit(device=True)
def _add_row(label, values, row, at, n_stats, counted, low, high):
    """Add what a row carries to the cells of its code, which start at `at`.

    Statistics are classes where there are labels; else `label` is a single number.
    """
    if label.shape[0] > 1:
        _add(low, high, np.int32(at + label[row]), values[row, 0])
    else:
        s = np.int32(0)
        while s < n_stats:
            _add(low, high, np.int32(at + s), values[row, s])
            s = np.int32(s + 1)
    if counted:
        cuda.atomic.add(low, np.int32(at + n_stats), np.uint32(1))


@cuda.jit(device=True)
def _clear(low, high, used):
    j = np.int32(cuda.threadIdx.x)
    while j < used:
        low[j] = np.uint32(0)
        high[j] = np.int32(0)
        j = np.int32(j + cuda.blockDim.x)


@cuda.jit(device=True)
def _flush(low, high, used, sums, slot, at):
    """sums[slot, at + j] += cell j; empty cells cost no traffic."""
    j = np.int32(cuda.threadIdx.x)
    while j < used:
        value = value_at(low, high, j)
        if value != 0:
            cuda.atomic.add(sums, (slot, np.int64(at + j)), value)
        j = np.int32(j + cuda.blockDim.x)


@cuda.jit(device=True)
def _accumulate(low, high, scratch, top, n, columns, team_bits):
    """Running sums of every column over codes 0 ... n - 1, in place; top[0] = last that occurs.

    A team of 2^team_bits threads takes a column: each sums a segment of the codes, then adds what
    the lower members found.

    Barriers: (1) all segment sums are there before a member reads those below its own; (2) all
    have been read before the next columns' replace them, and after it every thread of the block
    sees the running sums.
    """
    tid, threads = np.int32(cuda.threadIdx.x), np.int32(cuda.blockDim.x)
    members = np.int32(1 << team_bits)
    team, member = np.int32(tid >> team_bits), np.int32(tid & (members - 1))
    size = np.int32((n + members - 1) >> team_bits)
    start = np.int32(member * size)
    stop = np.int32(min(start + size, n))
    first = np.int32(0)
    while first < columns:
        c = np.int32(first + team)
        total = np.int64(0)
        if c < columns:
            t = start
            while t < stop:
                total += value_at(low, high, np.int32(t * columns + c))
                t = np.int32(t + 1)
        scratch[tid] = total
        cuda.syncthreads()  # (1)
        if c < columns:
            total = np.int64(0)
            other = np.int32(tid - member)
            while other < tid:
                total += scratch[other]
                other = np.int32(other + 1)
            last = np.int32(-1)
            t = start
            while t < stop:
                value = value_at(low, high, np.int32(t * columns + c))
                if value != 0:
                    last = t
                total += value
                store(low, high, np.int32(t * columns + c), total)
                t = np.int32(t + 1)
            if last >= 0:
                cuda.atomic.max(top, 0, last)
        cuda.syncthreads()  # (2)
        first = np.int32(first + (threads >> team_bits))


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
def _drawn(sums, last, missing, draw):
    """(code, last code to try): the splitter draws one threshold between the codes that occur."""
    first = np.int32(0)
    while not occurs(sums, first):
        first = np.int32(first + 1)
    if first == last:
        return first, last
    t = np.int32(first + remainder(draw, last - first))
    while not occurs(sums, t):
        t = np.int32(t - 1)
    after = np.int32(t + 1)
    while not occurs(sums, after):
        after = np.int32(after + 1)
    return t, last if missing and after == last else t


@cuda.jit(device=True)
def _best(rule, sums, last, missing, sign, bounds, node, random, draw, scores, keys):
    """The block's best split after one of the codes 0 ... `last` that occur, into scores, keys.

    Missing values, where there are any, may be all that goes right: behind the last code.
    """
    best, key = -math.inf, np.int32(NOTHING)
    t, end, step = np.int32(cuda.threadIdx.x), np.int32(last), np.int32(cuda.blockDim.x)
    if random and last >= 0:
        step = np.int32(1)
        t, end = _drawn(sums, last, missing, draw)
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


@cuda.jit(cache=True)
def sum_parts(
    codes, order, label, values, parts, features, lane_bits, width, n_stats, counted, together, sums
):  # fmt: skip
    """sums[slot, (tried * width + code) * columns + column] of parts (slot, start, stop) of nodes.

    A block takes a part and `together` of the features that its node tries.

    Barriers: (1) nobody adds before every cell is zero; (2) nobody flushes before every add has
    arrived. None is needed between a flush and the next clearing: both deal the cells to the
    threads in the same way.
    """
    low = cuda.shared.array(MOST_CELLS, uint32)
    high = cuda.shared.array(MOST_CELLS, int32)
    tried, columns = np.int32(features.shape[1]), np.int32(n_stats + counted)
    cells = np.int32(width * columns)
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        slot, stop = parts[part, 0], parts[part, 2]
        own = np.int32(min(slot, features.shape[0] - 1))
        first = np.int32(cuda.blockIdx.y * together)
        while first < tried:
            end = np.int32(min(first + together, tried))
            used = np.int32((end - first) * cells)
            _clear(low, high, used)
            cuda.syncthreads()  # (1)
            i = np.int32(parts[part, 1] + cuda.threadIdx.x)
            while i < stop:
                row = order[i]
                j = first
                while j < end:
                    code = code_of(codes, row, features[own, j], lane_bits)
                    at = np.int32((j - first) * cells + code * columns)
                    _add_row(label, values, row, at, n_stats, counted, low, high)
                    j = np.int32(j + 1)
                i = np.int32(i + cuda.blockDim.x)
            cuda.syncthreads()  # (2)
            _flush(low, high, used, sums, slot, np.int64(first) * cells)
            first = np.int32(first + cuda.gridDim.y * together)
        part = np.int32(part + cuda.gridDim.x)


@cuda.jit(cache=True)
def sum_direct(
    codes, order, label, values, parts, features, lane_bits, width, n_stats, counted, sums
):  # fmt: skip
    """`sum_parts` without shared memory, for more codes or columns than fit there."""
    tried, columns = np.int32(features.shape[1]), np.int32(n_stats + counted)
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        slot = parts[part, 0]
        own = np.int32(min(slot, features.shape[0] - 1))
        j = np.int32(cuda.blockIdx.y)
        while j < tried:
            i = np.int32(parts[part, 1] + cuda.threadIdx.x)
            while i < parts[part, 2]:
                row = order[i]
                code = code_of(codes, row, features[own, j], lane_bits)
                at = (np.int64(j) * width + code) * columns
                if label.shape[0] > 1:
                    cuda.atomic.add(sums, (slot, at + label[row]), values[row, 0])
                else:
                    s = np.int32(0)
                    while s < n_stats:
                        cuda.atomic.add(sums, (slot, at + s), values[row, s])
                        s = np.int32(s + 1)
                if counted:
                    cuda.atomic.add(sums, (slot, at + n_stats), np.int64(1))
                i = np.int32(i + cuda.blockDim.x)
            j = np.int32(j + cuda.gridDim.y)
        part = np.int32(part + cuda.gridDim.x)


@cuda.jit(cache=True)
def subtract(pairs, parents, sums):
    """sums[larger] = parents[parent] - sums[smaller] for pairs (parent, smaller, larger)."""
    k = np.int32(cuda.blockIdx.x)
    while k < pairs.shape[0]:
        parent, smaller, larger = pairs[k, 0], pairs[k, 1], pairs[k, 2]
        j = np.int32(cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x)
        while j < sums.shape[1]:
            sums[larger, j] = parents[parent, j] - sums[smaller, j]
            j = np.int32(j + cuda.gridDim.y * cuda.blockDim.x)
        k = np.int32(k + cuda.gridDim.x)


def split_rows_with(most_cells: int) -> Any:
    """The kernel for features of so many sums at most."""

    @cuda.jit(cache=True)
    def split_rows(
        codes, order, label, values, ranges, features, lane_bits, width, kind, n_stats, min_rows,
        min_weight, random, signs, bounds, draws, team_bits, scores, found,
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
            (kind, n_stats, min_rows, min_weight),
            (low, high, columns, np.int32(n * columns)),
        )
        node = np.int32(cuda.blockIdx.x)
        while node < ranges.shape[0]:
            own = np.int32(min(node, features.shape[0] - 1))
            j = np.int32(cuda.blockIdx.y)
            while j < features.shape[1]:
                if cuda.threadIdx.x == 0:
                    top[0] = -1
                _clear(low, high, np.int32(width * columns))
                cuda.syncthreads()  # (1)
                i = np.int32(ranges[node, 0] + cuda.threadIdx.x)
                while i < ranges[node, 1]:
                    row = order[i]
                    code = code_of(codes, row, features[own, j], lane_bits)
                    at = np.int32(code * columns)
                    _add_row(label, values, row, at, n_stats, counted, low, high)
                    i = np.int32(i + cuda.blockDim.x)
                cuda.syncthreads()  # (2)
                _accumulate(low, high, scratch, top, n, columns, team_bits)
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

    @cuda.jit(cache=True)
    def split_sums(
        totals, slots, features, width, kind, n_stats, min_rows, min_weight, random, signs, bounds,
        draws, team_bits, scores, found,
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
            (kind, n_stats, min_rows, min_weight),
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
                _accumulate(low, high, scratch, top, n, columns, team_bits)
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


@cuda.jit(cache=True)
def choose_feature(scores, found, features, record, record_score):
    """The first of a node's tried features with the highest score; one thread a node.

    `record_score` is the record as floats: its first column is the score.
    """
    node = np.int32(cuda.grid(1))
    while node < scores.shape[0]:
        best, at = -math.inf, np.int32(-1)
        j = np.int32(0)
        while j < scores.shape[1]:
            if scores[node, j] > best:
                best, at = scores[node, j], j
            j = np.int32(j + 1)
        record_score[node, 0] = best
        if at < 0:
            c = np.int32(1)
            while c < record.shape[1]:
                record[node, c] = -1 if c < RECORD else 0
                c = np.int32(c + 1)
        else:
            key = found[node, at, KEY]
            record[node, 1] = features[min(node, features.shape[0] - 1), at]
            record[node, 2] = key >> 1
            record[node, 3] = found[node, at, NEXT]
            record[node, 4] = 1 - (key & 1)
            record[node, 5] = found[node, at, HAS_MISSING]
            c = np.int32(RECORD)
            while c < record.shape[1]:
                record[node, c] = found[node, at, FOUND + c - RECORD]
                c = np.int32(c + 1)
        node = np.int32(node + cuda.gridsize(1))


# --- launchers -------------------------------------------------------------------------------


def fits(width: int, columns: int) -> bool:
    """Whether a feature's sums fit the shared memory of a block."""
    return width * columns <= MOST_CELLS


def team_bits_of(block: int) -> np.int32:
    return np.int32(min(TEAM_BITS, block.bit_length() - 1))


def launch_sums(
    lane_bits: int, width: int, n_stats: int, counted: bool, tried: int, grid: int, block: int,
    stream: Any, codes: Any, order: Any, label: Any, values: Any, parts: Any, features: Any,
    sums: Any,
) -> None:  # fmt: skip
    """Add the rows of the parts to sums [slot, tried * code * column], which start at zero."""
    args = (codes, order, label, values, parts, features)
    sizes = (np.int32(lane_bits), np.int32(width), np.int32(n_stats), np.int32(counted))
    columns = n_stats + counted
    if fits(width, columns):
        together = max(1, min(tried, MOST_CELLS // (width * columns)))
        shape = (grid, -(-tried // together))
        launch(sum_parts, shape, block, stream, *args, *sizes, np.int32(together), sums)
    else:
        launch(sum_direct, (grid, tried), block, stream, *args, *sizes, sums)


def launch_subtract(plan: LaunchPlan, stream: Any, pairs: Any, parents: Any, sums: Any) -> None:
    shape = plan.pair_blocks(pairs.shape[0], -(-sums.shape[1] // plan.threads))
    launch(subtract, shape, plan.threads, stream, pairs, parents, sums)


def launch_split_rows(
    lane_bits: int, width: int, columns: int, tried: int, search: tuple[Any, ...],
    plan: LaunchPlan, stream: Any, codes: Any, order: Any, label: Any, values: Any, ranges: Any,
    features: Any, scores: Any, found: Any,
) -> None:  # fmt: skip
    """The best split of every (node, tried feature) of nodes with these ranges."""
    kernel = split_rows if width * columns <= FEW_CELLS else split_rows_large
    launch(
        kernel, plan.pair_blocks(ranges.shape[0], tried), plan.node_threads, stream, codes, order,
        label, values, ranges, features, np.int32(lane_bits), np.int32(width), *search,
        team_bits_of(plan.node_threads), scores, found,
    )  # fmt: skip


def launch_split_sums(
    width: int, columns: int, tried: int, search: tuple[Any, ...], plan: LaunchPlan, stream: Any,
    sums: Any, slots: Any, features: Any, scores: Any, found: Any,
) -> None:  # fmt: skip
    """The best split of every (node, tried feature) of nodes with sums in these slots."""
    kernel = split_sums if width * columns <= FEW_CELLS else split_sums_large
    launch(
        kernel, plan.pair_blocks(slots.shape[0], tried), plan.node_threads, stream, sums, slots,
        features, np.int32(width), *search, team_bits_of(plan.node_threads), scores, found,
    )  # fmt: skip


def launch_choose(
    n: int, plan: LaunchPlan, stream: Any, scores: Any, found: Any, features: Any, record: Any,
    record_score: Any,
) -> None:  # fmt: skip
    launch(
        choose_feature, plan.row_blocks(n), plan.threads, stream, scores, found, features, record,
        record_score,
    )  # fmt: skip
