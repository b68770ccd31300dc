"""The best split of each node of a frontier, as compiled code writes it down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ensemble_gpu.kernels.tree_protocol import NEVER, SplitRule, Splits, subset_words

# Columns of a record: feature, bin, above, missing left, has missing.
FEATURE, BIN, ABOVE, MISSING_LEFT, HAS_MISSING, RECORD = range(6)


class Found:
    """The arrays that compiled code writes the best splits of a frontier into."""

    def __init__(self, n: int, rule: SplitRule, n_stats: int, width: int) -> None:
        columns = n_stats + (rule.min_rows > 1)
        self.n_stats = n_stats
        self.score = np.full(n, NEVER)
        self.record = np.full((n, RECORD), -1, dtype=np.int64)
        self.left = np.zeros((n, columns), dtype=np.int64)
        self.subset = np.zeros((n, subset_words(rule.categorical, width)), dtype=np.uint64)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.score, self.record, self.left, self.subset

    def take(self, other: Found, at: np.ndarray) -> None:
        """The splits of other nodes `at`."""
        for own, array in zip(self.arrays, other.arrays, strict=True):
            own[at] = array[at]

    def splits(self) -> Splits:
        feature, last_bin, above, missing_left, has_missing = np.ascontiguousarray(self.record.T)
        return Splits(
            self.score, feature, last_bin, above, missing_left == 1, has_missing == 1, self.subset,
            np.ascontiguousarray(self.left[:, : self.n_stats]),
        )  # fmt: skip


def wholes_of(sums: np.ndarray, n_rows: np.ndarray, rule: SplitRule) -> np.ndarray:
    """Sums of the nodes [node, column], with their rows where rows are counted."""
    return sums if rule.min_rows == 1 else np.concatenate([sums, n_rows[:, None]], axis=1)


class Best(NamedTuple):
    """Where the best split of a node is written."""

    score: np.ndarray
    record: np.ndarray
    left: np.ndarray
    bits: np.ndarray


@njit(cache=True, nogil=True)
def keep(
    feature, code, cell, order, at, m, n_codes, missing_sums, missing, missing_left, score, best
):
    """Write down a split: runs order[0] ... order[at] go left; as bits, where there are bits."""
    left, bits, record = best.left, best.bits, best.record
    best.score[0] = score
    for c in range(left.shape[0]):
        left[c] = missing_sums[c] if missing_left else 0
        for i in range(at + 1):
            left[c] += cell[order[i], c]
    record[FEATURE] = feature
    record[BIN] = code[at]
    record[ABOVE] = code[at + 1] if at + 1 < m else n_codes
    record[MISSING_LEFT], record[HAS_MISSING] = missing_left, missing
    bits[:] = 0


@njit(cache=True, nogil=True)
def keep_subset(code, order, at, best):
    best.record[BIN], best.record[ABOVE] = -1, 0
    for i in range(at + 1):
        b = code[order[i]]
        best.bits[b // 64] |= np.uint64(1) << np.uint64(b % 64)
