"""Rescaled weights between two rounds: scales, tables and totals, the same for every engine."""

from __future__ import annotations

import math

import numpy as np

from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.host.scalar import exp
from ensemble_gpu.kernels.jit import kernel
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT

# A group whose sum of q has fallen to this share is requantised: its resolution is wearing thin.
WORN_SHARE = 0.125
Q_LIMIT = fixedpoint.Q_LIMIT
PER_NAT = fixedpoint.INV_LN2 * fixedpoint.UNIT


@kernel
def count_leaves(cumulated, feature, last_bin, missing_leaf, rows):
    """rows[class, leaf] of a split, unweighted; returns whether it is perfect.

    Perfect: each leaf holds one class at most and nobody abstains. Counted in rows, because a
    row whose weight has fallen to q = 0 is still there.
    """
    width = cumulated.shape[2]
    perfect = True
    for c in range(rows.shape[0]):
        for leaf in range(N_LEAVES):
            rows[c, leaf] = 0
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


@kernel
def fuller_side(rows):
    """The leaf, LEFT or RIGHT, with more rows; LEFT where they are equal."""
    difference = 0
    for c in range(rows.shape[0]):
        difference += rows[c, LEFT] - rows[c, RIGHT]
    return LEFT if difference >= 0 else RIGHT


@kernel
def remember(tables, fixed, feature, last_bin, missing_leaf, logs, leaf_of):
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


@kernel
def fold(logs, rows, scale, ratio):
    """Fold the factor of the leaf with the most rows into the scales; returns that leaf.

    ratio[g, leaf] is what the other leaves' weights are multiplied by. Scales are brought
    back to a maximum in [1/2, 1) by an exact power of two.
    """
    kept, most = 0, -1
    for leaf in range(N_LEAVES):
        count = 0
        for c in range(rows.shape[0]):
            count += rows[c, leaf]
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


@kernel
def worn(largest, ratio, totals, fresh_totals):
    """Whether a group's q would overflow, or its sum has fallen to a small share."""
    for g in range(totals.shape[0]):
        highest = max(ratio[g, LEFT], ratio[g, RIGHT], ratio[g, ABSTAIN])
        if largest[g] * highest > Q_LIMIT or totals[g] < WORN_SHARE * fresh_totals[g]:
            return True
    return False


@kernel
def weigh(sums, scale, totals):
    """totals[g] = sum of sums[g, leaf]; returns the weight of all groups."""
    weight = 0.0
    for g in range(sums.shape[0]):
        total = np.int64(0)
        for leaf in range(sums.shape[1]):
            total += sums[g, leaf]
        totals[g] = total
        weight += scale[g] * total
    return weight
