"""Sums of residuals updated from counts of pairs of codes (boosting/gram.py has the formula)."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import kernel
from ensemble_gpu.kernels.protocol import LEFT, N_LEAVES, RIGHT


@kernel
def fall(S, H, last_bin, missing_leaf, units):
    """By how much leaf values lower the sum of w r^2: sum of v (2 S_l - v H_l) over the leaves.

    S [output, code] and H [code] are the sums of the stump's feature.
    """
    width = H.shape[0]
    total = 0.0
    s_leaf, h_leaf = np.zeros(N_LEAVES, dtype=np.int64), np.zeros(N_LEAVES, dtype=np.int64)
    for k in range(S.shape[0]):
        for leaf in range(N_LEAVES):
            s_leaf[leaf], h_leaf[leaf] = 0, 0
        for code in range(width):
            leaf = LEFT if code <= last_bin else RIGHT
            if code == width - 1:
                leaf = missing_leaf
            s_leaf[leaf] += S[k, code]
            h_leaf[leaf] += H[code]
        for leaf in range(N_LEAVES):
            v = float(units[k, leaf])
            total += v * (2.0 * float(s_leaf[leaf]) - v * float(h_leaf[leaf]))
    return total


def rounded_units(c: np.ndarray, rate: float) -> np.ndarray:
    """rint(nu c) as integers: leaf values in multiples of the quantum."""
    return np.rint(rate * c).astype(np.int64)


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
