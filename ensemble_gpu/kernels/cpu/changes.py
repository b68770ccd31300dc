"""Sums of packed pairs that follow the rows: only those whose pair has changed are added again.

A loss of straight lines has a gradient that changes where F crosses a kink, in some rows in a
hundred a round. Sums are integers, so what they were and the differences add up exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.histogram import add_listed
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import Codes

BLOCK_ROWS = 4096
# Rows at random places take about as long as four times as many side by side.
MOST_CHANGES = 0.25
CELLS_PER_THREAD = 40_000


@inner
def _note_changes(worker, first, last, packed, before, index, noted, counts):
    """Rows whose g has changed, and by how much, those of a block at its beginning.

    counts[block] is their number; -1 where an h has changed as well.
    """
    mask = np.int64(0xFFFFFFFF)
    for block in range(first, last):
        start = block * BLOCK_ROWS
        at, others = start, np.int64(0)
        for i in range(start, min(start + BLOCK_ROWS, packed.shape[0])):
            difference = packed[i] - before[i]
            before[i] = packed[i]
            others |= difference & mask
            index[at], noted[at] = i, difference >> 32
            at += difference != 0
        counts[block] = at - start if others == 0 else -1


@inner
def _add_changes(worker, tile, last_tile, words, n_features, index, noted, counts, sums):
    for t in range(tile, last_tile):
        for block in range(counts.shape[0]):
            start = block * BLOCK_ROWS
            stop = start + counts[block]
            add_listed(words[t], n_features - 8 * t, index, start, stop, noted, sums[t])


@kernel
def _add_differences(crew, words, n_features, packed, before, space, most, sums):
    """G += the differences; False, and nothing is added, where too much has changed."""
    index, noted, counts = space
    changes = packed, before, index, noted, counts
    share(crew, counts.shape[0], _note_changes, changes)
    changed = np.int64(0)
    for block in range(counts.shape[0]):
        if counts[block] < 0:
            return False
        changed += counts[block]
    if changed > most:
        return False
    share(crew, words.shape[0], _add_changes, (words, n_features, index, noted, counts, sums))
    return True


class FollowingSums:
    """`Engine.following_sums` of one matrix."""

    def __init__(self, engine: Any, codes: Codes, run: Run) -> None:
        n = codes.n_rows
        self.engine, self.codes = engine, codes
        self.run = run.limited_to(n * codes.n_features, CELLS_PER_THREAD)
        self.words = codes.data.view(np.uint64)
        self.before: np.ndarray | None = None
        self.space = (
            np.empty(n, dtype=np.int32),
            np.empty(n, dtype=np.int64),
            np.empty(-(-n // BLOCK_ROWS), dtype=np.int64),
        )

    def __call__(self, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.before is None:
            self.before = packed.copy()
            self._add_up(packed)
        elif not all(self._follow(packed, self.before, k) for k in range(packed.shape[0])):
            self.before[...] = packed
            self._add_up(packed)
        p = self.codes.n_features
        return self.G.reshape(packed.shape[0], -1, self.codes.width)[:, :p].copy(), self.H

    def _add_up(self, packed: np.ndarray) -> None:
        G, self.H = self.engine.pair_sums(self.codes, packed)
        tiles, width = self.words.shape[0], self.codes.width
        self.G = np.zeros((packed.shape[0], tiles, 8, width), dtype=np.int64)
        self.G.reshape(packed.shape[0], -1, width)[:, : self.codes.n_features] = G

    def _follow(self, packed: np.ndarray, before: np.ndarray, k: int) -> bool:
        most = int(MOST_CHANGES * self.codes.n_rows)
        followed: bool = self.run.call(
            _add_differences, self.words, self.codes.n_features, packed[k], before[k], self.space,
            most, self.G[k],
        )  # fmt: skip
        return followed
