"""From the leaf sums of a split to a stump: the formulas of boosting/rules.py, compiled."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.host.scalar import exp, log
from ensemble_gpu.kernels.jit import inner
from ensemble_gpu.kernels.protocol import ABSTAIN, CONFIDENCE, MAJORITY, N_LEAVES

# A weighted error of zero would mean an infinite alpha; below this it no longer counts.
SMALLEST_ERROR = 1e-10
# However large the learning rate, a leaf says no more than this: exp of it is still a float.
MOST_CONFIDENT = 300.0


@inner
def _solve_pairs(kind, sums, scale, rate, smoothing, values, shares):
    """A value c per leaf and plane; returns (Z_t, nu): Z_t is the new total over the old.

    c = 1/2 ln (W+ + s) / (W- + s), or (W+ - W-) / (W+ + W-).
    """
    total = 0.0
    for g in range(sums.shape[0]):
        for leaf in range(N_LEAVES):
            total += scale[g] * sums[g, leaf]
    after = 0.0
    for k in range(values.shape[0]):
        for leaf in range(N_LEAVES):
            plus = scale[2 * k] * sums[2 * k, leaf]
            minus = scale[2 * k + 1] * sums[2 * k + 1, leaf]
            c = 0.0
            if leaf != ABSTAIN and kind == CONFIDENCE:
                c = 0.5 * log((plus + total * smoothing) / (minus + total * smoothing))
            elif leaf != ABSTAIN and plus + minus > 0.0:
                c = (plus - minus) / (plus + minus)
            c = min(max(rate * c, -MOST_CONFIDENT), MOST_CONFIDENT)
            values[k, leaf] = c
            after += plus * exp(-c) + minus * exp(c)
            if c == 0.0:
                shares[0] += (plus + minus) / total
            else:
                shares[1] += (plus if c > 0.0 else minus) / total
                shares[2] += (minus if c > 0.0 else plus) / total
    return after / total, rate


@inner
def _solve_votes(sums, scale, rate, values, shares):
    """Each leaf votes for its heaviest class; returns (e_t, alpha_t).

    One output (two classes): the leaf adds +-alpha, and every row's weight changes.
    K outputs (SAMME): the leaf adds alpha to its class; the weights of the other classes grow.
    """
    n_classes = sums.shape[0]
    wrong, voting, abstaining = 0.0, 0.0, 0.0
    vote = np.zeros(2, dtype=np.int64)
    for leaf in range(2):
        heaviest = -1.0
        leaf_total = 0.0
        for c in range(n_classes):
            weight = scale[c] * sums[c, leaf]
            leaf_total += weight
            if weight > heaviest:
                heaviest = weight
                vote[leaf] = c
        wrong += leaf_total - heaviest
        voting += leaf_total
    for c in range(n_classes):
        abstaining += scale[c] * sums[c, ABSTAIN]
    error = wrong / voting
    whole = voting + abstaining
    shares[0], shares[1], shares[2] = abstaining / whole, (voting - wrong) / whole, wrong / whole
    e = max(error, SMALLEST_ERROR)
    alpha = rate * (log((1.0 - e) / e) + log(n_classes - 1.0))
    alpha = min(max(alpha, -MOST_CONFIDENT), MOST_CONFIDENT)
    if values.shape[0] == 1:
        alpha = 0.5 * alpha
        for leaf in range(2):
            values[0, leaf] = alpha if vote[leaf] == 1 else -alpha
        return error, alpha
    for leaf in range(2):
        values[vote[leaf], leaf] = alpha
    return error, alpha


@inner
def solve(kind, sums, scale, rate, smoothing, values, shares):
    """From the leaf sums of a split to a stump.

    Fills values[output, leaf] (what the model adds) and shares (of the weight: abstaining, right,
    wrong), which hold zeros; returns the round's weighted error or Z, and its alpha.
    """
    if kind == MAJORITY:
        return _solve_votes(sums, scale, rate, values, shares)
    return _solve_pairs(kind, sums, scale, rate, smoothing, values, shares)


@inner
def log_factors(kind, values, alpha, logs):
    """logs[group, leaf], the logarithm of the factor on the weights, of a stump's leaf values.

    Pairs: -c for the positive and c for the negative rows of an output. Votes of two classes the
    same, class 0 being the negative one; SAMME: alpha for the classes a leaf does not vote for.
    """
    for leaf in range(N_LEAVES):
        for k in range(values.shape[0]):
            c = values[k, leaf]
            if kind != MAJORITY:
                logs[2 * k, leaf], logs[2 * k + 1, leaf] = -c, c
            elif values.shape[0] == 1:
                logs[0, leaf], logs[1, leaf] = c, -c
            else:
                logs[k, leaf] = 0.0 if leaf == ABSTAIN or c == alpha else alpha
