"""The best rectangle of sums over two features' codes: a choice among integers, made on the host.

With u_ab the sum of u over the rows with code a in one feature and b in the other, the rectangle
a0 ... a1, b0 ... b1 has S = sum of u_ab in it. For every pair (a0, a1) the columns' sums over a are
a row of numbers, and its best segment ends at b1 where the running sum minus the lowest one before
it is largest: O(B^3) for all rectangles.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel


@inner
def _best_segment(values, n, sign):
    """(S, first, last) of the segment of sign * values with the largest sum; the first of equals.

    Of those that end at one place the shortest is not preferred: the first lowest start counts.
    """
    best, first, last = np.int64(0), -1, -1
    running, lowest, start = np.int64(0), np.int64(0), 0
    for b in range(n):
        running += sign * values[b]
        if running - lowest > best:
            best, first, last = running - lowest, start, b
        if running < lowest:
            lowest, start = running, b + 1
    return best, first, last


@kernel
def best_rectangle(sums, sizes, outside, found):
    """The rectangle with the largest |edge| of all pairs of features, first of equals.

    sums[a, g, b] are those of one feature f with every other g; sizes[g] codes are thresholds'
    bins, the code beyond the last of `sums` is missing. found = (edge, g, a0, a1, b0, b1, sign)
    is replaced where a rectangle of a feature g > f has a larger edge: of answers +-1 inside and
    -+1 outside 2 S - total, total the sum over rows without missing values, or, where those
    outside abstain (`outside` = 0), S. `found[7]` is f.
    """
    f, width = found[7], sums.shape[2]
    values = np.empty(width, dtype=np.int64)
    changed = False
    for g in range(f + 1, sums.shape[1]):
        total = np.int64(0)
        for a in range(sizes[f]):
            for b in range(sizes[g]):
                total += sums[a, g, b]
        for a0 in range(sizes[f]):
            values[:] = 0
            for a1 in range(a0, sizes[f]):
                for b in range(sizes[g]):
                    values[b] += sums[a1, g, b]
                for sign in (1, -1):
                    S, first, last = _best_segment(values, sizes[g], sign)
                    if first < 0:
                        continue
                    edge = S if outside == 0 else 2 * S - sign * total
                    if edge > found[0]:
                        found[0], found[1], found[2], found[3] = edge, g, a0, a1
                        found[4], found[5], found[6] = first, last, sign
                        changed = True
    return changed
