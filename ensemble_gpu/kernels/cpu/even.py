"""Codes of evenly spaced thresholds on the CPU: no search, a subtraction and a scaling a value."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ensemble_gpu.kernels.cpu.weights import CpuHistograms
from ensemble_gpu.kernels.jit import kernel
from ensemble_gpu.kernels.protocol import EVEN_BINS, Codes, Layout, no_counts

LANES = 8  # features per tile
ROWS = 1024  # of a block


@kernel
def _encode(Z, low, per, missing_code, words):
    """A tile's eight codes are the bytes of a word, which are put in one feature after the other:
    a loop over rows that lie side by side, without a branch. Unused lanes hold 0.
    """
    n, p = Z.shape
    for start in range(0, n, ROWS):
        stop = min(n, start + ROWS)
        for f in range(p):
            base, factor, shift = low[f], per[f], np.int64(8 * (f % LANES))
            column, own = Z[start:stop, f], words[f // LANES, start:stop]
            if shift == 0:
                own[:] = 0
            for i in range(own.shape[0]):
                z = column[i]
                code = (z - base) * factor if z == z else missing_code
                own[i] |= np.int64(code) << shift


class CpuEvenCodes:
    """Codes [tile, row, 8] in one array, and histograms whose arrays serve every round.

    New arrays would cost as much as adding up the weights of 10,000 rows x 1,000 features does: a
    page is cleared when it is first written to.
    """

    def __init__(
        self, layout: Layout, n_features: int, made: Callable[[Codes, np.ndarray], CpuHistograms]
    ) -> None:
        self.n_features, self.made = n_features, made
        self.words = np.empty((-(-n_features // LANES), layout.n_rows), dtype="<i8")
        self.kept: CpuHistograms | None = None

    def put(self, first: int, Z: np.ndarray, low: np.ndarray, step: np.ndarray) -> None:
        tile = first // LANES
        words = self.words[tile : tile + -(-Z.shape[1] // LANES)]
        _encode(Z, low, 1.0 / step, float(EVEN_BINS), words)

    def codes(self) -> Codes:
        data = self.words.view(np.uint8).reshape(*self.words.shape, LANES)
        p, width = self.n_features, EVEN_BINS + 1
        return Codes(data, data.shape[1], p, width, no_counts(p, width))

    def histograms(self, codes: Codes, log_weights: np.ndarray) -> CpuHistograms:
        if self.kept is None:
            self.kept = self.made(codes, log_weights)
        else:
            self.kept.begin_again(codes, log_weights)
        return self.kept
