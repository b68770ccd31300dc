"""What the kernels that search for splits are told of the rule and of the nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ensemble_gpu.kernels.cuda.device import Device, integers
from ensemble_gpu.kernels.host.hashing import drawn
from ensemble_gpu.kernels.tree_protocol import Frontier, SplitRule


@njit(cache=True, nogil=True)
def _draw(keys, features, out):
    """What is random about thresholds: features [node, tried], or [1, tried] for all of them."""
    for i in range(keys.shape[0]):
        for j in range(features.shape[1]):
            out[i, j] = drawn(keys[i], features[i if features.shape[0] > 1 else 0, j], 0)


class Search:
    """Arguments of the kernels in splits.py, but for sums and results."""

    def __init__(self, rule: SplitRule, n_stats: int, p: int, device: Device) -> None:
        where = device.where
        self.rule, self.n_stats, self.p, self.device = rule, n_stats, p, device
        self.signs_ = integers(rule.signs, device)
        self.no_bounds_ = device.handle(where.put(np.zeros((1, 2))))
        self.no_draws_ = device.handle(where.zeros((1, 1), where.xp.uint64))

    def arguments(self, frontier: Frontier, at: np.ndarray) -> tuple[Any, ...]:
        """For these nodes; what depends on them is copied only where it matters."""
        device, where, rule = self.device, self.device.where, self.rule
        bounds_, draws_ = self.no_bounds_, self.no_draws_
        if rule.monotone:
            bounds_ = device.handle(where.put(np.ascontiguousarray(frontier.bounds[at])))
        if rule.random:
            features = np.arange(self.p)[None, :]
            if frontier.features is not None:
                features = frontier.features[at]
            draws = np.empty((len(at), features.shape[1]), dtype=np.uint64)
            _draw(frontier.keys[at], features, draws)
            draws_ = device.handle(where.put(draws))
        sizes = (np.int32(v) for v in (rule.criterion, self.n_stats, rule.min_rows))
        conditions = np.int64(rule.min_weight), np.float64(rule.l2), np.int32(rule.random)
        return (*sizes, *conditions, self.signs_, bounds_, draws_)
