"""Sums of residuals updated from counts of pairs of codes (boosting/gram.py has the formula).

Tables [part, c, f, b] count the rows of a part with a code up to c in a stump's feature and code b
in feature f, the last c those with a missing value; signs[part] says which parts count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.host.gain import search
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT

# Why rounds ended: they did not; nothing gains; values are below the resolution of the residuals.
GO_ON, NO_SPLIT, TOO_SMALL = 0, 1, 2


class Sums(NamedTuple):
    """S, H [output, feature, code] of residuals and weights, and the weights W [feature, code]."""

    S: np.ndarray
    H: np.ndarray
    W: np.ndarray


class Choice(NamedTuple):
    """Which stumps are allowed (kernels/host/gain.py), and where missing values go.

    `rows_up_to[f, c]` are the rows with a code <= c, the last all that are not missing.
    """

    n_thresholds: np.ndarray
    learn: bool
    votes: bool
    signs: np.ndarray
    has_missing: np.ndarray
    rows_up_to: np.ndarray


class FeatureTables(NamedTuple):
    """The tables of feature j are space[slots[j]]; slots[j] < 0: there are none."""

    space: np.ndarray
    slots: np.ndarray
    signs: np.ndarray


class Found(NamedTuple):
    """Of each round (feature, bin, missing leaf); values in multiples of the quantum; gain, fall.

    The fall is what the values take from the sum of w r^2.
    """

    places: np.ndarray
    units: np.ndarray
    numbers: np.ndarray

    @classmethod
    def room(cls, n: int, n_outputs: int) -> Found:
        return cls(
            np.empty((n, 3), dtype=np.int64),
            np.empty((n, n_outputs, N_LEAVES), dtype=np.int64),
            np.empty((n, 2)),
        )


class StumpsByCode(NamedTuple):
    """Rounds: feature, last code of the left leaf, values of left, right and missing."""

    feature: np.ndarray
    last: np.ndarray
    values: np.ndarray


@kernel
def leaf_units(c, rate, S, H, units):
    """units = rint(nu c); returns by how much they lower the sum of w r^2."""
    fall = 0.0
    for k in range(c.shape[0]):
        for leaf in range(c.shape[1]):
            v = np.rint(rate * c[k, leaf])
            units[k, leaf] = np.int64(v)
            fall += v * (2.0 * float(S[k, leaf]) - v * float(H[k, leaf]))
    return fall


@kernel
def accumulate(table, out):
    """out[c] = sum of table[0 ... c], but for the last, the missing code, which stands alone."""
    last = table.shape[0] - 1
    for c in range(table.shape[0]):
        for f in range(table.shape[1]):
            here, into = table[c, f], out[c, f]
            if 0 < c < last:
                before = out[c - 1, f]
                for b in range(table.shape[2]):
                    into[b] = before[b] + here[b]
            else:
                for b in range(table.shape[2]):
                    into[b] = here[b]


@inner
def _add_up(tables, signs, c, f, total):
    """total[b] = sum over parts of sign times tables[part, c, f, b]."""
    for b in range(total.shape[0]):
        total[b] = 0
    for part in range(tables.shape[0]):
        row = tables[part, c, f]
        if signs[part] == 1:
            for b in range(total.shape[0]):
                total[b] += row[b]
        elif signs[part] != 0:
            for b in range(total.shape[0]):
                total[b] += signs[part] * row[b]


@kernel
def subtract(S, W, tables, signs, last_bin, missing, values):
    """S[k, f, b] -= values[k, leaf] times the weight of the leaf's rows with code b in f.

    values[k] are those of the left leaf, of the right one, and of missing values.
    """
    p, width = W.shape
    below, nowhere = np.empty(width, dtype=np.int64), np.empty(width, dtype=np.int64)
    for f in range(p):
        whole = W[f]
        _add_up(tables, signs, last_bin, f, below)
        if missing:
            _add_up(tables, signs, tables.shape[1] - 1, f, nowhere)
        for k in range(S.shape[0]):
            left, right, apart, into = values[k, 0], values[k, 1], values[k, 2], S[k, f]
            if missing:
                for b in range(width):
                    rest = whole[b] - below[b] - nowhere[b]
                    into[b] -= left * below[b] + right * rest + apart * nowhere[b]
            else:
                for b in range(width):
                    into[b] -= left * below[b] + right * (whole[b] - below[b])


@inner
def _missing_leaf(choice, f, t, leaf):
    """Where missing values go; to the fuller side if there were none to learn from."""
    if leaf == ABSTAIN or choice.has_missing[f]:
        return leaf
    rows = choice.rows_up_to[f]
    return LEFT if 2 * rows[t] >= rows[rows.shape[0] - 1] else RIGHT


@kernel
def stump_rounds(sums, choice, rate, tables, n, found):
    """Best, follow, best, ... of up to n stumps; the last is not followed. How many, and why.

    Ends where the next stump to be followed has no table, which is no reason to stop.
    """
    S, H, W = sums.S, sums.H, sums.W
    n_outputs = S.shape[0]
    gains, highest = np.empty((6, S.shape[2])), np.empty(S.shape[1])
    record = np.zeros(3, dtype=np.int64)
    leaves = np.empty((2, n_outputs, N_LEAVES), dtype=np.int64)
    c, values = np.empty((n_outputs, N_LEAVES)), np.empty((n_outputs, 3), dtype=np.int64)
    for t in range(n):
        leaves.fill(0)
        c.fill(0.0)
        gain = search(
            S, H, choice.n_thresholds, choice.learn, choice.votes, choice.signs, gains, highest,
            record, leaves, c,
        )  # fmt: skip
        if gain <= 0.0:
            return t, NO_SPLIT
        units = found.units[t]
        fall = leaf_units(c, rate, leaves[0], leaves[1], units)
        if not units.any():
            return t, TOO_SMALL
        f, last_bin = record[0], record[1]
        leaf = _missing_leaf(choice, f, last_bin, record[2])
        found.places[t, 0], found.places[t, 1], found.places[t, 2] = f, last_bin, leaf
        found.numbers[t, 0], found.numbers[t, 1] = gain, fall
        slot = tables.slots[f]
        if slot < 0 or t + 1 == n:
            return t + 1, GO_ON
        for k in range(n_outputs):
            values[k, 0], values[k, 1] = units[k, LEFT], units[k, RIGHT]
            values[k, 2] = units[k, leaf]
        subtract(S, W, tables.space[slot], tables.signs, last_bin, choice.has_missing[f], values)
    return 0, GO_ON


@kernel
def squares_left(S, W, tables, stumps, left, after):
    """after[t] = sum of r^2 after stump t, from `left` before the first; the sums S follow.

    A stump takes sum_l v_l (2 S_l - v_l W_l) from it, with the sums of its leaves l.
    """
    absent = W.shape[1] - 1
    for t in range(stumps.feature.shape[0]):
        j, last, v = stumps.feature[t], stumps.last[t], stumps.values[t]
        for leaf in range(3):
            first = 0 if leaf == 0 else last + 1 if leaf == 1 else absent
            stop = last + 1 if leaf == 0 else absent if leaf == 1 else absent + 1
            s, w = 0.0, 0.0
            for b in range(first, stop):
                s += S[0, j, b]
                w += W[j, b]
            left -= v[0, leaf] * (2.0 * s - v[0, leaf] * w)
        after[t] = left
        slot = tables.slots[j]
        subtract(S, W, tables.space[slot], tables.signs, last, W[j, absent] > 0, v)
