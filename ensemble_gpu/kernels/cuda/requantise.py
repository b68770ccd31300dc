"""Weights from their exact logarithms on the GPU (kernels/fixedpoint.py has the formulas).

    L_i = L0_i + sum over used features of T_f[group, code_if]
    E = floor(max L / 2^30) + 1 of a group,    q_i = rint(2^(L_i - E + QUANTUM_BITS))

L is computed twice, once for the maximum and once for q, instead of being kept: eight bytes a row
less, and this pass runs once in some hundred rounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.fixedpoint import DIGIT_BITS, DIGIT_MASK, FRACTION_BITS, N_POWERS

MOST_THREADS = 512
LOWEST = np.iinfo(np.int64).min

# --- device functions ------------------------------------------------------------------------


@cuda.jit(device=True)
def _log_weight(codes, i, used, n_used, mask, tables, group, start_log):
    """L of row i. `start_log` has one entry a row, or a single zero."""
    total = start_log[min(i, np.int32(start_log.shape[0] - 1))]
    u = np.int32(0)
    while u < n_used:
        code = np.uint32(codes[used[u, 0], i] >> np.uint64(used[u, 1])) & mask
        total += tables[group, u, code]
        u = np.int32(u + 1)
    return total


@cuda.jit(device=True)
def _block_max(scratch, value):
    """The block's maximum, for thread 0.

    Barriers: (1) all values are there before one is read; (2) a level of the tree is complete
    before the next reads it. None is needed at the end: slot 0 is read and written by thread 0
    only, and the other slots have been read before the last (2).
    """
    tid = np.int32(cuda.threadIdx.x)
    scratch[tid] = value
    cuda.syncthreads()  # (1)
    half = np.int32(cuda.blockDim.x >> 1)
    while half > 0:
        if tid < half:
            scratch[tid] = max(scratch[tid], scratch[tid + half])
        cuda.syncthreads()  # (2)
        half = np.int32(half >> 1)
    return scratch[0]


@cuda.jit(device=True)
def _quantised(logs, exponent, powers):
    """rint(2^(L - E + QUANTUM_BITS)): three digits of the fraction, one power of two; no sums."""
    down = exponent - (logs >> FRACTION_BITS)
    if down >= N_POWERS:
        return np.int32(0)
    mantissa = (
        powers[0, (logs >> (2 * DIGIT_BITS)) & DIGIT_MASK]
        * powers[1, (logs >> DIGIT_BITS) & DIGIT_MASK]
        * powers[2, logs & DIGIT_MASK]
    )
    return np.int32(round(mantissa * powers[3, down]))


# --- kernels ---------------------------------------------------------------------------------


@kernel()
def heaviest(codes, parts, group_of, used, n_used, mask, tables, start_log, top):
    """top[group] = max(top[group], L) over all rows; barriers inside `_block_max`."""
    scratch = cuda.shared.array(MOST_THREADS, int64)
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        plane = np.int32(0)
        while plane < group_of.shape[0]:
            group = group_of[plane, parts[part, 0]]
            highest = np.int64(LOWEST)
            i = np.int32(parts[part, 1] + cuda.threadIdx.x)
            while i < parts[part, 2]:
                logs = _log_weight(codes, i, used, n_used, mask, tables, group, start_log)
                highest = max(highest, logs)
                i = np.int32(i + cuda.blockDim.x)
            highest = _block_max(scratch, highest)
            if cuda.threadIdx.x == 0:
                cuda.atomic.max(top, group, highest)
            plane = np.int32(plane + 1)
        part = np.int32(part + cuda.gridDim.x)


@kernel()
def quantise(
    codes, parts, group_of, used, n_used, mask, tables, start_log, top, powers, q, largest
):
    """q of every row and plane; largest[group] = the largest of them."""
    scratch = cuda.shared.array(MOST_THREADS, int64)
    part = np.int32(cuda.blockIdx.x)
    while part < parts.shape[0]:
        plane = np.int32(0)
        while plane < group_of.shape[0]:
            group = group_of[plane, parts[part, 0]]
            exponent = (top[group] >> FRACTION_BITS) + 1
            highest = np.int64(0)
            i = np.int32(parts[part, 1] + cuda.threadIdx.x)
            while i < parts[part, 2]:
                logs = _log_weight(codes, i, used, n_used, mask, tables, group, start_log)
                new = _quantised(logs, exponent, powers)
                q[plane, i] = new
                highest = max(highest, np.int64(new))
                i = np.int32(i + cuda.blockDim.x)
            highest = _block_max(scratch, highest)
            if cuda.threadIdx.x == 0:
                cuda.atomic.max(largest, group, np.int32(highest))
            plane = np.int32(plane + 1)
        part = np.int32(part + cuda.gridDim.x)


# --- launchers -------------------------------------------------------------------------------


def used_lanes(used: np.ndarray, lanes: int) -> np.ndarray:
    """(tile, shift) of each used feature; at least one line, as no array may be empty."""
    bits = 64 // lanes
    found = np.stack([used // lanes, used % lanes * bits], axis=1).astype(np.int32)
    return found if len(found) else np.zeros((1, 2), dtype=np.int32)


def used_tables(log_tables: np.ndarray, used: np.ndarray) -> np.ndarray:
    """The log tables [group, used feature, code]; at least one feature."""
    return np.ascontiguousarray(log_tables[:, used if len(used) else slice(0, 1)])


def launch_requantise(
    shape: Shape, lanes: int, n_used: int, rows: tuple[Any, Any, Any], used: Any, tables: Any,
    start_log: Any, top: Any, powers: Any, q: Any, largest: Any,
) -> None:  # fmt: skip
    """Set top (starting from LOWEST), then q and largest (starting from zero)."""
    mask = np.uint32((1 << (64 // lanes)) - 1)
    args = (*rows, used, np.int32(n_used), mask, tables, start_log, top)
    launch(heaviest, *shape, *args)
    launch(quantise, *shape, *args, powers, q, largest)
