"""Weights and histograms on the GPU: the full pass, and the update after a stump.

A tile is one 64-bit word of codes a row: eight codes of 8 bits, or four of 16 where a feature has
more than 256 codes. codes[tile, row] puts the words of neighbouring rows side by side, so a warp
reads 256 contiguous bytes and every byte of them is used.

A block takes a part of the rows of one class, hence of one group a plane. Its histogram of four
tiles, 32 features x 256 codes, is int32 in shared memory, where 32-bit atomics are native (64-bit
ones are compare-and-swap loops). No sum can be lost, whatever the input: a cell holds its sum
modulo 2^32, and the one add that makes it wrap around sees the signed overflow in the old value
that the atomic returns, and adds +-2^32 to the int64 sum in global memory. So S = cell + 2^32 wraps
at any moment, in any order of the adds. Wraps are about |S| / 2^32 a cell and block: with weights
fresh from quantisation ten in a full pass and less than one in an update, next to the one atomic a
cell that the flush costs anyway. Adding two 16-bit halves into two arrays would need no branch, but
twice the atomics and twice the shared memory, hence half the tiles a pass.

Eight atomics are issued before the first result is looked at, four words are loaded before the
first is used: latency is hidden inside a thread as well as by other warps.

With more than 256 codes a histogram no longer fits: those adds go to global memory directly, where
64-bit atomics are native.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int32, uint64

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import Shape, launch

STRIDE = 256  # cells of a feature in shared memory and in narrow sums
TILE_LANES = 8
WIDE_LANES = 4
PASS_TILES = 4  # tiles whose histogram is in shared memory at once: 32 KB
TILE_CELLS = TILE_LANES * STRIDE
PASS_CELLS = PASS_TILES * TILE_CELLS

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _add_word(word, d, cells, base, sums, group, at):
    """cells[base + lane, code] += d for the eight codes of a word.

    An int32 sum overflowed where the new value's sign differs from both operands' signs; then
    2^32 with the sign of d belongs to the int64 sum.
    """
    old = cuda.local.array(TILE_LANES, int32)
    for lane in range(TILE_LANES):
        code = np.uint32(word >> np.uint64(8 * lane)) & np.uint32(255)
        old[lane] = cuda.atomic.add(cells, np.uint32(base + lane * STRIDE + code), d)
    wrapped = np.int32(0)
    for lane in range(TILE_LANES):
        new = np.int32(np.int64(old[lane]) + np.int64(d))
        wrapped |= (old[lane] ^ new) & (d ^ new)
    if wrapped < 0:
        high = np.int64(4294967296) if d > 0 else np.int64(-4294967296)
        for lane in range(TILE_LANES):
            new = np.int32(np.int64(old[lane]) + np.int64(d))
            if (old[lane] ^ new) & (d ^ new) < 0:
                code = np.uint32(word >> np.uint64(8 * lane)) & np.uint32(255)
                cell = np.uint32(at + base + lane * STRIDE + code)
                cuda.atomic.add(sums, (group, cell), high)


@cuda.jit(device=True)
def _add_row(codes, first, i, d, cells, sums, group):
    """Add d to the cells of row i, tiles first ... first + 3 (a last pass may have fewer)."""
    last = np.uint32(codes.shape[0] - 1)
    words = cuda.local.array(PASS_TILES, uint64)
    for t in range(PASS_TILES):
        words[t] = codes[min(np.uint32(first + t), last), i]
    for t in range(PASS_TILES):
        if np.uint32(first + t) <= last:
            _add_word(words[t], d, cells, t * TILE_CELLS, sums, group, first * TILE_CELLS)


@cuda.jit(device=True)
def _add_row_wide(codes, i, d, sums, group, stride):
    """Add d to the int64 sums of row i directly: four codes of 16 bits a word."""
    tile = np.int32(0)
    while tile < codes.shape[0]:
        word = codes[tile, i]
        for lane in range(WIDE_LANES):
            code = np.int32((word >> np.uint64(16 * lane)) & np.uint64(65535))
            feature = np.int64(tile * WIDE_LANES + lane)
            cuda.atomic.add(sums, (group, feature * stride + code), np.int64(d))
        tile = np.int32(tile + 1)


@cuda.jit(device=True)
def _clear(cells, used):
    """Zero the first `used` cells of the block's histogram."""
    j = np.int32(cuda.threadIdx.x)
    while j < used:
        cells[j] = 0
        j = np.int32(j + cuda.blockDim.x)


