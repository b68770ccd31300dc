"""The textbook's RankBoost: every stump by its exact Z (Freund, Iyer, Schapire & Singer 2003).

D(i, j) = w_ij e^-(F_i - F_j) / sum are the weights of the pairs, i to be ranked above j. A stump
answers h = 1 right of its threshold, 0 left of it, and with

    W+ = D(h_i > h_j),    W- = D(h_i < h_j),    W0 = 1 - W+ - W-

adding alpha h multiplies the loss R by Z = W0 + W+ e^-alpha + W- e^alpha, least for
alpha = 1/2 ln(W+ / W-): Z = W0 + 2 sqrt(W+ W-) = 1 - (sqrt W+ - sqrt W-)^2. So R = product of Z_t,
and the share of pairs in the wrong order is at most R.

Pairs of queries. D is a product within a query, so a threshold needs the sums of e^-F and e^F by
level on its two sides: W+ = sum over queries, over levels s, of (e^-F of s, right) (e^F below s,
left), in one walk up the levels. Rows pass from right to left in order of their codes: a round is
O(rows x levels x features), and never looks at pairs (`Engine.ordered_weights`; engines without a
kernel of their own fill a table of queries, levels and codes for every feature).
Given pairs. A pair with codes c_i > c_j is in W+ for thresholds c_j ... c_i - 1: a round is
O(pairs x features).

Smoothing: alpha = 1/2 ln((W+ + s) / (W- + s)), s half the weight of one pair before round 1, so
that a stump that orders all pairs has a finite alpha; Z is that of the step that was taken,
nu alpha.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from ensemble_gpu.arrays.means import weighted_mean
from ensemble_gpu.arrays.namespace import Where
from ensemble_gpu.boosting.gradients import VALUE_BITS
from ensemble_gpu.boosting.integers import unit_of
from ensemble_gpu.boosting.plans import DescentParameters
from ensemble_gpu.boosting.ranking import QueryMeanLoss
from ensemble_gpu.boosting.strategy import Plan
from ensemble_gpu.data.integers import weight_of_one
from ensemble_gpu.data.matrix import BinnedMatrix
from ensemble_gpu.data.rows import Binned
from ensemble_gpu.kernels.host.levels import all_pairs
from ensemble_gpu.kernels.host.scalar import exp, log
from ensemble_gpu.kernels.protocol import LEFT, N_LEAVES, RIGHT, TIE, Cut, Engine
from ensemble_gpu.kernels.queries import PairWeights
from ensemble_gpu.learners.protocol import RoundWeights
from ensemble_gpu.learners.stump import Stump, StumpLeaves, StumpTables
from ensemble_gpu.losses.by_query import QueryExponential
from ensemble_gpu.losses.pairwise import PairExponential, PairLoss, integers
from ensemble_gpu.model.link import IDENTITY

# Bits of the sum of all pairs' weights.
SUM_BITS = 52
# A gain of this share of the weight is a rounding error.
NOTHING = 2.0**-40


class PairSums(Protocol):
    """Weights of pairs by threshold, as integers."""

    half_a_pair: float  # as a share of the weight before round 1

    def __call__(self, F: Any) -> tuple[np.ndarray, int]:
        """[missing right, right or wrong, feature, bin], and the weight of all pairs."""
        ...


class QuerySums:
    """Of the pairs of queries."""

    def __init__(self, engine: Engine, matrix: BinnedMatrix, loss: QueryExponential) -> None:
        self.engine, self.codes, self.loss = engine, matrix.codes, loss
        self.has_missing = matrix.codes.counts[:, :, -1].sum(axis=0) > 0
        queries = loss.queries
        rows, one = float(queries.n_rows), 1.0
        if queries.weights is not None:
            weights = queries.where.host(queries.weights)
            rows, one = float(weights.sum()), weight_of_one(weights.astype(np.float64))
        self.half_a_pair = 0.5 * one * one / (rows / (2.0 * float(queries.factor.max())))

    def __call__(self, F: Any) -> tuple[np.ndarray, int]:
        queries, terms = self.loss.queries, self.loss.terms(F)
        rise = 1.0 / terms.e
        every = np.empty(queries.n_queries)
        parts = terms.B, terms.A, terms.below, rise
        all_pairs(queries.first, *parts, every)
        every = every * queries.factor
        unit = unit_of(math.fsum(every.tolist()), SUM_BITS)
        weights = PairWeights(queries, terms.up, terms.down, *parts, queries.factor / unit)
        found = self.engine.ordered_weights(weights, self.codes, self.has_missing)
        found[0, :, ~self.has_missing] = found[1, :, ~self.has_missing]
        return found, int(np.rint(every / unit).astype(np.int64).sum())


class GivenSums:
    """Of pairs that were given."""

    def __init__(self, engine: Engine, matrix: BinnedMatrix, loss: PairExponential) -> None:
        self.engine, self.codes, self.loss = engine, matrix.codes, loss
        self.has_missing = matrix.codes.counts[:, :, -1].sum(axis=0) > 0
        pairs = loss.pairs
        one = weight_of_one(pairs.where.host(pairs.weights).astype(np.float64))
        self.half_a_pair = 0.5 * one / float(pairs.total)

    def __call__(self, F: Any) -> tuple[np.ndarray, int]:
        engine, codes, pairs = self.engine, self.codes, self.loss.pairs
        where, xp, width = pairs.where, pairs.where.xp, codes.width
        q = integers(self.loss.terms(F)[0], pairs.bits, where) * pairs.weights
        zero = xp.zeros_like(q)
        out = np.zeros((2, 2, codes.n_features, width - 1), dtype=np.int64)
        for f in range(codes.n_features):
            column = xp.astype(engine.column(codes, f), xp.int64)
            for side in (0, 1) if self.has_missing[f] else (1,):
                own = column if side else xp.where(column == width - 1, 0 * column, column)
                above, below = xp.take(own, pairs.upper), xp.take(own, pairs.lower)
                values = xp.stack(
                    [xp.where(above > below, q, zero), xp.where(above < below, q, zero)], axis=1
                )
                begun = engine.sums_by(xp.minimum(above, below), values, width)
                ended = engine.sums_by(xp.maximum(above, below), values, width)
                out[side, :, f] = np.cumsum(begun - ended, axis=0)[:-1].T
            if not self.has_missing[f]:
                out[0, :, f] = out[1, :, f]
        return out, int(xp.sum(q))


class RankBoost:
    """The strategy: stumps by Z, F follows."""

    def __init__(
        self, engine: Engine, matrix: BinnedMatrix, sums: PairSums, F: Any, rate: float, loss: float
    ) -> None:
        self.engine, self.matrix, self.sums = engine, matrix, sums
        self.F, self.rate, self.loss = F, rate, loss
        self.quantum = 2.0**-VALUE_BITS
        self.intercept = np.zeros(1)
        self.n_thresholds = matrix.n_thresholds(True)
        counts = matrix.codes.counts.sum(axis=0)
        self.rows_up_to = np.cumsum(counts[:, :-1], axis=1)
        self.has_missing = counts[:, -1] > 0
        self.reason = ""

    def best(self) -> Stump | None:
        """The first stump, in order of feature, bin, missing left before right, of least Z."""
        found, total = self.sums(self.F[0, :])
        right, wrong = np.maximum(found[:, 0], 0), np.maximum(found[:, 1], 0)
        bins = np.arange(right.shape[2])
        allowed = (bins[None, :] < self.n_thresholds[:, None])[None, :, :]
        gain = (np.sqrt(right.astype(np.float64)) - np.sqrt(wrong.astype(np.float64))) ** 2
        gain = np.where(allowed, gain, 0.0)
        top = float(gain.max()) if gain.size else 0.0
        if not top > NOTHING * total:
            self.reason = "no stump orders pairs better than chance"
            return None
        in_order = np.moveaxis(gain, 0, 2)  # [feature, bin, side]
        first = int(np.argmax((in_order * TIE >= top).reshape(-1)))
        feature, bin_, side = np.unravel_index(first, in_order.shape)
        shares = right[side, feature, bin_] / total, wrong[side, feature, bin_] / total
        return self._stump(int(feature), int(bin_), int(side), *shares)

    def _stump(self, feature: int, bin_: int, side: int, right: float, wrong: float) -> Stump:
        s = self.sums.half_a_pair
        alpha = self.rate * (0.5 * log((right + s) / (wrong + s)))
        alpha = float(np.rint(alpha / self.quantum)) * self.quantum
        rest = max(0.0, 1.0 - (right + wrong))
        Z = rest + (right * exp(-alpha) + wrong * exp(alpha))
        values = np.zeros((1, N_LEAVES))
        values[0, RIGHT] = alpha
        missing_leaf = (LEFT, RIGHT)[side]
        if not self.has_missing[feature]:
            left = self.rows_up_to[feature, bin_]
            missing_leaf = LEFT if 2 * left >= self.rows_up_to[feature, -1] else RIGHT
        weights = RoundWeights(rest, right, wrong, Z)
        return Stump(feature, bin_, missing_leaf, values, alpha, Z, weights=weights)

    def follow(self, round_: Stump) -> None:
        codes = self.matrix.codes
        cut = Cut(round_.bin, codes.width - 1, round_.missing_leaf)
        leaves = StumpLeaves(self.engine, self.engine.column(codes, round_.feature), cut)
        self.F = leaves.moved(self.F, slice(0, codes.n_rows), round_.values)
        self.loss = self.training_loss(round_)

    def training_loss(self, round_: Stump) -> float:
        assert round_.weights is not None
        return self.loss * round_.weights.Z


def worth_of_Z(alpha: np.ndarray, error: np.ndarray) -> np.ndarray:
    """What a round is worth: -ln Z."""
    return -np.log(error)


def rankboost_plan(
    binned: Binned, where: Where, loss: PairLoss, descent: DescentParameters
) -> Plan:
    """RankBoost on binned rows."""
    engine, matrix = binned.engine, binned.matrix
    xp = engine.where.xp
    loss = replace(loss, exp=engine.exp)
    sums: PairSums
    if isinstance(loss, QueryExponential):
        sums = QuerySums(engine, matrix, loss)
    else:
        assert isinstance(loss, PairExponential)
        sums = GivenSums(engine, matrix, loss)
    F = engine.where.zeros((1, binned.n_rows), xp.float64)
    start = 1.0
    if binned.offset is not None:
        quantum = 2.0**-VALUE_BITS
        F = xp.round(xp.permute_dims(binned.offset, (1, 0)) / quantum) * quantum
        value = loss.value(binned.target, F[0, :])
        start = weighted_mean(value, binned.weights, engine.where)
    strategy = RankBoost(engine, matrix, sums, F, descent.learning_rate, start)
    return Plan(
        strategy, StumpTables(matrix, worth_of_Z), np.zeros(1), np.zeros(1), IDENTITY,
        QueryMeanLoss("exponential", where, 1), True, binned,
    )  # fmt: skip
