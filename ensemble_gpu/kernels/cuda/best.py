"""The search for splits on the device, seen from the host: what it is told, what it returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cuda import growing
from ensemble_gpu.kernels.cuda.device import Device
from ensemble_gpu.kernels.growing import Rule
from ensemble_gpu.kernels.splitting import Found


@dataclass(frozen=True)
class Search:
    """What the scoring kernels know of the rule and, where it matters, of the nodes."""

    rule: Rule
    n_stats: int
    signs: Any
    bounds: Any
    draws: Any

    @property
    def arguments(self) -> tuple[Any, ...]:
        rule = self.rule
        sizes = (np.int32(v) for v in (rule.criterion, self.n_stats, rule.min_rows))
        conditions = np.int64(rule.min_weight), np.int32(rule.random)
        return (*sizes, *conditions, self.signs, self.bounds, self.draws)


def found_bytes(tried: int, columns: int) -> int:
    """What the best splits of a node's features take."""
    return 8 * tried * (1 + growing.FOUND + columns)


class Best:
    """The best split of every (node, tried feature), and of every node."""

    def __init__(self, n: int, tried: int, columns: int, device: Device) -> None:
        where, xp = device.where, device.where.xp
        self.n, self.device = n, device
        self.scores_ = device.handle(where.zeros((n, tried), xp.float64))
        self.found_ = device.handle(where.zeros((n, tried, growing.FOUND + columns), xp.int64))
        self.record = where.zeros((n, growing.RECORD + columns), xp.int64)

    def choose(self, features: Any, at: np.ndarray, found: Found) -> None:
        """Write the nodes' splits into the places `at` of `found`."""
        device, xp = self.device, self.device.where.xp
        growing.launch_choose(
            self.n, device.plan, device.stream(), self.scores_, self.found_, features,
            device.handle(self.record), device.handle(self.record.view(xp.float64)),
        )  # fmt: skip
        record = device.where.host(self.record)
        found.score[at] = record[:, 0].copy().view(np.float64)
        found.record[at] = record[:, 1 : growing.RECORD]
        found.left[at] = record[:, growing.RECORD :]
