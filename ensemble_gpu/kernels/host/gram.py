"""Sums of residuals updated from counts of pairs of codes (boosting/gram.py has the formula)."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import kernel


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
def accumulate(table):
    """table[c] = sum of the rows 0 ... c, but for the last, the missing code."""
    for c in range(1, table.shape[0] - 1):
        for f in range(table.shape[1]):
            before, here = table[c - 1, f], table[c, f]
            for b in range(table.shape[2]):
                here[b] += before[b]


@kernel
def subtract(S, H, table, last_bin, missing, values):
    """S[k, f, b] -= values[k, leaf] times the weight of the leaf's rows with code b in f.

    `table[c]` counts the rows with a code <= c of the stump's feature, `table[-1]` the missing.
    """
    p, width = H.shape
    absent = table.shape[0] - 1
    for k in range(S.shape[0]):
        left, right, apart = values[k, 0], values[k, 1], values[k, 2]
        for f in range(p):
            below, whole, into = table[last_bin, f], H[f], S[k, f]
            if missing:
                nowhere = table[absent, f]
                for b in range(width):
                    rest = whole[b] - below[b] - nowhere[b]
                    into[b] -= left * below[b] + right * rest + apart * nowhere[b]
            else:
                for b in range(width):
                    into[b] -= left * below[b] + right * (whole[b] - below[b])
