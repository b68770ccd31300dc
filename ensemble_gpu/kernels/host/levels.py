"""Pairs of a query by its levels: what rows of lower and of higher levels add up to.

For segment s of a query, with M and m its highest and lowest F, the sums of its rows

    A_s = sum W e^(F - M_s),    B_s = sum W e^(m_s - F),    e_s = e^(m_s - M_s)

give, with P the highest F of lower levels and N the lowest of higher ones,

    C_s = sum over lower rows of W e^(F - M_s),    D_s = sum over higher rows of W e^(M_s - F)

in one walk up and one down the levels: sums are kept relative to e^P and e^-N, so that neither
overflows nor is lost beside what is not there. A row of the segment adds C_s / a_i and D_s a_i,
a_i = e^(F_i - M_s): the weights of all its pairs.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel


@inner
def shifts_of_query(s0, s1, high, low, cut, below, above):
    """below = P_s - M_s and above = M_s - N_s of the segments of a query, cut; 0 where no P, N."""
    P = high[s0]
    below[s0] = 0.0
    for s in range(s0 + 1, s1):
        below[s] = min(max(P - high[s], -cut), cut)
        P = max(P, high[s])
    N = low[s1 - 1]
    above[s1 - 1] = 0.0
    for s in range(s1 - 2, s0 - 1, -1):
        above[s] = min(max(high[s] - N, -cut), cut)
        N = min(N, low[s])


@inner
def walk_query(s0, s1, below, above, e, A, B, factor, C, D):
    """C and D of the segments of a query times `factor`; below, above and e are exponentials now.

    E = e^(P - M_s): where M_s is above P the sum becomes relative to it, S E + A_s, else S + A_s/E.
    """
    S = A[s0]
    C[s0] = 0.0
    for s in range(s0 + 1, s1):
        E = below[s]
        own = S * E
        C[s] = own * factor
        S = own + A[s] if E < 1.0 else S + A[s] / E
    T = B[s1 - 1]
    D[s1 - 1] = 0.0
    for s in range(s1 - 2, s0 - 1, -1):
        X = above[s]
        D[s] = (T * X) * factor
        Y = X * e[s]
        T = T * Y + B[s] if Y < 1.0 else T + B[s] / Y


@kernel
def shifts(first, high, low, cut, below, above):
    """`shifts_of_query` of all queries."""
    for q in range(first.shape[0] - 1):
        shifts_of_query(first[q], first[q + 1], high, low, cut, below, above)


@kernel
def walk(first, below, above, e, A, B, factor, C, D):
    """`walk_query` of all queries."""
    for q in range(first.shape[0] - 1):
        walk_query(first[q], first[q + 1], below, above, e, A, B, factor[q], C, D)


@inner
def ordered_pairs(s0, s1, ups, downs, left_up, left_down, enter, rise):
    """Weights of the pairs of a query whose upper row alone is right, and whose lower row alone is.

    `ups` and `downs` [segment] are sums over all rows, left_up and left_down, which begin with the
    first segment of the query, over those on the left. Sums of lower segments on the left and on
    the right, relative to the highest F so far, are carried up the levels.
    """
    plus = minus = 0.0
    left, right = np.float64(left_down[0]), np.float64(downs[s0] - left_down[0])
    for s in range(s0 + 1, s1):
        k = s - s0
        E = enter[s]
        low_left, low_right = left * E, right * E
        plus += np.float64(ups[s] - left_up[k]) * (low_left * rise[s])
        minus += np.float64(left_up[k]) * (low_right * rise[s])
        own_left, own_right = np.float64(left_down[k]), np.float64(downs[s] - left_down[k])
        if E < 1.0:
            left, right = low_left + own_left, low_right + own_right
        else:
            left, right = left + own_left / E, right + own_right / E
    return plus, minus


@kernel
def all_pairs(first, ups, downs, enter, rise, out):
    """The weight of all pairs of every query."""
    for q in range(out.shape[0]):
        s0, s1 = first[q], first[q + 1]
        nothing = np.zeros(s1 - s0, dtype=np.int64)
        out[q] = ordered_pairs(s0, s1, ups, downs, nothing, downs[s0:s1], enter, rise)[0]


@kernel
def threshold_pairs(first, ups, downs, enter, rise, scale, left, missing_left, out):
    """out[0, b] and out[1, b]: weights of pairs that code <= b orders right and wrong, integers.

    left[segment, code, 2] are the sums of `up` and `down` by code, the last code missing: those
    rows are left of every threshold, or of none.
    """
    width = left.shape[1]
    for q in range(first.shape[0] - 1):
        s0, s1 = first[q], first[q + 1]
        up, down = np.zeros(s1 - s0, dtype=np.int64), np.zeros(s1 - s0, dtype=np.int64)
        if missing_left:
            for s in range(s0, s1):
                up[s - s0] = left[s, width - 1, 0]
                down[s - s0] = left[s, width - 1, 1]
        for b in range(width - 1):
            for s in range(s0, s1):
                up[s - s0] += left[s, b, 0]
                down[s - s0] += left[s, b, 1]
            plus, minus = ordered_pairs(s0, s1, ups, downs, up, down, enter, rise)
            out[0, b] += np.int64(np.rint(plus * scale[q]))
            out[1, b] += np.int64(np.rint(minus * scale[q]))
