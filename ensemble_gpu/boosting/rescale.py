"""The rescale strategy, for the exponential loss.

A stump multiplies the weights of each (leaf, group) by one constant. The constant of the leaf with
the most rows is folded into the group's scale; only the other rows are touched,
q = rint(q * ratio). Now and then all rows are requantised from the exact logarithms
(kernels/fixedpoint.py), which undoes rounding drift and brings back rows fallen to q = 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ensemble_gpu.boosting.category_sets import CategorySets, left_first
from ensemble_gpu.boosting.rules import AdaBoostRule, round_weights
from ensemble_gpu.boosting.vote_loss import VoteLoss
from ensemble_gpu.kernels.host.weights import (
    SMALLEST_SHARE,
    follow_stump,
    is_chance,
    stump_of,
)
from ensemble_gpu.kernels.protocol import N_LEAVES, Codes, Criterion, Histograms, Layout
from ensemble_gpu.learners.stump import Stump

# Rounds after which all rows are requantised whatever happened; bench/fit_cost.py shows the cost.
REQUANTISE_EVERY = 256


class WeightTrail(NamedTuple):
    """The integer weights before a round: their sum in each group, and a bound on each of them."""

    totals: np.ndarray
    largest: np.ndarray


def reason_for(score: float | None) -> str:
    """Why there is no further stump: the best split's score over the weight, None without any."""
    if score is None:
        return "no feature has two different values to split"
    return f"no stump is better than chance (its score: {score:.6f})"


