"""Pairs of a positive and a negative row that scores put in order, counted in integers.

Scores become integers of the same order, which are sorted by digits: a pass a digit, and none for a
digit that all of them share.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel

# Digits of a key; six of them hold its 64 bits.
DIGIT, DIGITS = 11, 6
VALUES = 1 << DIGIT


@inner
def _sorted(keys, other, counts):
    """`keys` in ascending order, in its own memory or in that of `other`."""
    n = keys.shape[0]
    last = np.uint64(VALUES - 1)
    for d in range(DIGITS):
        for v in range(VALUES):
            counts[d, v] = 0
    for i in range(n):
        for d in range(DIGITS):
            counts[d, (keys[i] >> np.uint64(DIGIT * d)) & last] += 1
    for d in range(DIGITS):
        shift = np.uint64(DIGIT * d)
        if n == 0 or counts[d, (keys[0] >> shift) & last] == n:
            continue
        before = 0
        for v in range(VALUES):
            count = counts[d, v]
            counts[d, v] = before
            before += count
        for i in range(n):
            v = (keys[i] >> shift) & last
            other[counts[d, v]] = keys[i]
            counts[d, v] += 1
        keys, other = other, keys
    return keys


@kernel
def pairs_in_order(bits, positive, n_positive):
    """Twice the pairs whose positive row has the higher score, and once those of equal scores.

    `bits` are those of float64 scores without -0.0 and NaN.
    """
    n = bits.shape[0]
    sign = np.uint64(1) << np.uint64(63)
    n_negative = n - n_positive
    keys, other = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    ends = np.zeros(2, dtype=np.int64)
    ends[1] = n_negative
    for i in range(n):
        kind = np.int64(positive[i])
        key = bits[i]
        keys[ends[kind]] = ~key if key & sign else key | sign
        ends[kind] += 1
    counts = np.empty((DIGITS, VALUES), dtype=np.int64)
    minus = _sorted(keys[:n_negative], other[:n_negative], counts)
    plus = _sorted(keys[n_negative:], other[n_negative:], counts)
    total, below, up_to = 0, 0, 0
    for j in range(n_positive):
        while below < n_negative and minus[below] < plus[j]:
            below += 1
        up_to = max(up_to, below)
        while up_to < n_negative and minus[up_to] == plus[j]:
            up_to += 1
        total += below + up_to
    return total
