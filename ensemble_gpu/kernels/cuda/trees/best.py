"""The best of a node's features: what is found on each of them, and the choice.

Of equal scores the first feature wins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda._numba import cuda, kernel
from ensemble_gpu.kernels.cuda.device import Device, thread_a_row
from ensemble_gpu.kernels.cuda.launch import Shape, launch
from ensemble_gpu.kernels.host.records import Found

# Of a feature's best split: key = 2 bin + (missing right), next code, has missing; then left sums.
KEY, NEXT, HAS_MISSING, FOUND = range(4)
# The record of a node's best split: the score's bits, the columns of host/records.py, left sums.
RECORD = 6

# --- kernels ---------------------------------------------------------------------------------


@kernel()
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


def launch_choose(
    shape: Shape, scores: Any, found: Any, features: Any, record: Any, record_score: Any
) -> None:
    launch(choose_feature, *shape, scores, found, features, record, record_score)


def found_bytes(tried: int, columns: int) -> int:
    """What the best splits of a node's features take."""
    return 8 * tried * (1 + FOUND + columns)


class BestSplits:
    """The best split of every (node, tried feature), and of every node."""

    def __init__(self, n: int, tried: int, columns: int, device: Device) -> None:
        where, xp = device.where, device.where.xp
        self.n, self.device = n, device
        self.scores_ = device.handle(where.zeros((n, tried), xp.float64))
        self.found_ = device.handle(where.zeros((n, tried, FOUND + columns), xp.int64))
        self.record = where.zeros((n, RECORD + columns), xp.int64)

    @property
    def arguments(self) -> tuple[Any, Any]:
        """What the kernels that search write into."""
        return self.scores_, self.found_

    def choose(self, features: Any, at: np.ndarray, found: Found) -> None:
        """Write the nodes' splits into the entries `at` of `found`."""
        device, xp = self.device, self.device.where.xp
        launch_choose(
            thread_a_row(device, self.n), *self.arguments, features,
            device.handle(self.record), device.handle(self.record.view(xp.float64)),
        )  # fmt: skip
        record = device.where.host(self.record)
        found.score[at] = record[:, 0].copy().view(np.float64)
        found.arrays.record[at] = record[:, 1:RECORD]
        found.arrays.left[at] = record[:, RECORD:]
