"""Pairs of a positive and a negative row that scores put in order, counted in integers.

Few scores are spread over as many intervals, which leaves little to sort. Many, or uneven ones,
become integers of the same order, which are sorted by digits: a pass a digit, and none for a digit
that all of them share.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel

# Digits of a key; six of them hold its 64 bits.
DIGIT, DIGITS = 11, 6
VALUES = 1 << DIGIT
SIGN = np.uint64(1 << 63)

# Scores that are few enough for intervals to stay in the cache, and how often one of them may be
# moved on average when it is inserted: more would take longer than digits.
FEW = 1 << 14
MOST_MOVES = 4


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


@inner
def _spread(scores, out, counts, places):
    """Few scores in ascending order, into `out`; False: they are too uneven for that.

    A score falls into one of as many intervals of equal length as there are scores, or more. What
    is out of order then is so within an interval, and is inserted.
    """
    n = scores.shape[0]
    if n == 0:
        return True
    low, high = scores[0], scores[0]
    for i in range(n):
        low, high = min(low, scores[i]), max(high, scores[i])
    intervals = 1
    while intervals < n:
        intervals *= 2
    scale = (intervals - 1) / (high - low) if high > low else 0.0
    if not 0.0 <= scale < np.inf or not high - low < np.inf:
        return False
    for v in range(intervals + 1):
        counts[v] = 0
    for i in range(n):
        v = np.int32((scores[i] - low) * scale)
        places[i] = v
        counts[v] += 1
    before = 0
    for v in range(intervals + 1):
        count = counts[v]
        counts[v] = before
        before += count
    for i in range(n):
        v = places[i]
        out[counts[v]] = scores[i]
        counts[v] += 1
    moves = MOST_MOVES * n
    for i in range(1, n):
        score, j = out[i], i
        while j > 0 and out[j - 1] > score:
            out[j] = out[j - 1]
            j -= 1
        out[j] = score
        moves -= i - j
        if moves < 0:
            return False
    return True


@inner
def _in_order(minus, plus):
    """The pairs of negative and positive scores, which ascend."""
    n = minus.shape[0]
    total, below, up_to = 0, 0, 0
    for j in range(plus.shape[0]):
        while below < n and minus[below] < plus[j]:
            below += 1
        up_to = max(up_to, below)
        while up_to < n and minus[up_to] == plus[j]:
            up_to += 1
        total += below + up_to
    return total


@kernel
def pairs_in_order(scores, positive, n_positive, totals):
    """Twice the pairs whose positive row has the higher score, and once those of equal scores.

    Of every vector of `scores` [M, n], without NaN, into `totals` [M].
    """
    n = scores.shape[1]
    first = n - n_positive  # of the positive rows, once the negative ones are before them
    apart, spread = np.empty(n, dtype=np.float64), np.empty(n, dtype=np.float64)
    keys, other = np.empty(n, dtype=np.uint64), np.empty(n, dtype=np.uint64)
    counts = np.empty((DIGITS, VALUES), dtype=np.int64)
    few = n <= FEW
    intervals = np.empty(2 * n + 1 if few else 0, dtype=np.int32)
    places = np.empty(n if few else 0, dtype=np.int32)
    ends = np.empty(2, dtype=np.int64)
    for m in range(scores.shape[0]):
        ends[0], ends[1] = 0, first
        for i in range(n):
            kind = np.int64(positive[i])
            apart[ends[kind]] = scores[m, i] + 0.0  # -0.0 + 0.0 is 0.0, which it equals
            ends[kind] += 1
        if (
            few
            and _spread(apart[:first], spread[:first], intervals, places)
            and _spread(apart[first:], spread[first:], intervals, places)
        ):
            totals[m] = _in_order(spread[:first], spread[first:])
            continue
        bits = apart.view(np.uint64)
        for i in range(n):
            keys[i] = ~bits[i] if bits[i] & SIGN else bits[i] | SIGN
        totals[m] = _in_order(
            _sorted(keys[:first], other[:first], counts),
            _sorted(keys[first:], other[first:], counts),
        )
