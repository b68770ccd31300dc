"""Rounds of AdaBoost with stumps as one compiled call: weights follow, a stump is found, and again.

The steps and their order are those of boosting/rescale.py, which runs them one by one on any
engine; a small fit would spend more time between the steps than in them. Weights, sums and tables
stay where they are from call to call.

Arrays travel as plain tuples (kernels/cpu/histogram.py):

    rows     codes, tiles, rows, largest, sums, fixed-point logarithms of the first weights, powers
             of two, columns of codes and which of them have been made
    scoring  criterion, spaces, blocks, found (kernels/cpu/score.py)
    weights  what `move_weights` moves (kernels/host/weights.py), then numbers and counters
    records  of rounds: places, values, numbers, trails (kernels/stump_rounds.py)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.histogram import add_all, rescale_all
from ensemble_gpu.kernels.cpu.layouts import made_when_used
from ensemble_gpu.kernels.cpu.requantise import requantise_all
from ensemble_gpu.kernels.cpu.score import best_split
from ensemble_gpu.kernels.fixedpoint import LOWEST_EXPONENT
from ensemble_gpu.kernels.host.weights import (
    SMALLEST_SHARE,
    first_smoothing,
    follow_stump,
    is_chance,
    move_weights,
    solve_stump,
)
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import N_LEAVES, Codes, Criterion, Layout, WeightRule
from ensemble_gpu.kernels.stump_rounds import NO_GAIN, NO_SPLIT, StumpRecords

# Of `numbers` and of `counters`.
SMOOTHING, LIGHTEST, RATE, CHANCE = range(4)
STARTED, SINCE, EVERY, BITS, CELLS = range(5)


@inner
def _requantise(crew, rows, weights):
    """All q and sums anew; scales are powers of two, the highest is 1."""
    codes, tiles, (q, _, _, _), largest, sums, start_log, powers, _, _ = rows
    _, _, fixed, used, _, scale, _, _, _, numbers, counters = weights
    features = np.empty(used.shape[0], dtype=np.int64)
    n = 0
    for f in range(used.shape[0]):
        features[n] = f
        n += used[f]
    exponent = np.empty(scale.shape[0], dtype=np.int64)
    exponent[:] = LOWEST_EXPONENT
    where = tiles[2], tiles[3]
    requantise_all(crew, codes, where, fixed, features[:n], start_log, powers, exponent, q, largest)
    for g in range(sums.shape[1]):
        for tile in range(sums.shape[2]):
            for lane in range(8):
                for code in range(sums.shape[4]):
                    sums[0, g, tile, lane, code] = 0
    add_all(crew, tiles, q, sums)
    top = exponent[0]
    for g in range(1, scale.shape[0]):
        top = max(top, exponent[g])
    for g in range(scale.shape[0]):
        scale[g] = math.ldexp(1.0, exponent[g] - top)
    if counters[STARTED] == 0:
        numbers[LIGHTEST] = math.ldexp(numbers[LIGHTEST], counters[BITS] - top)
        counters[STARTED] = 1
    counters[SINCE] = 0
    counters[CELLS] += q.shape[0] * q.shape[1] * used.shape[0]


@inner
def _column(rows, feature):
    """The feature's codes side by side: a round reads one code a row, not eight."""
    codes, columns, made = rows[0], rows[7], rows[8]
    column = columns[feature]
    if not made[feature]:
        tile, lane = codes[feature // 8], feature % 8
        for i in range(column.shape[0]):
            column[i] = tile[i, lane]
        made[feature] = True
    return column


@inner
def _follow(rows, kind, weights, records, t):
    """Scales and tables after round t of the records; the leaf kept, and whether to requantise."""
    places, values, numbers_of, trails = records
    cumulated, tables, fixed, used, leaf_of, scale, ratio, logs, fresh, numbers, counters = weights
    totals, most = trails[t, 0], trails[t, 1]
    if counters[SINCE] == 0:
        for g in range(scale.shape[0]):
            fresh[g] = totals[g]
    if math.isnan(numbers[SMOOTHING]):
        weight = 0.0
        for g in range(scale.shape[0]):
            weight += scale[g] * totals[g]
        numbers[SMOOTHING] = first_smoothing(numbers[LIGHTEST], weight)
    place = places[t, 0], places[t, 1], places[t, 2]
    kept, worn = move_weights(
        kind, values[t], numbers_of[t, 0], place, cumulated, tables, fixed, leaf_of, scale, ratio,
        logs, (totals, most), fresh,
    )  # fmt: skip
    used[place[0]] = True
    counters[SINCE] += 1
    return kept, worn or counters[SINCE] >= counters[EVERY]


@inner
def _rescale(crew, rows, weights, feature, kept):
    """q and sums of the rows outside the leaf that keeps its weights."""
    _, _, _, used, leaf_of, _, ratio, _, _, _, counters = weights
    _, tiles, listed, largest, sums, _, _, _, _ = rows
    rescale_all(crew, tiles, listed, (_column(rows, feature), leaf_of, kept, ratio, largest), sums)
    touched = np.int64(0)
    for part in range(listed[3].shape[0]):
        touched += listed[3][part]
    counters[CELLS] += listed[0].shape[1] + used.shape[0] * touched


@inner
def _find(crew, rows, scoring, weights, records, t):
    """Record t: the best stump; (0 or why there is none, its score over that of all weights)."""
    criterion, spaces, blocks, found = scoring
    kind, abstention = criterion[1], criterion[2]
    cumulated, scale, numbers = weights[0], weights[5], weights[9]
    places, values, numbers_of, trails = records
    for g in range(scale.shape[0]):
        abstention[g] = numbers[CHANCE] * scale[g]
    score = best_split(crew, rows[4][0], scale, criterion, spaces, blocks, found)
    if score == math.inf:
        return NO_SPLIT, 0.0
    _, leaf_sums, record, _, top = found
    totals, most = trails[t, 0], trails[t, 1]
    for g in range(scale.shape[0]):
        most[g] = top[g]
    weight, smoothing, error, alpha, missing_leaf, perfect = solve_stump(
        kind, leaf_sums, scale, numbers[RATE], numbers[SMOOTHING], numbers[LIGHTEST],
        (record[0], record[1], record[2]), cumulated, values[t], numbers_of[t, 2:], totals,
    )  # fmt: skip
    numbers[SMOOTHING] = smoothing
    if is_chance(score, numbers[CHANCE], weight):
        return NO_GAIN, score / weight
    places[t, 0], places[t, 1], places[t, 2], places[t, 3] = (
        record[0], record[1], missing_leaf, perfect,
    )  # fmt: skip
    numbers_of[t, 0], numbers_of[t, 1] = alpha, error
    return 0, 0.0


@kernel
def rounds(crew, rows, scoring, weights, records, follows, n):
    """Up to n rounds, into records 1 ... n; `follows`: record 0 is followed first.

    All are followed but the last. A perfect stump is the last. Returns how many were found, 0 or
    why there is not another, and its score.
    """
    t = 1 if weights[10][STARTED] else 0
    while True:
        # Step 0 of a fit only quantises the first weights; step n + 1 only follows.
        kept, requantises, follows_now = np.int64(0), t == 0, t > 1 or (t == 1 and follows)
        if follows_now:
            kept, requantises = _follow(rows, scoring[0][1], weights, records, t - 1)
        if requantises:
            _requantise(crew, rows, weights)
        elif follows_now:
            _rescale(crew, rows, weights, records[0][t - 1, 0], kept)
        if t > n:
            return 0, 0, 0.0
        if t > 0:
            why, score = _find(crew, rows, scoring, weights, records, t)
            if why != 0:
                return t - 1, why, score
            if t == n or records[0][t, 3]:
                return t, 0, 0.0
        t += 1


class CpuRounds:
    """Rounds on the weights of one `CpuHistograms` (kernels/stump_rounds.py)."""

    def __init__(
        self, histograms: Any, codes: Codes, layout: Layout, criterion: Criterion, rule: WeightRule
    ) -> None:
        p, width, groups = codes.n_features, codes.width, layout.n_groups
        self.n_groups, self.n_outputs = groups, rule.n_outputs
        self.pace, self.run = histograms.pace, histograms.all_threads
        self.scale = np.ones(groups)
        self.numbers = np.array([math.nan, rule.lightest, rule.learning_rate, rule.chance])
        self.counters = np.array([0, 0, rule.requantise_every, layout.quantum_bits, 0])
        asked = (
            criterion.n_thresholds, criterion.kind, np.zeros(groups), criterion.learn_missing,
        )  # fmt: skip
        self.scoring = asked, histograms.spaces, histograms.blocks, histograms.found
        totals = histograms.totals
        self.rows = (
            codes.data, totals.tiles, histograms.rows, histograms.largest, totals.sums,
            histograms.log_weights, histograms.powers, *made_when_used(codes),
        )  # fmt: skip
        self.weights = (
            np.cumsum(codes.counts, axis=2), np.zeros((groups, p, width)),
            np.zeros((groups, p, width), dtype=np.int64), np.zeros(p, dtype=np.bool_),
            np.zeros(width, dtype=np.int64), self.scale, np.ones((groups, N_LEAVES)),
            np.zeros((groups, N_LEAVES)), np.zeros(groups, dtype=np.int64), self.numbers,
            self.counters,
        )  # fmt: skip

    @property
    def cumulated(self) -> np.ndarray:
        return self.weights[0]

    def skip(
        self, place: tuple[int, int, int], values: np.ndarray, alpha: float,
        trail: tuple[np.ndarray, np.ndarray],
    ) -> None:  # fmt: skip
        """`_follow` alone; requantising, where it is due, is left to a later round."""
        (cumulated, tables, fixed, used, leaf_of, scale, ratio, logs, fresh, numbers,
         counters) = self.weights  # fmt: skip
        if not counters[STARTED]:
            self(self.records(1), False, 0)
        totals, kind = trail[0], self.scoring[0][1]
        if counters[SINCE] == 0:
            fresh[:] = totals
        if math.isnan(numbers[SMOOTHING]):
            weight = 0.0
            for share, total in zip(scale.tolist(), totals.tolist(), strict=True):
                weight += share * total
            numbers[SMOOTHING] = 0.5 * max(numbers[LIGHTEST] / weight, SMALLEST_SHARE)
        _, worn = follow_stump(
            kind, values, alpha, place, cumulated, tables, fixed, leaf_of, scale, ratio, logs,
            trail, fresh,
        )  # fmt: skip
        used[place[0]] = True
        again = worn or counters[SINCE] + 1 >= counters[EVERY]
        counters[SINCE] = 0 if again else counters[SINCE] + 1

    def records(self, n: int) -> StumpRecords:
        return StumpRecords(
            np.zeros((n, 4), dtype=np.int64), np.zeros((n, self.n_outputs, N_LEAVES)),
            np.zeros((n, 5)), np.zeros((n, 2, self.n_groups), dtype=np.int64),
        )  # fmt: skip

    def __call__(self, records: StumpRecords, follows: bool, n: int) -> tuple[int, int, float]:
        before = int(self.counters[CELLS])
        return self.pace.call(
            self.run, lambda: max(1, int(self.counters[CELLS]) - before), rounds, self.rows,
            self.scoring, self.weights, tuple(records), follows, n,
        )  # fmt: skip
