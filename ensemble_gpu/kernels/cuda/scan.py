"""Running sums of many lines of numbers at once, by the threads of a block."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda

TEAM_BITS = 4  # 16 threads scan one line


def team_bits_of(block: int) -> np.int32:
    """Bits of a team's size in blocks of so many threads."""
    return np.int32(min(TEAM_BITS, block.bit_length() - 1))


def scan_with(load: Any, store: Any, finish: Any) -> Any:
    """A device function that stores the sum of entries 0 ... t of every line, for every t < n.

    Device functions say where the numbers are: `load(data, line, t)` gives an entry,
    `store(data, line, t, total)` takes the running sum, and `finish(data, last)` hears of the last
    entry in a thread's part that is not zero, -1 where all are.
    """

    @cuda.jit(device=True)
    def scan(data, scratch, lines, n, team_bits):
        """A team of 2^team_bits threads takes a line, so the block's teams scan many at once.

        Each member sums a segment of the line, then adds what the lower members found. `scratch`
        is shared memory, a number for each thread of the block.

        Barriers: (1) all segment sums are there before a member reads those below its own; (2) all
        have been read before the next lines' sums replace them, and after it every thread of the
        block sees the running sums.
        """
        tid, threads = np.int32(cuda.threadIdx.x), np.int32(cuda.blockDim.x)
        members = np.int32(1 << team_bits)
        team, member = np.int32(tid >> team_bits), np.int32(tid & (members - 1))
        size = np.int32((n + members - 1) >> team_bits)
        start = np.int32(member * size)
        stop = np.int32(min(start + size, n))
        first = np.int32(0)
        while first < lines:
            line = np.int32(first + team)
            total = np.int64(0)
            if line < lines:
                t = start
                while t < stop:
                    total += load(data, line, t)
                    t = np.int32(t + 1)
            scratch[tid] = total
            cuda.syncthreads()  # (1)
            if line < lines:
                total = np.int64(0)
                other = np.int32(tid - member)
                while other < tid:
                    total += scratch[other]
                    other = np.int32(other + 1)
                last = np.int32(-1)
                t = start
                while t < stop:
                    value = load(data, line, t)
                    if value != 0:
                        last = t
                    total += value
                    store(data, line, t, total)
                    t = np.int32(t + 1)
                finish(data, last)
            cuda.syncthreads()  # (2)
            first = np.int32(first + (threads >> team_bits))

    return scan