def n_before_requantising(kind: int, cumulated: np.ndarray, rounds: Sequence[Stump]) -> int:
    """Rounds before the last one after which all rows are requantised; 0 where there is none.

    The weights are found anew then, from tables alone: rows need not follow what was before. When
    it is done depends on the rounds, and on no row.
    """
    groups = len(rounds[0].trail.totals) if rounds else 0
    shape = groups, cumulated.shape[1], cumulated.shape[2]
    tables, fixed = np.zeros(shape), np.zeros(shape, dtype=np.int64)
    leaf_of, scale = np.zeros(shape[2], dtype=np.int64), np.ones(groups)
    ratio, logs = np.ones((groups, N_LEAVES)), np.zeros((groups, N_LEAVES))
    fresh, last, since = np.zeros(groups, dtype=np.int64), 0, 0
    for number, stump in enumerate(rounds):
        if stump.left is not None:
            return 0
        fresh = stump.trail.totals if since == 0 else fresh
        _, worn = follow_stump(
            kind, stump.values, stump.alpha, stump[:3], cumulated, tables, fixed, leaf_of, scale,
            ratio, logs, stump.trail, fresh,
        )  # fmt: skip
        since += 1
        if worn or since >= REQUANTISE_EVERY:
            last, since = number, 0
    return last


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
        vote_loss: VoteLoss | None = None,
        loss: float = 1.0,
        sets: CategorySets | None = None,
    ) -> None:
        groups = layout.n_groups
        self.counts, self.sets = codes.counts, sets
        self.histograms, self.rule, self.criterion = histograms, rule, criterion
        self.rate, self.vote_loss = learning_rate, vote_loss
        self.smoothing = math.nan
        self.cumulated = np.cumsum(codes.counts, axis=2)
        self.leaf_of = np.zeros(codes.width, dtype=np.int64)
        self.log_tables = np.zeros((groups, codes.n_features, codes.width))
        self.fixed_tables = np.zeros(self.log_tables.shape, dtype=np.int64)
        self.used = np.zeros(codes.n_features, dtype=bool)
        self.logs = np.zeros((groups, N_LEAVES))
        self.ratio = np.ones((groups, N_LEAVES))
        self.fresh_totals = np.zeros(groups, dtype=np.int64)
        self.reason = ""
        self.loss = loss
        self._requantise()
        # the weight of the lightest row, as weights are scaled before round 1
        self.lightest = math.ldexp(lightest, layout.quantum_bits - self.top_exponent)

    def _requantise(self) -> None:
        used = np.flatnonzero(self.used)
        exponent = self.histograms.requantise(self.fixed_tables, used)
        self.top_exponent = int(exponent.max())
        self.scale = np.ldexp(1.0, exponent - self.top_exponent)
        self.rounds_since = 0

    def _begin(self, totals: np.ndarray) -> None:
        """What is known from the first weights, and from the first after requantising."""
        if math.isnan(self.smoothing):
            weight = 0.0
            for scale, total in zip(self.scale.tolist(), totals.tolist(), strict=True):
                weight += scale * total
            self.smoothing = 0.5 * max(self.lightest / weight, SMALLEST_SHARE)
        if self.rounds_since == 0:
            self.fresh_totals = totals

    def best(self) -> Stump | None:
        rule = self.rule
        np.multiply(rule.chance, self.scale, out=self.criterion.abstention)
        split = self.histograms.split(self.scale, self.criterion)
        if split is None:
            self.reason = reason_for(None)
            return None
        left = None
        if self.sets is not None:
            split, left = self.sets.best(
                split, self.histograms.add_up(), self.scale, self.criterion
            )
        totals = np.empty(len(self.scale), dtype=np.int64)
        values, shares = np.zeros((rule.n_outputs, N_LEAVES)), np.zeros(3)
        cumulated, place = self.cumulated, (split.feature, split.bin, split.missing_leaf)
        if left is not None:
            cumulated = self._cumulated_in(left_first(left), split.feature)
            place = 0, int(left.sum()) - 1, split.missing_leaf
        weight, self.smoothing, error, alpha, missing_leaf, perfect = stump_of(
            rule.kind, split.sums, self.scale, self.rate, self.smoothing, self.lightest, place,
            cumulated, values, shares, totals,
        )  # fmt: skip
        if is_chance(split.score, rule.chance, weight):
            self.reason = reason_for(split.score / weight)
            return None
        stump = Stump(
            split.feature, split.bin, missing_leaf, values, alpha, error, perfect,
            round_weights(rule, error, alpha, shares.tolist()),
            WeightTrail(totals, split.largest.copy()), left,
        )  # fmt: skip
        return stump if self.vote_loss is None else self._with_loss(stump, self.vote_loss)

    def _with_loss(self, stump: Stump, vote_loss: VoteLoss) -> Stump:
        assert stump.weights is not None
        Z = vote_loss.after(stump) / self.loss
        return stump._replace(weights=stump.weights._replace(Z=Z))

    def training_loss(self, stump: Stump) -> float:
        """Mean of exp(-margin), 1 for the outputs 0 (SAMME: of exp(-F_y))."""
        assert stump.weights is not None
        return self.loss * stump.weights.Z

    def follow(self, stump: Stump) -> None:
        trail: WeightTrail = stump.trail
        self._begin(trail.totals)
        self.loss = self.training_loss(stump)
        if self.vote_loss is not None:
            self.vote_loss.follow(stump)
        kept, worn = self._follow_set(stump) if stump.left is not None else follow_stump(
            self.rule.kind, stump.values, stump.alpha, stump[:3], self.cumulated, self.log_tables,
            self.fixed_tables, self.leaf_of, self.scale, self.ratio, self.logs, trail,
            self.fresh_totals,
        )  # fmt: skip
        self.used[stump.feature] = True
        self.rounds_since += 1
        if worn or self.rounds_since >= REQUANTISE_EVERY:
            self._requantise()
        else:
            self.histograms.rescale(stump.feature, self.leaf_of, self.ratio, kept)

    @property
    def n_groups(self) -> int:
        return len(self.scale)

    def n_skipped(self, rounds: Sequence[Stump]) -> int:
        if self.vote_loss is not None:  # which follows rows of its own
            return 0
        return n_before_requantising(self.rule.kind, self.cumulated, rounds)

    def skip(self, stump: Stump) -> None:
        self._begin(stump.trail.totals)
        self.loss = self.training_loss(stump)
        _, worn = follow_stump(
            self.rule.kind, stump.values, stump.alpha, stump[:3], self.cumulated, self.log_tables,
            self.fixed_tables, self.leaf_of, self.scale, self.ratio, self.logs, stump.trail,
            self.fresh_totals,
        )  # fmt: skip
        self.used[stump.feature] = True
        again = worn or self.rounds_since + 1 >= REQUANTISE_EVERY
        self.rounds_since = 0 if again else self.rounds_since + 1

    def _cumulated_in(self, order: np.ndarray, feature: int) -> np.ndarray:
        """Rows up to each code of one feature, its codes in another order: [class, 1, code]."""
        return np.cumsum(self.counts[:, feature, order], axis=1)[:, None, :]

    def _follow_set(self, stump: Stump) -> tuple[int, bool]:
        """`follow_stump` for a set of categories: codes in an order in which it is a threshold."""
        assert stump.left is not None
        order, feature = left_first(stump.left), stump.feature
        tables, fixed = (
            np.ascontiguousarray(a[:, feature, order])[:, None, :]
            for a in (self.log_tables, self.fixed_tables)
        )
        place, leaf_of = (0, int(stump.left.sum()) - 1, stump.missing_leaf), np.zeros_like(order)
        followed = follow_stump(
            self.rule.kind, stump.values, stump.alpha, place, self._cumulated_in(order, feature),
            tables, fixed, leaf_of, self.scale, self.ratio, self.logs, stump.trail,
            self.fresh_totals,
        )  # fmt: skip
        self.log_tables[:, feature, order] = tables[:, 0]
        self.fixed_tables[:, feature, order] = fixed[:, 0]
        self.leaf_of[order] = leaf_of
        return followed
