"""The weakest links of a tree, one after the other; trees/prune.py has the formulas."""

from __future__ import annotations

import heapq

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import LEAF


@inner
def _add_up(left, risk, parent, below, leaves):
    """Parents, the risk of the leaves below every node, and their number."""
    for node in range(left.shape[0] - 1, -1, -1):  # children have higher numbers
        below[node], leaves[node] = risk[node], 1
        if left[node] != LEAF:
            a, b = left[node], left[node] + 1
            parent[a] = parent[b] = node
            below[node] = below[a] + below[b]
            leaves[node] = leaves[a] + leaves[b]


@kernel
def collapse(left, risk, strength, alphas, risks):
    """Collapse the weakest link again and again; how many trees there are, the whole one first.

    risks[s] is the risk of tree s, alphas[s] the alpha that it is there from: that of its link, the
    largest so far (they ascend but for rounding). strength[node] is that alpha when the node went,
    alone or with a link above it; inf where none did. The heap holds a bound of each node's alpha
    from below: alphas rise, but for rounding, as what is below them goes.
    """
    n = left.shape[0]
    parent, leaves = np.full(n, LEAF, dtype=np.int64), np.empty(n, dtype=np.int64)
    below, alpha = np.empty(n), np.empty(n)
    _add_up(left, risk, parent, below, leaves)
    heap = [(np.inf, np.int64(n))]
    for node in range(n):
        strength[node] = np.inf
        if left[node] != LEAF:
            alpha[node] = (risk[node] - below[node]) / (leaves[node] - 1)
            heap.append((alpha[node], np.int64(node)))
    heapq.heapify(heap)
    bound, gone = alpha.copy(), np.zeros(n, dtype=np.bool_)
    stack = np.empty(n, dtype=np.int64)
    steps, largest = 1, 0.0
    alphas[0], risks[0] = largest, below[0]
    while True:
        worth, node = heapq.heappop(heap)
        if worth == np.inf:
            return steps
        if gone[node] or worth != bound[node]:
            continue
        if worth != alpha[node]:
            bound[node] = alpha[node]
            heapq.heappush(heap, (alpha[node], node))
            continue
        largest = max(largest, worth)
        stack[0], height = node, 1
        while height > 0:
            height -= 1
            at = stack[height]
            if left[at] != LEAF and not gone[at]:
                gone[at], strength[at] = True, largest
                stack[height], stack[height + 1] = left[at], left[at] + 1
                height += 2
        lost, gained = leaves[node] - 1, risk[node] - below[node]
        leaves[node] -= lost
        below[node] += gained
        at = parent[node]
        while at != LEAF:
            leaves[at] -= lost
            below[at] += gained
            alpha[at] = (risk[at] - below[at]) / (leaves[at] - 1)
            if alpha[at] < bound[at]:
                bound[at] = alpha[at]
                heapq.heappush(heap, (alpha[at], at))
            at = parent[at]
        alphas[steps], risks[steps] = largest, below[0]
        steps += 1
