"""The search that binning and evaluation share: how many edges are below each value of a block.

The edges of feature u lie at first[u] of one array, padded with inf to 2^steps[u], of which there
are more than edges. A guide cuts the range of the edges into equally wide buckets and knows how
many edges lie before each, so that only the few edges within a value's bucket are left to be
searched. Guides travel as a plain tuple: edges, first, low, scale, halvings, buckets[u, b].
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner

BLOCK_ROWS = 256
GUIDE_BUCKETS = 1024
GUIDED_ROWS = 2 * GUIDE_BUCKETS  # from so many on guides are worth making
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


def no_guides(edges: np.ndarray, first: np.ndarray, steps: np.ndarray) -> Guides:
    """Guides of one bucket: where rows are few, more would not be repaid."""
    low, scale = np.zeros((2, first.shape[0]))
    return edges, first, low, scale, steps, np.zeros((first.shape[0], 1), dtype=np.int32)


def guides_of(edges: np.ndarray, first: np.ndarray, steps: np.ndarray) -> Guides:
    """Guides for the search of many rows.

    buckets[u, b] = edges of feature u in buckets below b. The search stays within 2^steps edges,
    because no bucket starts it later than 2^halvings before their end: an earlier start finds the
    same place.
    """
    features, size = first.shape[0], 1 << steps
    owner, real = np.repeat(np.arange(features), size), edges < np.inf
    last = np.maximum(np.bincount(owner[real], minlength=features) - 1, 0)
    with np.errstate(all="ignore"):  # one edge, or none: inf / inf and 1 / 0
        slope = (GUIDE_BUCKETS - 1.0) / (edges[first + last] - edges[first])
    guided = (slope < np.inf) & (last > 0)
    low, scale = np.where(guided, edges[first], 0.0), np.where(guided, slope, 0.0)
    real &= guided[owner]
    owner = owner[real]
    with np.errstate(invalid="ignore"):
        place = (edges[real] - low[owner]) * scale[owner]
    place = np.where(place > 0.0, np.minimum(place, GUIDE_BUCKETS - 1.0), 0.0)
    key = owner * GUIDE_BUCKETS + place.astype(np.int64)
    inside = np.bincount(key, minlength=features * GUIDE_BUCKETS).reshape(-1, GUIDE_BUCKETS)
    bits = np.frexp(inside.max(axis=1, initial=0))[1].astype(np.int64)  # of the fullest bucket
    halvings = np.where(guided, np.maximum(bits, 1), steps)
    before = np.cumsum(inside, axis=1, dtype=np.int32) - inside
    buckets = np.minimum(before, (size - (1 << halvings))[:, None]).astype(np.int32)
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
