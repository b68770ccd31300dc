"""Sums of a tree's nodes on the GPU: per (node, tried feature, code, column), from rows.

A node is a range of `order`, which lists rows. A large node is cut into parts of rows: blocks add
up a few features of a part in shared memory (words.py) and flush to global memory. Where a
feature's sums do not fit shared memory (MOST_CELLS), rows are added to global memory directly. Of
two siblings the larger one's sums are the parent's less the smaller one's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, uint32

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import LaunchPlan, Shape, launch
from ensemble_gpu.kernels.cuda.trees.codes import code_of
from ensemble_gpu.kernels.cuda.trees.words import MOST_CELLS, add_row, clear, value_at

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _flush(low, high, used, sums, slot, at):
    """sums[slot, at + j] += cell j; empty cells cost no traffic."""
    j = np.int32(cuda.threadIdx.x)
    while j < used:
        value = value_at(low, high, j)
        if value != 0:
            cuda.atomic.add(sums, (slot, np.int64(at + j)), value)
        j = np.int32(j + cuda.blockDim.x)


# --- kernels ---------------------------------------------------------------------------------


@kernel()
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
            clear(low, high, used)
            cuda.syncthreads()  # (1)
            i = np.int32(parts[part, 1] + cuda.threadIdx.x)
            while i < stop:
                row = order[i]
                j = first
                while j < end:
                    code = code_of(codes, row, features[own, j], lane_bits)
                    at = np.int32((j - first) * cells + code * columns)
                    add_row(label, values, row, at, n_stats, counted, low, high)
                    j = np.int32(j + 1)
                i = np.int32(i + cuda.blockDim.x)
            cuda.syncthreads()  # (2)
            _flush(low, high, used, sums, slot, np.int64(first) * cells)
            first = np.int32(first + cuda.gridDim.y * together)
        part = np.int32(part + cuda.gridDim.x)


@kernel()
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


@kernel()
def subtract(pairs, parents, sums):
    """sums[larger] = parents[parent] - sums[smaller] for pairs (parent, smaller, larger).

    Sums of a node may be more than an int32 counts (features x codes x columns), so a block counts
    its turns, each of as many sums as it has threads. With a 64-bit step the compiler would divide
    to know the number of turns.
    """
    k = np.int32(cuda.blockIdx.x)
    while k < pairs.shape[0]:
        parent, smaller, larger = pairs[k, 0], pairs[k, 1], pairs[k, 2]
        turn = np.int32(cuda.blockIdx.y)
        j = np.int64(turn) * cuda.blockDim.x + cuda.threadIdx.x
        while j < sums.shape[1]:
            sums[larger, j] = parents[parent, j] - sums[smaller, j]
            turn = np.int32(turn + cuda.gridDim.y)
            j = np.int64(turn) * cuda.blockDim.x + cuda.threadIdx.x
        k = np.int32(k + cuda.gridDim.x)


# --- launchers -------------------------------------------------------------------------------


def fits(width: int, columns: int) -> bool:
    """Whether a feature's sums fit the shared memory of a block."""
    return width * columns <= MOST_CELLS


def node_parts(start: np.ndarray, stop: np.ndarray, blocks: int, part_rows: int) -> np.ndarray:
    """Ranges of rows in parts (slot, start, stop) of equal size, but for the last of each."""
    size = max(part_rows, -(-int((stop - start).sum()) // blocks))
    parts_of = -(-(stop - start) // size)
    slot = np.repeat(np.arange(len(start)), parts_of)
    turn = np.arange(len(slot)) - np.repeat(np.cumsum(parts_of) - parts_of, parts_of)
    first = start[slot] + turn * size
    return np.stack([slot, first, np.minimum(first + size, stop[slot])], axis=1)


def launch_sums(
    plan: LaunchPlan, stream: Any, lane_bits: int, width: int, n_stats: int, counted: bool,
    tried: int, rows: tuple[Any, Any, Any, Any], parts: Any, features: Any, sums: Any,
) -> None:  # fmt: skip
    """Add the rows of the parts to sums [slot, tried * code * column], which start at zero.

    `rows` are their codes, order, label, values.
    """
    args = (*rows, parts, features)
    sizes = (np.int32(lane_bits), np.int32(width), np.int32(n_stats), np.int32(counted))
    columns, blocks = n_stats + counted, min(plan.blocks, parts.shape[0])
    if fits(width, columns):
        together = max(1, min(tried, MOST_CELLS // (width * columns)))
        shape = Shape((blocks, -(-tried // together)), plan.threads, stream)
        launch(sum_parts, *shape, *args, *sizes, np.int32(together), sums)
    else:
        shape = Shape((blocks, tried), plan.threads, stream)
        launch(sum_direct, *shape, *args, *sizes, sums)


def launch_subtract(plan: LaunchPlan, stream: Any, pairs: Any, parents: Any, sums: Any) -> None:
    grid = plan.pair_blocks(pairs.shape[0], -(-sums.shape[1] // plan.threads))
    launch(subtract, *Shape(grid, plan.threads, stream), pairs, parents, sums)
