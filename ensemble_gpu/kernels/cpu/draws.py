"""Which rows are drawn in a round: threads share the rows. kernels/protocol.py has the formula."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.host.hashing import STEP, mix
from ensemble_gpu.kernels.jit import inner, kernel


@inner
def _draw_rows(worker, start, stop, numbers, offset, limit, out):
    numbers, out = numbers[start:stop], out[start:stop]
    for i in range(stop - start):
        out[i] = mix(numbers[i] * STEP + offset) < limit


@kernel
def drawn(crew, numbers, offset, limit, out):
    """Whether each item is drawn."""
    share(crew, numbers.shape[0], _draw_rows, (numbers, offset, limit, out))


@inner
def _count_rows(worker, start, stop, numbers, bounds, offset, limit, out):
    for i in range(start, stop):
        n = np.int64(0)
        for j in range(bounds[i], bounds[i + 1]):
            n += mix(numbers[j] * STEP + offset) < limit
        out[i] = n


@kernel
def drawn_counts(crew, numbers, bounds, offset, limit, out):
    """How many of the items bounds[i] ... bounds[i + 1] - 1 of each row are drawn."""
    share(crew, out.shape[0], _count_rows, (numbers, bounds, offset, limit, out))
