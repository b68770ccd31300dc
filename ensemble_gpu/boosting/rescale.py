"""The rescale strategy, for the exponential loss.

A stump multiplies the weights of each (leaf, group) by one constant. The constant of the leaf with
the most rows is folded into the group's scale; only the other rows are touched,
q = rint(q * ratio). Now and then all rows are requantised from the exact logarithms
(kernels/fixedpoint.py), which undoes rounding drift and brings back rows fallen to q = 0.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ensemble_gpu.boosting.rules import Rule, shrinkage, solve
from ensemble_gpu.boosting.strategy import Stump
from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.protocol import (
    ABSTAIN,
    LEFT,
    N_LEAVES,
    RIGHT,
    Codes,
    Criterion,
    Histograms,
    Layout,
)
from ensemble_gpu.kernels.scalar import exp

# Rounds after which all rows are requantised whatever happened; bench/fit_cost.py shows the cost.
REQUANTISE_EVERY = 256
# ... or when a group's sum of q has fallen to this share: its resolution is wearing thin.
WORN_SHARE = 0.125
Q_LIMIT = fixedpoint.Q_LIMIT
PER_NAT = fixedpoint.INV_LN2 * fixedpoint.UNIT
# A split whose score is within this share of chance improves nothing.
NO_GAIN = 1e-10
# Smoothing never assumes more than this many rows: leaf values stay below 1/2 ln(2e9) = 10.7.
SMALLEST_SHARE = 1e-9


@njit(cache=True, nogil=True)
def _count_leaves(cumulated, feature, last_bin, missing_leaf, rows):
    """rows[class, leaf] of a split, unweighted; returns whether it is perfect.

    Perfect: each leaf holds one class at most and nobody abstains. Counted in rows, because a
    row whose weight has fallen to q = 0 is still there.
    """
    width = cumulated.shape[2]
    perfect = True
    rows[:] = 0
    for c in range(rows.shape[0]):
        along = cumulated[c, feature]
        rows[c, LEFT] = along[last_bin]
        rows[c, RIGHT] = along[width - 2] - along[last_bin]
        rows[c, missing_leaf] += along[width - 1] - along[width - 2]
        perfect = perfect and rows[c, ABSTAIN] == 0
    for leaf in range(ABSTAIN):
        classes = 0
        for c in range(rows.shape[0]):
            classes += rows[c, leaf] > 0
        perfect = perfect and classes <= 1
    return perfect


@njit(cache=True, nogil=True)
def _fuller_side(rows):
    """The leaf, LEFT or RIGHT, with more rows; LEFT where they are equal."""
    difference = 0
    for c in range(rows.shape[0]):
        difference += rows[c, LEFT] - rows[c, RIGHT]
    return LEFT if difference >= 0 else RIGHT


@njit(cache=True, nogil=True)
def _remember(tables, fixed, feature, last_bin, missing_leaf, logs, leaf_of):
    """tables[g, feature, code] += log factor of the code's leaf; fills leaf_of[code].

    `fixed` holds the same in fixed point (fixedpoint.from_log).
    """
    width = leaf_of.shape[0]
    for code in range(width - 1):
        leaf_of[code] = LEFT if code <= last_bin else RIGHT
    leaf_of[width - 1] = missing_leaf
    for g in range(logs.shape[0]):
        for code in range(width):
            tables[g, feature, code] += logs[g, leaf_of[code]]
            fixed[g, feature, code] = np.int64(np.rint(tables[g, feature, code] * PER_NAT))


@njit(cache=True, nogil=True)
def _fold(logs, rows, scale, ratio):
    """Fold the factor of the leaf with the most rows into the scales; returns that leaf.

    ratio[g, leaf] is what the other leaves' weights are multiplied by. Scales are brought
    back to a maximum in [1/2, 1) by an exact power of two.
    """
    kept, most = 0, -1
    for leaf in range(N_LEAVES):
        count = rows[:, leaf].sum()
        if count > most:
            kept, most = leaf, count
    top = 0.0
    for g in range(logs.shape[0]):
        for leaf in range(N_LEAVES):
            ratio[g, leaf] = exp(logs[g, leaf] - logs[g, kept])
        scale[g] = scale[g] * exp(logs[g, kept])
        top = max(top, scale[g])
    _, exponent = math.frexp(top)
    for g in range(logs.shape[0]):
        scale[g] = math.ldexp(scale[g], -exponent)
    return kept


@njit(cache=True, nogil=True)
def _worn(largest, ratio, totals, fresh_totals):
    """Whether a group's q would overflow, or its sum has fallen to a small share."""
    for g in range(totals.shape[0]):
        highest = max(ratio[g, LEFT], ratio[g, RIGHT], ratio[g, ABSTAIN])
        if largest[g] * highest > Q_LIMIT or totals[g] < WORN_SHARE * fresh_totals[g]:
            return True
    return False


@njit(cache=True, nogil=True)
def _weigh(sums, scale, totals):
    """totals[g] = sum of q; returns the weight of all groups."""
    weight = 0.0
    for g in range(sums.shape[0]):
        totals[g] = sums[g].sum()
        weight += scale[g] * totals[g]
    return weight


class Rescale:
    """The rescale strategy over one engine's histograms."""

    def __init__(
        self,
        histograms: Histograms,
        codes: Codes,
        layout: Layout,
        rule: Rule,
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
        weight = _weigh(split.sums, self.scale, self.totals)
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
        perfect = _count_leaves(self.cumulated, feature, last_bin, missing_leaf, self.rows)
        if missing_leaf != ABSTAIN and not self.has_missing[feature]:
            missing_leaf = _fuller_side(self.rows)  # for missing values in later data
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
        _remember(
            self.log_tables, self.fixed_tables, stump.feature, stump.bin, stump.missing_leaf,
            self.logs, self.leaf_of,
        )  # fmt: skip
        self.used[stump.feature] = True
        kept = _fold(self.logs, self.rows, self.scale, self.ratio)
        self.rounds_since += 1
        if self.rounds_since >= REQUANTISE_EVERY or _worn(
            self.largest, self.ratio, self.totals, self.fresh_totals
        ):
            self._requantise()
        else:
            self.histograms.rescale(stump.feature, self.leaf_of, self.ratio, kept)
