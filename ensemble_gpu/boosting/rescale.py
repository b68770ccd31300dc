"""The rescale strategy, for the exponential loss.

A stump multiplies the weights of each (leaf, group) by one constant. The constant of the leaf with
the most rows is folded into the group's scale; only the other rows are touched,
q = rint(q * ratio). Now and then all rows are requantised from the exact logarithms
(kernels/fixedpoint.py), which undoes rounding drift and brings back rows fallen to q = 0.
"""

from __future__ import annotations

import math

import numpy as np

from ensemble_gpu.boosting.rules import AdaBoostRule, shrinkage
from ensemble_gpu.boosting.strategy import Stump
from ensemble_gpu.kernels.host.adaboost import solve
from ensemble_gpu.kernels.host.weights import count_leaves, fold, fuller_side, remember, weigh, worn
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    N_LEAVES,
    Codes,
    Criterion,
    Histograms,
    Layout,
)

# Rounds after which all rows are requantised whatever happened; bench/fit_cost.py shows the cost.
REQUANTISE_EVERY = 256
# A split whose score is within this share of chance improves nothing.
NO_GAIN = 1e-10
# Smoothing never assumes more than this many rows: leaf values stay below 1/2 ln(2e9) = 10.7.
SMALLEST_SHARE = 1e-9


class Rescale:
    """The rescale strategy over one engine's histograms."""

    def __init__(
        self,
        histograms: Histograms,
        codes: Codes,
        layout: Layout,
        rule: AdaBoostRule,
        criterion: Criterion,
        learning_rate: float,
        lightest: float,
    ) -> None:
        groups = layout.n_groups
        self.histograms, self.rule, self.criterion = histograms, rule, criterion
        self.rate, self.lightest = learning_rate, lightest
        self.smoothing = math.nan
        self.quantum_bits = layout.quantum_bits
        self.cumulated = np.cumsum(codes.counts, axis=2)
        self.has_missing = np.asarray(codes.counts[:, :, -1].any(axis=0))
        self.rows = np.zeros((layout.n_classes, N_LEAVES), dtype=np.int64)
        self.leaf_of = np.zeros(codes.width, dtype=np.int64)
        self.log_tables = np.zeros((groups, codes.n_features, codes.width))
        self.fixed_tables = np.zeros(self.log_tables.shape, dtype=np.int64)
        self.used = np.zeros(codes.n_features, dtype=bool)
        self.logs = np.zeros((groups, N_LEAVES))
        self.ratio = np.ones((groups, N_LEAVES))
        self.totals = np.zeros(groups, dtype=np.int64)
        self.fresh_totals = np.zeros(groups, dtype=np.int64)
        self.largest = np.zeros(groups, dtype=np.int64)
        self.reason = ""
        self.loss = 1.0
        self._requantise()

    def _requantise(self) -> None:
        used = np.flatnonzero(self.used)
        exponent = self.histograms.requantise(self.fixed_tables, used)
        self.top_exponent = int(exponent.max())
        self.scale = np.ldexp(1.0, exponent - self.top_exponent)
        self.rounds_since = 0

    def best(self) -> Stump | None:
        rule = self.rule
        np.multiply(rule.chance, self.scale, out=self.criterion.abstention)
        split = self.histograms.split(self.scale, self.criterion)
        if split is None:
            self.reason = "no feature has two different values to split"
            return None
        self.largest = split.largest
        weight = weigh(split.sums, self.scale, self.totals)
        if split.score >= rule.chance * weight * (1.0 - NO_GAIN):
            self.reason = f"no stump is better than chance (its score: {split.score / weight:.6f})"
            return None
        if math.isnan(self.smoothing):
            self.smoothing = self._smoothing(weight)
        if self.rounds_since == 0:
            self.fresh_totals[:] = self.totals
        values = np.zeros((rule.n_outputs, N_LEAVES))
        error, alpha = solve(
            rule.kind, split.sums, self.scale, self.rate, self.smoothing, values, self.logs
        )
        feature, last_bin, missing_leaf = split.feature, split.bin, split.missing_leaf
        perfect = count_leaves(self.cumulated, feature, last_bin, missing_leaf, self.rows)
        if missing_leaf != ABSTAIN and not self.has_missing[feature]:
            missing_leaf = fuller_side(self.rows)  # for missing values in later data
        return Stump(feature, last_bin, missing_leaf, values, alpha, error, perfect)

    def _smoothing(self, weight: float) -> float:
        """Half the lightest row's share of the weight before round 1: 1 / (2 m)."""
        lightest = math.ldexp(self.lightest, self.quantum_bits - self.top_exponent)
        return 0.5 * max(lightest / weight, SMALLEST_SHARE)

    def training_loss(self, stump: Stump) -> float:
        """Mean of the weights exp(-margin), relative to the first round's."""
        return self.loss * float(shrinkage(self.rule, stump.error, stump.alpha))

    def follow(self, stump: Stump) -> None:
        self.loss = self.training_loss(stump)
        remember(
            self.log_tables, self.fixed_tables, stump.feature, stump.bin, stump.missing_leaf,
            self.logs, self.leaf_of,
        )  # fmt: skip
        self.used[stump.feature] = True
        kept = fold(self.logs, self.rows, self.scale, self.ratio)
        self.rounds_since += 1
        if self.rounds_since >= REQUANTISE_EVERY or worn(
            self.largest, self.ratio, self.totals, self.fresh_totals
        ):
            self._requantise()
        else:
            self.histograms.rescale(stump.feature, self.leaf_of, self.ratio, kept)
