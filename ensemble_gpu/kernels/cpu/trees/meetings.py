"""The features that a node may test, where not all may meet on a path."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.host.nodes import write_features
from ensemble_gpu.kernels.jit import inner


@inner
def n_listed(features, own):
    """How many features row `own` of a list names: -1 and what follows are none."""
    n = features.shape[1]
    while n > 0 and features[own, n - 1] < 0:
        n -= 1
    return n


@inner
def _unite(meetings, node):
    """Bits of the features that a node may test; False: of all."""
    sets, tested, union = meetings.sets, meetings.tested, meetings.union
    n_tested, words = 0, tested.shape[1]
    for w in range(words):
        bits = tested[node, w]
        union[w] = bits if meetings.most > 0 else np.uint64(0)
        while bits != 0:
            bits &= bits - np.uint64(1)
            n_tested += 1
    if meetings.most > 0:
        return n_tested >= meetings.most
    for i in range(sets.shape[0]):
        within = True
        for w in range(words):
            within = within and tested[node, w] & ~sets[i, w] == 0
        if within:
            for w in range(words):
                union[w] |= sets[i, w]
    return True


@inner
def list_allowed(meetings, node, p, key, first, k, row):
    """The features of one node: k of those that it may test, from number `first` of its own order.

    Ascending in `row`, -1 behind them. All of them where there are no more than k.
    """
    allowed, limited = meetings.features, _unite(meetings, node)
    q = 0
    for f in range(p):
        word, bit = f // 64, np.uint64(f % 64)
        if not limited or (meetings.union[word] >> bit) & np.uint64(1) != 0:
            allowed[q] = f
            q += 1
    for j in range(row.shape[1]):
        row[0, j] = -1
    n = min(k, q - first)
    if n <= 0:
        return
    if q <= k:
        for j in range(q):
            row[0, j] = allowed[j]
        return
    write_features(key, q, first, row[:, :n])
    for j in range(n):
        row[0, j] = allowed[row[0, j]]


@inner
def note_test(meetings, node, child, feature):
    """A child has tested what its parent has, and the parent's feature."""
    tested = meetings.tested
    for w in range(tested.shape[1]):
        tested[child, w] = tested[node, w]
    if tested.shape[1] > 0:
        tested[child, feature // 64] |= np.uint64(1) << np.uint64(feature % 64)
