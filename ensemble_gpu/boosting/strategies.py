"""How the weights follow the model from round to round.

Rescale (exponential loss): a stump multiplies the weights of each (leaf, group) by one constant.
The constant of the leaf with the most rows is folded into the group's scale; only the other rows
are touched, q = rint(q * ratio). Now and then all rows are requantised from the exact logarithms
(kernels/fixedpoint.py), which undoes rounding drift and brings back rows fallen to q = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numba import njit

from ensemble_gpu.boosting.rules import Rule, solve
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
# A split whose score is within this share of chance improves nothing.
NO_GAIN = 1e-10
# Smoothing never assumes more than this many rows: leaf values stay below 1/2 ln(2e9) = 10.7.
SMALLEST_SHARE = 1e-9


@dataclass(frozen=True)
class Stump:
    """One round: x[feature] in a bin <= `bin` goes left, NaN to `missing_leaf`.

    `values[output, leaf]` is what the model adds, `error` the round's weighted error or Z.
    """

    feature: int
    bin: int
    missing_leaf: int
    values: np.ndarray
    alpha: float
    error: float
    perfect: bool


class Strategy(Protocol):
    """What the loop needs: the next stump (or None and a reason), and to follow it."""

    reason: str

    def best_stump(self) -> Stump | None: ...

    def follow(self, stump: Stump) -> None: ...


@njit(cache=True, nogil=True)
def _fold(logs, kept, scale, ratio):
    """Fold the kept leaf's factor into the scales; ratio[g, leaf] for the others.

    Scales are brought back to a maximum in [1/2, 1) by an exact power of two.
    """
    top = 0.0
    for g in range(logs.shape[0]):
        for leaf in range(N_LEAVES):
            ratio[g, leaf] = exp(logs[g, leaf] - logs[g, kept])
        scale[g] = scale[g] * exp(logs[g, kept])
        top = max(top, scale[g])
    _, exponent = math.frexp(top)
    for g in range(logs.shape[0]):
        scale[g] = math.ldexp(scale[g], -exponent)


@njit(cache=True, nogil=True)
def _remember(tables, feature, leaf_of, logs):
    """tables[g, feature, code] += log factor of the code's leaf."""
    for g in range(logs.shape[0]):
        for code in range(leaf_of.shape[0]):
            tables[g, feature, code] += logs[g, leaf_of[code]]


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
        self.width = codes.width
        self.cumulated = np.cumulative_sum(codes.counts, axis=2)
        self.has_missing = codes.counts[:, :, -1].any(axis=0)
        self.log_tables = np.zeros((groups, codes.n_features, codes.width))
        self.used = np.zeros(codes.n_features, dtype=bool)
        self.scale = np.ones(groups)
        self.logs = np.zeros((groups, N_LEAVES))
        self.ratio = np.ones((groups, N_LEAVES))
        self.reason = ""
        self._requantise()

    def _requantise(self) -> None:
        used = np.flatnonzero(self.used)
        exponent = self.histograms.requantise(fixedpoint.from_log(self.log_tables), used)
        self.top_exponent = int(exponent.max())
        self.scale = np.ldexp(1.0, exponent - self.top_exponent)
        self.fresh_sums: np.ndarray | None = None
        self.rounds_since = 0

    def best_stump(self) -> Stump | None:
        rule = self.rule
        split = self.histograms.split(self.scale, self._criterion())
        if split is None:
            self.reason = "no feature has two different values to split"
            return None
        self.largest, self.per_group = split.largest, split.sums.sum(axis=1)
        total = sum((self.scale * self.per_group).tolist())
        if split.score >= rule.chance * total * (1.0 - NO_GAIN):
            self.reason = f"no stump is better than chance (its score: {split.score / total:.6f})"
            return None
        if math.isnan(self.smoothing):
            self.smoothing = self._smoothing(total)
        values = np.zeros((rule.n_outputs, N_LEAVES))
        error, alpha = solve(
            rule.kind, split.sums, self.scale, self.rate, self.smoothing, values, self.logs
        )
        self.rows = self._rows_of_leaves(split.feature, split.bin, split.missing_leaf)
        return Stump(
            split.feature,
            split.bin,
            self._missing_leaf(split.feature, split.missing_leaf),
            values,
            alpha,
            error,
            _is_perfect(self.rows),
        )

    def _smoothing(self, total: float) -> float:
        """S / W = 1 / (2 m): half the lightest row's share of the weight before round 1."""
        lightest = math.ldexp(self.lightest, fixedpoint.QUANTUM_BITS - self.top_exponent)
        return 0.5 * max(lightest / total, SMALLEST_SHARE)

    def _criterion(self) -> Criterion:
        return replace(self.criterion, abstention=self.rule.chance * self.scale)

    def _missing_leaf(self, feature: int, chosen: int) -> int:
        """A feature without missing rows sends later ones to the leaf with more rows."""
        if chosen == ABSTAIN or self.has_missing[feature]:
            return chosen
        left, right = self.rows[:, LEFT].sum(), self.rows[:, RIGHT].sum()
        return LEFT if left >= right else RIGHT

    def _rows_of_leaves(self, feature: int, last_bin: int, missing_leaf: int) -> np.ndarray:
        """Rows per (class, leaf), unweighted."""
        cumulated = self.cumulated[:, feature, :]
        rows = np.zeros((cumulated.shape[0], N_LEAVES), dtype=np.int64)
        rows[:, LEFT] = cumulated[:, last_bin]
        rows[:, RIGHT] = cumulated[:, -2] - cumulated[:, last_bin]
        rows[:, missing_leaf] += cumulated[:, -1] - cumulated[:, -2]
        return rows

    def follow(self, stump: Stump) -> None:
        leaf_of = np.full(self.width, RIGHT, dtype=np.int64)
        leaf_of[: stump.bin + 1] = LEFT
        leaf_of[-1] = stump.missing_leaf
        _remember(self.log_tables, stump.feature, leaf_of, self.logs)
        self.used[stump.feature] = True
        kept = int(self.rows.sum(axis=0).argmax())
        scale = self.scale.copy()
        _fold(self.logs, kept, scale, self.ratio)
        if self.fresh_sums is None:
            self.fresh_sums = self.per_group
        self.rounds_since += 1
        if (
            self.rounds_since >= REQUANTISE_EVERY
            or (self.largest * self.ratio.max(axis=1) > fixedpoint.Q_LIMIT).any()
            or (self.per_group < WORN_SHARE * self.fresh_sums).any()
        ):
            self._requantise()
        else:
            self.scale = scale
            self.histograms.rescale(stump.feature, leaf_of, self.ratio, kept)


def _is_perfect(rows: np.ndarray) -> bool:
    """Both leaves hold one class each and nobody abstains: counted in rows, not weights."""
    return not rows[:, ABSTAIN].any() and bool(((rows > 0).sum(axis=0) <= 1).all())
