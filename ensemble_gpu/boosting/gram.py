"""The gram strategy: squared loss at a cost per round that does not depend on the rows.

Residuals are integers: r_i = rint((y_i - shift) / u) - sum of leaf values, each leaf value a
multiple of the quantum u. So are their sums S[f, b] = sum of w_i r_i over the rows with code b in
feature f, and a stump on feature j, which subtracts v_l from the residuals of leaf l, changes them
by an integer that only depends on how codes of j and f occur together:

    S[f, b] -= sum_l v_l C_jl[f, b],    C_jl[f, b] = weight of the rows in leaf l with code b in f

With the counts of pairs of codes, summed along j's codes, C_jl is one row of a table: a round costs
O(p bins). The table of a feature is made when the feature is chosen, as long as all tables fit
MEMORY bytes and it is worth what it costs; for a stump on a feature without one C_jl is added up
over the rows of its smaller leaf instead. Both are exact, so the model is the same, and no residual
is ever stored. Counts can be added: a fold's table is the sum of what the other folds hold out
(data/bins.py: PartBins). Where features are not drawn, many rounds are one call.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ensemble_gpu.boosting.blocks import BlockSize
from ensemble_gpu.boosting.strategy import one_by_one
from ensemble_gpu.data.bins import ONE, PartTables
from ensemble_gpu.data.pair_tables import SignedTables, counted, rows_by_code
from ensemble_gpu.kernels.host.gram import (
    NO_SPLIT,
    TOO_SMALL,
    Choice,
    Found,
    Sums,
    leaf_units,
    stump_rounds,
    subtract,
)
from ensemble_gpu.kernels.protocol import LEFT, RIGHT, Codes, Engine
from ensemble_gpu.learners.stump import Stump, StumpSearch

# |sum of w r| stays below 2^61: bits of the residuals and of the total weight.
SUM_BITS = 61
MOST_RESIDUAL_BITS = 40
WEIGHT_BITS = 36
# Nanoseconds, on one thread: to make a cell of a table, to count a pair of codes, to add up a cell
# of rows (a third of them are in the smaller leaf), and what a round costs besides.
TABLE_CELL, PAIR, ROW_CELL, ROUND = 1.0, 0.55, 0.13, 12_000.0
# Bytes for tables.
MEMORY = 2**30
REASONS = {
    NO_SPLIT: "no stump lowers the loss any further",
    TOO_SMALL: "what is left of the residuals is below their resolution",
}


@dataclass(frozen=True)
class IntegerTargets:
    """Targets y = shift + u (start + r): residuals r [outputs, rows] around the best constants."""

    residuals: Any
    start: np.ndarray
    shift: float
    quantum: float
    weights: Any | None
    total_weight: int

    @property
    def intercept(self) -> np.ndarray:
        return self.shift + self.quantum * self.start.astype(np.float64)


def integer_targets(
    y: Any, weights: Any | None, engine: Engine, *, intercept: bool = True
) -> IntegerTargets:
    """Round targets y [outputs, rows] to integers, as fine as their weighted sum allows.

    Without an `intercept` the residuals are those of the outputs 0.
    """
    where, xp, team = engine.where, engine.where.xp, engine.team
    total = team.count(y.shape[1] if weights is None else int(xp.sum(weights)))
    low, high = team.ends(float(xp.min(y)), float(xp.max(y)))
    shift = 0.5 * low + 0.5 * high if intercept else 0.0
    spread = max(high - shift, shift - low)
    bits = min(MOST_RESIDUAL_BITS, SUM_BITS - total.bit_length())
    quantum = math.ldexp(1.0, max(math.frexp(spread)[1] - bits, -1000))
    r = xp.astype(xp.round((y - shift) / quantum), xp.int64)
    weighted = r if weights is None else r * weights[None, :]
    sums = team.sum([int(xp.sum(weighted[k, :])) for k in range(y.shape[0])]).tolist()
    start = np.array([_nearest(s, total) if intercept else 0 for s in sums], dtype=np.int64)
    return IntegerTargets(r - where.put(start)[:, None], start, shift, quantum, weights, total)


def visits_before_table(codes: Codes, n: int, n_rounds: int) -> int:
    """Stumps on a feature that are added up over the rows before its table is made.

    None where the rounds, shared by all features, are worth a table; else so many as cost as much.
    `n` are the rows of all workers.
    """
    p, width = codes.n_features, codes.width
    table = TABLE_CELL * width * width * p + PAIR * n * p
    visit = ROW_CELL * n * p + ROUND
    return 0 if n_rounds * visit > p * table else int(table / visit)


def sharing_pays(codes: Codes, shared: PartTables) -> bool:
    """Whether to count the held-out rows for each table costs less than to count these rows."""
    return PAIR * (codes.n_rows - shared.n_held) > 2.0 * TABLE_CELL * (codes.width * codes.width)


def _nearest(a: int, b: int) -> int:
    """a / b rounded to the nearest integer, halves up; exact."""
    return (2 * a + b) // (2 * b)


class GramTrail(NamedTuple):
    """A round's leaf values in multiples of the quantum, and what they take from sum w r^2."""

    units: np.ndarray
    fall: float
    random_state: Any


