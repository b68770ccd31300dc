"""Rescaled weights between two rounds: scales, tables and totals, the same for every engine."""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from ensemble_gpu.kernels import fixedpoint
from ensemble_gpu.kernels.host.adaboost import log_factors, solve
from ensemble_gpu.kernels.host.scalar import exp
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.protocol import ABSTAIN, LEFT, N_LEAVES, RIGHT

# A group whose sum of q has fallen to this share is requantised: its resolution is wearing thin.
WORN_SHARE = 0.125
# Smoothing never assumes more than this many rows: leaf values stay below 1/2 ln(2e9) = 10.7.
SMALLEST_SHARE = 1e-9
# A split whose score is within this share of chance improves nothing.
NO_GAIN = 1e-10
Q_LIMIT = fixedpoint.Q_LIMIT
PER_NAT = fixedpoint.INV_LN2 * fixedpoint.UNIT


@inner
def _rows_of(cumulated, c, feature, last_bin):
    """Rows of class c on the left and on the right of a split, and those that are missing."""
    along, width = cumulated[c, feature], cumulated.shape[2]
    return (
        along[last_bin], along[width - 2] - along[last_bin], along[width - 1] - along[width - 2],
    )  # fmt: skip


@inner
def _look_at_leaves(cumulated, feature, last_bin, missing_leaf):
    """(where missing values go, whether the split is perfect), counted in rows, unweighted.

    Missing values of later data go to the fuller side, if there were none to learn a side from.
    Perfect: each leaf holds one class at most and no row abstains. A row whose weight has fallen to
    q = 0 is still there.
    """
    n_left, n_right, n_missing = 0, 0, 0
    classes_left, classes_right = 0, 0
    for c in range(cumulated.shape[0]):
        left, right, missing = _rows_of(cumulated, c, feature, last_bin)
        n_left, n_right, n_missing = n_left + left, n_right + right, n_missing + missing
        classes_left += left + (missing if missing_leaf == LEFT else 0) > 0
        classes_right += right + (missing if missing_leaf == RIGHT else 0) > 0
    perfect = classes_left <= 1 and classes_right <= 1
    if missing_leaf == ABSTAIN:
        return ABSTAIN, perfect and n_missing == 0
    if n_missing == 0:
        missing_leaf = LEFT if n_left >= n_right else RIGHT
    return missing_leaf, perfect


@inner
def first_smoothing(lightest, weight):
    """Half the share of the lightest row in the first weights."""
    return 0.5 * max(lightest / weight, SMALLEST_SHARE)


@register_jitable
def is_chance(score, chance, weight):
    """Whether a split is no better than a guess, which scores chance times the weight."""
    return score >= chance * weight * (1.0 - NO_GAIN)


@inner
def solve_stump(
    kind, sums, scale, rate, smoothing, lightest, place, cumulated, values, shares, totals
):
    """From the leaf sums of a split at `place` = (feature, bin, missing leaf) to a stump.

    Fills values[output, leaf], shares (of the weight: abstaining, right, wrong), which hold zeros,
    and totals[group]. Returns the weight of all groups, the smoothing, the weighted error or Z,
    alpha, where missing values go, and whether the split is perfect. Smoothing is NaN before the
    first round: half the share of the `lightest` row in the weight.
    """
    weight = 0.0
    for g in range(sums.shape[0]):
        total = np.int64(0)
        for leaf in range(sums.shape[1]):
            total += sums[g, leaf]
        totals[g] = total
        weight += scale[g] * total
    if smoothing != smoothing:
        smoothing = first_smoothing(lightest, weight)
    error, alpha = solve(kind, sums, scale, rate, smoothing, values, shares)
    feature, last_bin, missing_leaf = place
    missing_leaf, perfect = _look_at_leaves(cumulated, feature, last_bin, missing_leaf)
    return weight, smoothing, error, alpha, missing_leaf, perfect


@kernel
def stump_of(
    kind, sums, scale, rate, smoothing, lightest, place, cumulated, values, shares, totals
):
    """`solve_stump`, called from Python."""
    return solve_stump(
        kind, sums, scale, rate, smoothing, lightest, place, cumulated, values, shares, totals
    )


@inner
def _fullest(cumulated, feature, last_bin, missing_leaf):
    """The leaf with the most rows; of equals the first."""
    n_left, n_right, n_apart = 0, 0, 0
    for c in range(cumulated.shape[0]):
        left, right, missing = _rows_of(cumulated, c, feature, last_bin)
        n_left += left + (missing if missing_leaf == LEFT else 0)
        n_right += right + (missing if missing_leaf == RIGHT else 0)
        n_apart += missing if missing_leaf == ABSTAIN else 0
    if n_left >= n_right:
        return LEFT if n_left >= n_apart else ABSTAIN
    return RIGHT if n_right >= n_apart else ABSTAIN


@inner
def _worn(largest, ratio, totals, fresh_totals):
    """Whether a group's q would overflow, or its sum has fallen to a small share."""
    for g in range(totals.shape[0]):
        highest = max(ratio[g, LEFT], ratio[g, RIGHT], ratio[g, ABSTAIN])
        if largest[g] * highest > Q_LIMIT or totals[g] < WORN_SHARE * fresh_totals[g]:
            return True
    return False


@inner
def move_weights(
    kind, values, alpha, place, cumulated, tables, fixed, leaf_of, scale, ratio, logs, trail,
    fresh_totals,
):  # fmt: skip
    """Tables, scales and ratios after a stump at `place` = (feature, bin, missing leaf).

    logs[group, leaf] is the logarithm of the factor on the weights. tables[g, feature, code] +=
    that of the code's leaf, leaf_of[code]; `fixed` holds the same in fixed point
    (fixedpoint.from_log). The factor of the leaf with the most rows is folded into the scales.
    ratio[g, leaf] is what the other leaves' weights are multiplied by. Scales are brought back to a
    maximum in [1/2, 1) by an exact power of two.

    Returns that leaf, and whether weights are worn. `trail` = (totals, largest) of q before the
    round, by group; `fresh_totals` those after the last requantising.
    """
    feature, last_bin, missing_leaf = place
    log_factors(kind, values, alpha, logs)
    width = leaf_of.shape[0]
    for code in range(width - 1):
        leaf_of[code] = LEFT if code <= last_bin else RIGHT
    leaf_of[width - 1] = missing_leaf
    kept = _fullest(cumulated, feature, last_bin, missing_leaf)
    top = 0.0
    for g in range(logs.shape[0]):
        for code in range(width):
            tables[g, feature, code] += logs[g, leaf_of[code]]
            fixed[g, feature, code] = np.int64(np.rint(tables[g, feature, code] * PER_NAT))
        for leaf in range(N_LEAVES):
            ratio[g, leaf] = exp(logs[g, leaf] - logs[g, kept])
        scale[g] = scale[g] * exp(logs[g, kept])
        top = max(top, scale[g])
    _, exponent = math.frexp(top)
    for g in range(logs.shape[0]):
        scale[g] = math.ldexp(scale[g], -exponent)
    totals, largest = trail
    return kept, _worn(largest, ratio, totals, fresh_totals)


@kernel
def follow_stump(
    kind, values, alpha, place, cumulated, tables, fixed, leaf_of, scale, ratio, logs, trail,
    fresh_totals,
):  # fmt: skip
    """`move_weights`, called from Python."""
    return move_weights(
        kind, values, alpha, place, cumulated, tables, fixed, leaf_of, scale, ratio, logs, trail,
        fresh_totals,
    )  # fmt: skip
