"""AdaBoost of stumps whose features are drawn anew in every round (learners/redrawn.py).

No table of a feature outlives its round: every row has the fixed-point logarithm of its weight
instead (kernels/fixedpoint.py), to which a stump adds that of the factor of its (leaf, group). The
engine scores the round's stumps from these as it does those of any other first round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemble_gpu.boosting.rescale import reason_for
from ensemble_gpu.boosting.rules import AdaBoostRule, round_weights
from ensemble_gpu.kernels.fixedpoint import from_log
from ensemble_gpu.kernels.host.weights import SMALLEST_SHARE, is_chance, stump_of
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    EVEN_BINS,
    MAJORITY,
    N_LEAVES,
    Criterion,
    Engine,
)
from ensemble_gpu.learners.even import EvenMatrix, EvenRows
from ensemble_gpu.learners.redrawn import GeneratedStump, RedrawnTables


@dataclass(frozen=True)
class RedrawnTrail:
    """The number of the round that the stump was found in."""

    number: int


@dataclass(frozen=True)
class WeightedRows:
    """Rows sorted by class, and the logarithms of their weights.

    `lightest` is the share of the weight that one row has.
    """

    rows: EvenRows
    logs: Any
    lightest: float


class Redrawn:
    """The strategy on one engine."""

    def __init__(
        self, engine: Engine, tables: RedrawnTables, rows: WeightedRows, rule: AdaBoostRule,
        rate: float,
    ) -> None:  # fmt: skip
        self.engine, self.tables, self.rule, self.rate = engine, tables, rule, rate
        self.rows, self.logs, self.layout = rows.rows, rows.logs, rows.rows.layout
        classes = np.repeat(np.arange(self.layout.n_classes), np.diff(self.layout.starts))
        self.group = engine.where.put(rule.group_of[0][classes] * N_LEAVES)
        self.smoothing = 0.5 * max(rows.lightest, SMALLEST_SHARE)
        self.loss, self.number, self.reason = 1.0, 0, ""

    def best(self) -> GeneratedStump | None:
        source, rule = self.tables.source, self.rule
        generators = source.drawn(self.number)
        matrix = self.rows.matrix(generators)
        histograms = self.rows.histograms(matrix, self.logs)
        groups, n = self.layout.n_groups, len(generators)
        nothing = np.zeros((groups, n, EVEN_BINS + 1), dtype=np.int64)
        exponent = histograms.requantise(nothing, np.zeros(0, dtype=np.int64))
        scale = np.ldexp(1.0, exponent - int(exponent.max()))
        criterion = Criterion(rule.kind, rule.chance * scale, False, matrix.n_thresholds)
        split = histograms.split(scale, criterion)
        if split is None:
            self.reason = reason_for(None)
            return None
        values, shares = np.zeros((rule.n_outputs, N_LEAVES)), np.zeros(3)
        totals = np.empty(groups, dtype=np.int64)
        cumulated = self._cumulated(matrix, split.feature)
        weight, _, error, alpha, _, perfect = stump_of(
            rule.kind, split.sums, scale, self.rate, self.smoothing, 0.0,
            (0, split.bin, ABSTAIN), cumulated, values, shares, totals,
        )  # fmt: skip
        if is_chance(split.score, rule.chance, weight):
            self.reason = reason_for(split.score / weight)
            return None
        stump = GeneratedStump(
            generators.take(slice(split.feature, split.feature + 1)),
            matrix.threshold(split.feature, split.bin),
            values, alpha, error, perfect,
            round_weights(rule, error, alpha, shares.tolist()), RedrawnTrail(self.number),
        )  # fmt: skip
        return stump

    def _cumulated(self, matrix: EvenMatrix, feature: int) -> np.ndarray:
        """Rows of each class up to each code of a feature: [class, 1, code]."""
        column = self.engine.where.host(self.engine.column(matrix.codes, feature))
        starts, width = self.layout.starts, matrix.codes.width
        counts = [
            np.bincount(column[starts[c] : starts[c + 1]], minlength=width)
            for c in range(self.layout.n_classes)
        ]
        return np.cumsum(counts, axis=1)[:, None, :].astype(np.int64)

    def training_loss(self, stump: GeneratedStump) -> float:
        """Mean of exp(-margin), 1 for the outputs 0 (SAMME: of exp(-F_y))."""
        assert stump.weights is not None
        return self.loss * stump.weights.Z

    def follow(self, stump: GeneratedStump) -> None:
        where, xp = self.engine.where, self.engine.where.xp
        factors = where.put(from_log(self._factors(stump)).reshape(-1))
        leaf = xp.astype(self.tables.sides(stump, self.rows), self.group.dtype)
        self.logs = self.logs + xp.take(factors, self.group + leaf)
        self.loss = self.training_loss(stump)
        self.number = stump.trail.number + 1

    def _factors(self, stump: GeneratedStump) -> np.ndarray:
        """Logarithms [group, leaf] of the factors on the weights (kernels/host/adaboost.py)."""
        rule, c = self.rule, stump.values[0]
        if rule.kind != MAJORITY:
            return np.stack([-c, c])
        if rule.n_outputs == 1:
            return np.stack([c, -c])
        b = stump.alpha * (rule.n_outputs - 1) / rule.n_outputs  # weights are exp(-F_y)
        logs = np.where(stump.values == stump.alpha, -b, b / (rule.n_outputs - 1))
        logs[:, ABSTAIN] = 0.0
        return logs