@cuda.jit(device=True)
def _flush(cells, used, sums, group, at):
    """sums[group, at + j] += cells[j]; empty cells cost no traffic."""
    j = np.int32(cuda.threadIdx.x)
    while j < used:
        value = cells[j]
        if value != 0:
            cuda.atomic.add(sums, (group, np.uint32(at + j)), np.int64(value))
        j = np.int32(j + cuda.blockDim.x)


@cuda.jit(device=True)
def _code(codes, tile, shift, mask, i):
    """The code of one feature of row i: lane `shift` / bits of its tile."""
    return np.uint32(codes[tile, i] >> shift) & mask


@cuda.jit(device=True)
def _rescaled(q, factor):
    """rint(q * factor), half to even: the one double-precision product of an update."""
    return np.int32(round(np.float64(q) * factor))


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def build(codes, parts, group_of, q, sums):
    """sums[group, feature * 256 + code] += q of every row, for every plane.

    Barriers: (1) nobody adds before every cell is zero; (2) nobody flushes before every add has
    arrived. None is needed between a flush and the next clearing: both deal the cells to the
    threads in the same way, so a thread zeroes only what it has flushed itself.
    """
    cells = cuda.shared.array(PASS_CELLS, int32)
    tiles = np.int32(codes.shape[0])
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        stop = parts[part, 2]
        plane = np.int32(0)
        while plane < q.shape[0]:
            group = group_of[plane, parts[part, 0]]
            first = np.int32(0)
            while first < tiles:
                used = min(PASS_TILES, tiles - first) * TILE_CELLS
                _clear(cells, used)
                cuda.syncthreads()  # (1)
                i = np.int32(parts[part, 1] + cuda.threadIdx.x)
                while i < stop:
                    _add_row(codes, first, np.uint32(i), q[plane, i], cells, sums, group)
                    i = np.int32(i + cuda.blockDim.x)
                cuda.syncthreads()  # (2)
                _flush(cells, used, sums, group, first * TILE_CELLS)
                first = np.int32(first + PASS_TILES)
            plane = np.int32(plane + 1)
        part = np.int32(part + cuda.gridDim.x)


@kernel()
def update(codes, parts, group_of, tile, shift, factors, q, sums, largest):
    """q = rint(q * factor) where the row's code has a factor >= 0; sums follow the differences.

    Select, rescale and add in one go: a row belongs to one thread of one block, which computes its
    difference in each pass over four tiles and stores the new q in the last one, so no pass reads
    what another has written. factors[group, code] < 0 marks the rows that keep their q.

    Barriers (1), (2) as in `build`. largest[group] = max(largest, new q): cell 0, which thread 0
    has flushed, serves for the block's maximum: (3) it is zero before the first maximum, (4) all
    have been taken before thread 0 hands it on. Thread 0 is also the one that clears cell 0 next.
    """
    cells = cuda.shared.array(PASS_CELLS, int32)
    tiles = np.int32(codes.shape[0])
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        stop = parts[part, 2]
        plane = np.int32(0)
        while plane < q.shape[0]:
            group = group_of[plane, parts[part, 0]]
            top = np.int32(0)
            first = np.int32(0)
            while first < tiles:
                used = min(PASS_TILES, tiles - first) * TILE_CELLS
                final = first + PASS_TILES >= tiles
                _clear(cells, used)
                cuda.syncthreads()  # (1)
                i = np.int32(parts[part, 1] + cuda.threadIdx.x)
                while i < stop:
                    factor = factors[group, _code(codes, tile, shift, np.uint32(255), i)]
                    if factor >= 0.0:
                        old = q[plane, i]
                        new = _rescaled(old, factor)
                        if final:
                            q[plane, i] = new
                            top = max(top, new)
                        if new != old:
                            d = np.int32(new - old)
                            _add_row(codes, first, np.uint32(i), d, cells, sums, group)
                    i = np.int32(i + cuda.blockDim.x)
                cuda.syncthreads()  # (2)
                _flush(cells, used, sums, group, first * TILE_CELLS)
                first = np.int32(first + PASS_TILES)
            if cuda.threadIdx.x == 0:
                cells[0] = 0
            cuda.syncthreads()  # (3)
            cuda.atomic.max(cells, 0, top)
            cuda.syncthreads()  # (4)
            if cuda.threadIdx.x == 0:
                cuda.atomic.max(largest, group, cells[0])
            plane = np.int32(plane + 1)
        part = np.int32(part + cuda.gridDim.x)


