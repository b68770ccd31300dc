"""The search that binning and evaluation share: how many edges are below each value of a block.

A guide cuts the range of the edges into equally wide buckets and knows how many edges lie before
each, so that only the few edges within a value's bucket are left to be searched.
"""

from __future__ import annotations

import numpy as np
from numba import njit

BLOCK_ROWS = 256
GUIDE_BUCKETS = 1024


@njit(cache=True, nogil=True)
def load_column(X, rows, f, start, x, fill):
    """x = column f of the rows from `start` on, NaN replaced by `fill`; whether there was one.

    `rows` may be empty: then the rows of X are taken in their own order.
    """
    if rows.shape[0] > 0:
        for i in range(x.shape[0]):
            x[i] = X[rows[start + i], f]
    else:
        for i in range(x.shape[0]):
            x[i] = X[np.uint64(start + i), f]
    absent = False
    for i in range(x.shape[0]):
        absent |= x[i] != x[i]
    if absent:
        for i in range(x.shape[0]):
            x[i] = fill if x[i] != x[i] else x[i]
    return absent


@njit(cache=True, nogil=True)
def bucket(x, low, scale, buckets):
    """Which of equally wide buckets holds x: monotone in x, so it brackets the edges.

    Bucket 0 where the product is NaN: an infinite difference times a scale of 0.
    """
    b = (x - low) * scale
    b = b if b > 0.0 else 0.0
    last = buckets - 1.0
    return np.int32(b if b < last else last)


@njit(cache=True, nogil=True)
def make_guide(edges, n_edges, low, scale, guide):
    """guide[b] = edges in buckets below b; returns the most edges that share a bucket."""
    most = 0
    e = 0
    for b in range(guide.shape[0]):
        guide[b] = e
        while e < n_edges and bucket(edges[e], low, scale, guide.shape[0]) == b:
            e += 1
        most = max(most, e - guide[b])
    return most


@njit(cache=True, nogil=True)
def count_below(x, edges, steps, place):
    """place += number of edges < x beyond place, at most 2^steps - 1; edges padded with inf.

    Every loop runs over the block without a branch, so that the searches of many values are under
    way at once: about 0.7 ns a value and step, where a search of its own for each takes 6.
    """
    step = 1 << steps
    while step > 1:
        step >>= 1
        for i in range(x.shape[0]):
            further = place[i] + step
            place[i] = further if edges[further - 1] < x[i] else place[i]


@njit(cache=True, nogil=True)
def guided_count(x, edges, guide, low, scale, steps, place):
    """place = number of edges < x, from the guide's count on; steps >= 1, edges padded with inf.

    The first halving goes along with the look-up in the guide: mostly it is the only one.
    """
    for i in range(x.shape[0]):
        place[i] = bucket(x[i], low, scale, guide.shape[0])
    step = 1 << (steps - 1)
    for i in range(x.shape[0]):
        known = np.uint32(guide[np.uint32(place[i])])
        further = np.uint32(known + step)
        place[i] = further if edges[further - np.uint32(1)] < x[i] else known
    count_below(x, edges, steps - 1, place)
