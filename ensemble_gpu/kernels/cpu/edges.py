"""The search that binning and evaluation share: how many edges are below each value of a block.

The edges of feature u lie at first[u] of one array, padded with inf to 2^steps[u], of which there
are more than edges. A guide cuts the range of the edges into equally wide buckets and knows how
many edges lie before each, so that only the few edges within a value's bucket are left to be
searched. Guides travel as a plain tuple: edges, first, low, scale, halvings, buckets[u, b].
"""

from __future__ import annotations

import math

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel

BLOCK_ROWS = 256
GUIDE_BUCKETS = 1024
IN_ORDER = np.zeros(0, dtype=np.int64)

Guides = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@inner
def _bucket(x, low, scale, buckets):
    """Which of equally wide buckets holds x: monotone in x, so it brackets the edges.

    Bucket 0 where the product is NaN: an infinite difference times a scale of 0.
    """
    b = (x - low) * scale
    b = b if b > 0.0 else 0.0
    last = buckets - 1.0
    return np.int32(b if b < last else last)


@kernel
def _fill_guides(edges, first, steps, n_rows, low, scale, halvings, buckets):
    """buckets[u, b] = edges of feature u in buckets below b, where there are rows enough.

    The search stays within the 2^steps edges, because no bucket starts it later than 2^halvings
    before their end: an earlier start finds the same place.
    """
    n = buckets.shape[1]
    for u in range(first.shape[0]):
        size = 1 << steps[u]
        own, guide = edges[first[u] : first[u] + size], buckets[u]
        real = size
        while real > 0 and own[real - 1] == math.inf:
            real -= 1
        width = own[real - 1] - own[0] if real > 1 else 0.0
        slope = (n - 1.0) / width if width > 0.0 else math.inf
        if size > n_rows or slope == math.inf:
            continue
        low[u], scale[u] = own[0], slope
        most, e = 0, 0
        for b in range(n):
            guide[b] = e
            while e < real and _bucket(own[e], low[u], slope, n) == b:
                e += 1
            most = max(most, e - guide[b])
        halvings[u] = 1
        while 1 << halvings[u] <= most:
            halvings[u] += 1
        for b in range(n):
            guide[b] = min(guide[b], size - (1 << halvings[u]))


def guides_of(edges: np.ndarray, first: np.ndarray, steps: np.ndarray, n_rows: int) -> Guides:
    """Guides for the search of so many rows; of one bucket, where few would not repay more."""
    features = first.shape[0]
    low, scale = np.zeros((2, features))
    if n_rows < 2 * GUIDE_BUCKETS:
        return edges, first, low, scale, steps, np.zeros((features, 1), dtype=np.int32)
    halvings, buckets = steps.copy(), np.zeros((features, GUIDE_BUCKETS), dtype=np.int32)
    _fill_guides(edges, first, steps, n_rows, low, scale, halvings, buckets)
    return edges, first, low, scale, halvings, buckets


@inner
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


@inner
def guided_count(x, guides, u, place):
    """place = number of edges of feature u that are < x.

    Every loop runs over the block without a branch, so that the searches of many values are under
    way at once: about 0.7 ns a value and step, where a search of its own for each takes 6. The
    first halving goes along with the look-up in the guide: mostly it is the only one.
    """
    edges, first, low, scale, halvings, buckets = guides
    own, guide = edges[first[u] :], buckets[u]
    for i in range(x.shape[0]):
        place[i] = _bucket(x[i], low[u], scale[u], guide.shape[0])
    step = 1 << (halvings[u] - 1)
    for i in range(x.shape[0]):
        known = np.uint32(guide[np.uint32(place[i])])
        further = np.uint32(known + step)
        place[i] = further if own[further - np.uint32(1)] < x[i] else known
    while step > 1:
        step >>= 1
        for i in range(x.shape[0]):
            beyond = place[i] + step
            place[i] = beyond if own[beyond - 1] < x[i] else place[i]
