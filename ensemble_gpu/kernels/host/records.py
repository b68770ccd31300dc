"""The best split of each node of a frontier, as compiled code writes it down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.tree_protocol import NEVER, Frontier, SplitRule, Splits, subset_words

# Columns of a record: feature, bin, above, missing left, has missing.
FEATURE, BIN, ABOVE, MISSING_LEFT, HAS_MISSING, RECORD = range(6)


class NodeBatch(NamedTuple):
    """Nodes that look for a split, as compiled code takes a Frontier: one entry a node.

    The rows of node i are `start[i]` ... `stop[i]` - 1 (where there are rows), `whole` [node,
    column] are its sums. `features` [node, tried] are those of the nodes that are looked at, one
    after the other, or [1, tried] for all.
    """

    start: np.ndarray
    stop: np.ndarray
    features: np.ndarray
    whole: np.ndarray
    bounds: np.ndarray
    key: np.ndarray


class FoundArrays(NamedTuple):
    """Where compiled code writes the best splits: one entry a node, `record` [node, RECORD]."""

    score: np.ndarray
    record: np.ndarray
    left: np.ndarray
    subset: np.ndarray


class Found:
    """The best splits of a frontier while they are looked for."""

    def __init__(self, n: int, rule: SplitRule, n_stats: int, width: int) -> None:
        columns = n_stats + (rule.min_rows > 1)
        self.n_stats = n_stats
        self.arrays = FoundArrays(
            np.full(n, NEVER),
            np.full((n, RECORD), -1, dtype=np.int64),
            np.zeros((n, columns), dtype=np.int64),
            np.zeros((n, subset_words(rule.categorical, width)), dtype=np.uint64),
        )

    @property
    def score(self) -> np.ndarray:
        return self.arrays.score

    def take(self, other: Found, at: np.ndarray) -> None:
        """The splits of other nodes `at`."""
        for own, array in zip(self.arrays, other.arrays, strict=True):
            own[at] = array[at]

    def put(self, at: np.ndarray, other: Found) -> None:
        """Write the splits of other nodes 0, 1, ... at these places."""
        for own, array in zip(self.arrays, other.arrays, strict=True):
            own[at] = array

    def splits(self) -> Splits:
        score, record, left, subset = self.arrays
        feature, last_bin, above, missing_left, has_missing = np.ascontiguousarray(record.T)
        return Splits(
            score, feature, last_bin, above, missing_left == 1, has_missing == 1, subset,
            np.ascontiguousarray(left[:, : self.n_stats]),
        )  # fmt: skip


def record_of(splits: Splits) -> np.ndarray:
    """Splits as a record [node, RECORD]."""
    columns = splits.feature, splits.bin, splits.above, splits.missing_left, splits.has_missing
    return np.stack(columns, axis=1, dtype=np.int64, casting="unsafe")


def wholes_of(sums: np.ndarray, n_rows: np.ndarray, rule: SplitRule) -> np.ndarray:
    """Sums of the nodes [node, column], with their rows where rows are counted."""
    return sums if rule.min_rows == 1 else np.concatenate([sums, n_rows[:, None]], axis=1)


def batch_of(
    frontier: Frontier, features: np.ndarray, start: np.ndarray, stop: np.ndarray, whole: np.ndarray
) -> NodeBatch:
    return NodeBatch(start, stop, features, whole, frontier.bounds, frontier.keys)


class Best(NamedTuple):
    """Where the best split of a node is written."""

    score: np.ndarray
    record: np.ndarray
    left: np.ndarray
    bits: np.ndarray


class Runs(NamedTuple):
    """The codes of a feature that occur in a node, ascending: code[:m], and their sums cell[:m].

    `missing_sums` are those of missing values; `order` is how the runs are to follow each other;
    `work` [3, column] holds zeros in its last row, and keeps them.
    """

    code: np.ndarray
    cell: np.ndarray
    missing_sums: np.ndarray
    order: np.ndarray
    work: np.ndarray


def runs_for(n: int, columns: int) -> Runs:
    """Scratch arrays for up to n codes; one cell more takes what is not kept."""
    kind = np.int64
    return Runs(
        np.empty(n, kind), np.empty((n + 1, columns), kind), np.empty(columns, kind),
        np.empty(n, kind), np.zeros((3, columns), kind),
    )  # fmt: skip


@inner
def keep(feature, runs, m, at, n_codes, missing, missing_left, score, best):
    """Write down a split: runs order[0] ... order[at] go left; as bits, where there are bits."""
    left, bits, record = best.left, best.bits, best.record
    code, cell, order = runs.code, runs.cell, runs.order
    best.score[0] = score
    for c in range(left.shape[0]):
        left[c] = runs.missing_sums[c] if missing_left else 0
        for i in range(at + 1):
            left[c] += cell[order[i], c]
    record[FEATURE] = feature
    record[BIN] = code[at]
    record[ABOVE] = code[at + 1] if at + 1 < m else n_codes
    record[MISSING_LEFT], record[HAS_MISSING] = missing_left, missing
    for w in range(bits.shape[0]):
        bits[w] = 0


@inner
def keep_subset(runs, at, best):
    best.record[BIN], best.record[ABOVE] = -1, 0
    for i in range(at + 1):
        b = runs.code[runs.order[i]]
        best.bits[b // 64] |= np.uint64(1) << np.uint64(b % 64)