@kernel()
def build_wide(codes, parts, group_of, q, sums, stride):
    """`build` for codes of 16 bits; no shared memory, no barrier."""
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        plane = np.int32(0)
        while plane < q.shape[0]:
            group = group_of[plane, parts[part, 0]]
            i = np.int32(parts[part, 1] + cuda.threadIdx.x)
            while i < parts[part, 2]:
                _add_row_wide(codes, i, q[plane, i], sums, group, stride)
                i = np.int32(i + cuda.blockDim.x)
            plane = np.int32(plane + 1)
        part = np.int32(part + cuda.gridDim.x)


@kernel()
def update_wide(codes, parts, group_of, tile, shift, factors, q, sums, largest, stride):
    """`update` for codes of 16 bits; each touched row offers its q for the maximum itself."""
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        plane = np.int32(0)
        while plane < q.shape[0]:
            group = group_of[plane, parts[part, 0]]
            top = np.int32(0)
            i = np.int32(parts[part, 1] + cuda.threadIdx.x)
            while i < parts[part, 2]:
                factor = factors[group, _code(codes, tile, shift, np.uint32(65535), i)]
                if factor >= 0.0:
                    old = q[plane, i]
                    new = _rescaled(old, factor)
                    q[plane, i] = new
                    top = max(top, new)
                    _add_row_wide(codes, i, np.int32(new - old), sums, group, stride)
                i = np.int32(i + cuda.blockDim.x)
            cuda.atomic.max(largest, group, top)
            plane = np.int32(plane + 1)
        part = np.int32(part + cuda.gridDim.x)


# --- launchers -------------------------------------------------------------------------------


def lanes_of(width: int) -> int:
    """Codes in a 64-bit word: eight of 8 bits where the width allows it, else four of 16."""
    return TILE_LANES if width <= STRIDE else WIDE_LANES


def stride_of(width: int) -> int:
    """Cells of a feature in the sums."""
    return STRIDE if width <= STRIDE else width


def class_parts(starts: np.ndarray, blocks: int, part_rows: int) -> np.ndarray:
    """The classes' row ranges in parts (class, start, stop); none is empty.

    At most `blocks` parts (unless there are more classes), so that no block gets a second one
    while others are done: each class may add one part that is not full.
    """
    size = max(part_rows, -(-int(starts[-1]) // max(1, blocks - len(starts) + 1)))
    parts = [
        (c, start, min(start + size, int(starts[c + 1])))
        for c in range(len(starts) - 1)
        for start in range(int(starts[c]), int(starts[c + 1]), size)
    ]
    return np.array(parts, dtype=np.int32)


def launch_build(shape: Shape, width: int, rows: tuple[Any, Any, Any], q: Any, sums: Any) -> None:
    """Add q of `rows` (codes, parts, group_of) to the sums, which the caller has zeroed."""
    if lanes_of(width) == TILE_LANES:
        launch(build, *shape, *rows, q, sums)
    else:
        launch(build_wide, *shape, *rows, q, sums, np.int64(stride_of(width)))


def launch_update(
    shape: Shape, width: int, feature: int, rows: tuple[Any, Any, Any], factors: Any, q: Any,
    sums: Any, largest: Any,
) -> None:  # fmt: skip
    """Rescale the rows whose code of the feature has a factor; sums and largest follow."""
    lanes = lanes_of(width)
    tile, shift = np.int32(feature // lanes), np.uint64(feature % lanes * (64 // lanes))
    args = (*rows, tile, shift, factors, q, sums, largest)
    if lanes == TILE_LANES:
        launch(update, *shape, *args)
    else:
        launch(update_wide, *shape, *args, np.int64(stride_of(width)))