class Gram:
    """The gram strategy: engine-independent but for the sums over rows."""

    def __init__(
        self,
        engine: Engine,
        codes: Codes,
        targets: IntegerTargets,
        search: StumpSearch,
        learning_rate: float,
        n_rounds: int,
        shared: PartTables | None = None,
    ) -> None:
        self.engine, self.codes, self.search = engine, codes, search
        self.rate, self.quantum, self.weights = learning_rate, targets.quantum, targets.weights
        self.wait = visits_before_table(codes, engine.team.count(codes.n_rows), n_rounds)
        self.intercept = targets.intercept
        xp = engine.where.xp
        r, w = targets.residuals, targets.weights
        weighted = r if w is None else r * w[None, :]
        self.S = np.ascontiguousarray(engine.sums(codes, weighted))
        self.W = np.ascontiguousarray(
            rows_by_code(codes) if w is None else engine.sums(codes, w[None, :])[0]
        )
        self.H = np.repeat(self.W[None], len(self.S), axis=0)
        squares = xp.astype(r, xp.float64) * xp.astype(weighted, xp.float64)
        of_all = engine.team.fsum(np.array([float(xp.sum(squares))]))
        self.squares = [of_all, float(targets.total_weight)]
        if shared is not None and sharing_pays(codes, shared):
            self.tables = shared.signed()
        else:
            self.tables = SignedTables(counted(engine, [codes], w, memory=MEMORY), ONE)
        self.visits = np.zeros(codes.n_features, dtype=np.int64)
        self.block = BlockSize()
        self.reason = ""

    def best(self) -> Stump | None:
        split = self.search.best(self.S, self.H, [])
        if split is None:
            self.reason = REASONS[NO_SPLIT]
            return None
        units = np.empty_like(split.S)
        fall = leaf_units(split.c, self.rate, split.S, split.H, units)
        if not units.any():
            self.reason = REASONS[TOO_SMALL]
            return None
        missing_leaf = self.search.missing_leaf(split)
        gain = split.gain * self.quantum * self.quantum
        return Stump(
            split.feature, split.bin, missing_leaf, units * self.quantum, self.rate, gain,
            trail=GramTrail(units, fall, self.search.random_state()),
        )  # fmt: skip

    def follow(self, stump: Stump) -> None:
        j, trail = stump.feature, stump.trail
        values = trail.units[:, [LEFT, RIGHT, stump.missing_leaf]]
        self._note(stump)
        missing = bool(self.search.has_missing[j])
        tables, signs = self.tables
        if self.visits[j] > self.wait and tables.has(j):
            subtract(self.S, self.W, tables.of(j), signs, stump.bin, missing, values)
        else:
            leaves = self._leaf_sums(j, stump.bin, missing)[None]
            subtract(self.S, self.W, leaves, ONE, 0, missing, values)
        self.search.restore(trail.random_state)

    def rounds(self, most: int) -> Iterator[Stump]:
        """Best, follow, best, ... of up to `most` rounds, which are found some at a time."""
        if self.search.draws:
            yield from one_by_one(self, most)
            return
        while most > 0:
            with self.block.timed():
                found, why = self._find(min(self.block.rounds, most))
            most -= len(found)
            for stump in found[:-1]:
                yield stump
                self._note(stump)
            yield from found[-1:]
            if why:
                self.reason = REASONS[why]
                return
            if most > 0:
                self.follow(found[-1])

    def _find(self, n: int) -> tuple[list[Stump], int]:
        """Up to n rounds, of which all but the last are followed; and why they ended."""
        search, quantum = self.search, self.quantum
        constraints, found = search.constraints, Found.room(n, len(self.S))
        choice = Choice(
            search.n_thresholds, constraints.learn_missing, constraints.votes, constraints.signs,
            search.has_missing, search.rows_up_to,
        )  # fmt: skip
        sums = Sums(self.S, self.H, self.W)
        n, why = stump_rounds(sums, choice, self.rate, self.tables.by_slot, n, found)
        values, gains = found.units[:n] * quantum, found.numbers[:n, 0] * quantum * quantum
        return [
            Stump(
                feature, last_bin, missing_leaf, v, self.rate, gain,
                trail=GramTrail(units, fall, None),
            )
            for (feature, last_bin, missing_leaf), v, gain, units, fall in zip(
                found.places[:n].tolist(), values, gains.tolist(), found.units,
                found.numbers[:n, 1].tolist(), strict=False,
            )
        ], why  # fmt: skip

    def _note(self, stump: Stump) -> None:
        self.visits[stump.feature] += 1
        self.squares[0] -= stump.trail.fall

    def training_loss(self, stump: Stump) -> float:
        left = self.squares[0] - stump.trail.fall
        return left / self.squares[1] * self.quantum * self.quantum

    def _leaf_sums(self, j: int, last_bin: int, missing: bool) -> np.ndarray:
        """C_jl of the left leaf and of missing values, [2, feature, code], from the rows."""
        last, rows = self.codes.width - 1, self.search.rows_up_to[j]
        absent = self._sums_of(j, last, last) if missing else np.zeros_like(self.W)
        if 2 * rows[last_bin] <= rows[-1]:
            left = self._sums_of(j, 0, last_bin)
        else:
            left = self.W - absent - self._sums_of(j, last_bin + 1, last - 1)
        return np.stack([left, absent])

    def _sums_of(self, j: int, first: int, last: int) -> np.ndarray:
        if first > last:
            return np.zeros_like(self.W)
        return self.engine.code_sums(self.codes, j, first, last, self.weights)
