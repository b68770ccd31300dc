"""Integer weights and their sums in array-API calls.

Histograms need no scatter: the rows are sorted by (class, code) once per feature, and a histogram
is then the difference of a running sum of q at the ends of the runs. q are integers, so rebuilding
gives what the other engines get by adding differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.protocol import Codes, Criterion, Layout, Split, WeightRule
from ensemble_gpu.kernels.reference.answers import quantise
from ensemble_gpu.kernels.reference.score import choose


class SortedRows:
    """For every feature the rows in order of (class, code), and where each run ends."""

    def __init__(self, codes: Any, layout: Layout, width: int, where: Where) -> None:
        xp = where.xp
        p, n = codes.shape
        classes = np.repeat(np.arange(layout.n_classes), np.diff(layout.starts))
        key = where.put(classes)[None, :] * width + codes
        order = xp.argsort(key, axis=1, stable=True)
        self.order = xp.reshape(order, (-1,))
        runs = where.put(np.arange(layout.n_classes * width))
        ends = [
            xp.searchsorted(xp.take(key[f, :], order[f, :]), runs, side="right") for f in range(p)
        ]
        offset = where.put(np.arange(p) * (n + 1))
        self.ends = xp.reshape(xp.stack(ends) + offset[:, None], (-1,))
        self.shape = (p, n, layout.n_classes, width)
        self.where = where

    def sums(self, q: Any) -> Any:
        """sums[class, feature, code] of q, int64."""
        xp = self.where.xp
        p, n, classes, width = self.shape
        sorted_q = xp.reshape(xp.take(q, self.order), (p, n))
        running = xp.cumulative_sum(sorted_q, axis=1, dtype=xp.int64)
        start = self.where.zeros((p, 1), xp.int64)
        running = xp.reshape(xp.concat([start, running], axis=1), (-1,))
        at_end = xp.reshape(xp.take(running, self.ends), (p, classes * width))
        per_run = at_end - xp.concat([start, at_end[:, :-1]], axis=1)
        return xp.permute_dims(xp.reshape(per_run, (p, classes, width)), (1, 0, 2))


class ReferenceHistograms:
    """q[plane] per row; sums [group, feature, code]."""

    def __init__(self, codes: Codes, layout: Layout, log_weights: Any | None, where: Where) -> None:
        self.codes, self.sorted_rows = codes.data
        self.layout, self.width, self.where = layout, codes.width, where
        self.log_weights = log_weights
        classes = np.repeat(np.arange(layout.n_classes), np.diff(layout.starts))
        self.group = [where.put(layout.group_of[k][classes]) for k in range(layout.n_planes)]
        self.q: list[Any] = []
        self.sums: Any = None
        self.largest = np.zeros(layout.n_groups, dtype=np.int64)

    def requantise(
        self, log_tables: np.ndarray, used: np.ndarray, least: np.ndarray | None = None
    ) -> np.ndarray:
        xp, where = self.where.xp, self.where
        powers = where.put(fixedpoint.tables(self.layout.quantum_bits))
        exponent = np.full(self.layout.n_groups, fixedpoint.LOWEST_EXPONENT)
        if least is not None:
            exponent[:] = least
        self.q = []
        for group in self.group:
            logs = where.zeros(self.layout.n_rows, xp.int64)
            if self.log_weights is not None:
                logs = logs + self.log_weights
            for f in used:
                table = where.put(np.reshape(log_tables[:, f, :], (-1,)))
                logs = logs + xp.take(table, group * self.width + self.codes[int(f), :])
            for g in np.unique(where.host(xp.unique_values(group))):
                top = where.host(xp.max(logs[group == int(g)]))
                exponent[g] = max(exponent[g], (int(top) >> fixedpoint.FRACTION_BITS) + 1)
            down = xp.take(where.put(exponent), group) - (logs >> fixedpoint.FRACTION_BITS)
            self.q.append(quantise(logs, down, powers, where))
        self.largest[:] = 0
        self._rebuild()
        return exponent

    def _rebuild(self) -> None:
        """Sums per group from sums per class, and the largest q that each group has had."""
        xp, layout = self.where.xp, self.layout
        parts: list[Any] = [None] * layout.n_groups
        for k, q in enumerate(self.q):
            per_class = self.sorted_rows.sums(xp.astype(q, xp.int64))
            for c, g in enumerate(layout.group_of[k]):
                here = per_class[c, :, :]
                parts[g] = here if parts[g] is None else parts[g] + here
                rows = q[int(layout.starts[c]) : int(layout.starts[c + 1])]
                if rows.shape[0]:
                    self.largest[g] = max(self.largest[g], int(self.where.host(xp.max(rows))))
        self.sums = xp.stack(parts)

    def add_up(self) -> np.ndarray:
        return self.where.host(self.sums)

    def heaviest(self) -> np.ndarray:
        return self.largest.copy()

    def split(self, scale: np.ndarray, criterion: Criterion) -> Split | None:
        return choose(self.sums, self.largest, scale, criterion, self.where)

    def rescale(self, feature: int, leaf_of: np.ndarray, ratio: np.ndarray, kept: int) -> None:
        xp, where = self.where.xp, self.where
        column = self.codes[feature, :]
        touched = xp.take(where.put(leaf_of != kept), column)
        table = where.put(np.reshape(ratio[:, leaf_of], (-1,)))
        for k, (q, group) in enumerate(zip(self.q, self.group, strict=True)):
            factor = xp.take(table, group * self.width + column)
            new = xp.astype(xp.round(xp.astype(q, xp.float64) * factor), xp.int32)
            self.q[k] = xp.where(touched, new, q)
        self._rebuild()

    def rounds(self, criterion: Criterion, rule: WeightRule) -> None:
        return None
