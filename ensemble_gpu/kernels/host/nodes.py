"""The entries of nodes and their children in the arrays of a tree: compiled, for there are many."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from ensemble_gpu.kernels.host.hashing import STEP, drawn, mixed
from ensemble_gpu.kernels.tree_protocol import LEAF, NEVER


@njit(cache=True, nogil=True)
def open_nodes(nodes, n_rows, depth, sums, least, max_depth, labelled, out):
    """Those of the nodes that are large enough, not too deep and, by their labels, not pure."""
    m = 0
    for i in range(nodes.shape[0]):
        node = nodes[i]
        ready = n_rows[node] >= least and (max_depth < 0 or depth[node] < max_depth)
        if ready and labelled:
            total, largest = np.int64(0), np.int64(0)
            for s in range(sums.shape[1]):
                total += sums[node, s]
                largest = max(largest, sums[node, s])
            ready = largest < total
        out[m] = node
        m += ready
    return m


@njit(cache=True, nogil=True)
def _mean(moments, sums):
    weight = sums[0] if moments else sums[0] + sums[1]
    return sums[1] / weight if weight > 0 else 0.0


@njit(cache=True, nogil=True)
def fork(
    nodes, split_feature, split_bin, split_above, split_missing_left, has_missing, split_subset,
    left_sums, n_left, gains, moments, signs, first, feature, last_bin, above, missing_left, subset,
    left, sums, n_rows, depth, gain, bounds, key
):  # fmt: skip
    """Write down the splits of nodes, and their children at `first`, `first` + 1, ...

    Missing values go to the fuller side where the node had none to learn from. A monotone split
    puts a bound in the middle of its children's values between them.
    """
    for i in range(nodes.shape[0]):
        node, a = nodes[i], first + 2 * i
        b = a + 1
        feature[node], last_bin[node], above[node] = split_feature[i], split_bin[i], split_above[i]
        fuller = 2 * n_left[i] >= n_rows[node]
        missing_left[node] = split_missing_left[i] if has_missing[i] else fuller
        left[node], gain[node] = a, gains[i]
        for w in range(subset.shape[1]):
            subset[node, w] = split_subset[i, w]
            subset[a, w] = subset[b, w] = 0
        for s in range(sums.shape[1]):
            sums[a, s] = left_sums[i, s]
            sums[b, s] = sums[node, s] - left_sums[i, s]
        n_rows[a], n_rows[b] = n_left[i], n_rows[node] - n_left[i]
        for child in (a, b):
            feature[child], last_bin[child], above[child] = LEAF, -1, 0
            missing_left[child] = False
            left[child] = LEAF
            depth[child], gain[child] = depth[node] + 1, 0.0
            for w in range(bounds.shape[1]):
                bounds[child, w] = bounds[node, w]
            key[child] = drawn(key[node], 0, child - a)
        sign = signs[split_feature[i]]
        if sign != 0:
            middle = 0.5 * (_mean(moments, sums[a]) + _mean(moments, sums[b]))
            low, high = (a, b) if sign > 0 else (b, a)
            bounds[low, 1] = bounds[high, 0] = middle


@njit(cache=True, nogil=True)
def draw_features(keys, p, start, out):
    """out[i] = features start ... of node i's own order of all p, ascending."""
    order, n = np.arange(p), start + out.shape[1]
    swapped = np.empty(n, dtype=np.int64)
    for i in range(keys.shape[0]):
        for j in range(n):
            at = j + np.int64(drawn(keys[i], 1, j) % np.uint64(p - j))
            swapped[j] = at
            order[j], order[at] = order[at], order[j]
        for j in range(out.shape[1]):
            own, k = order[start + j], j - 1
            while k >= 0 and out[i, k] > own:
                out[i, k + 1] = out[i, k]
                k -= 1
            out[i, k + 1] = own
        for j in range(n - 1, -1, -1):  # back to 0, 1, 2, ...
            order[j], order[swapped[j]] = order[swapped[j]], order[j]


@njit(cache=True, nogil=True)
def root_key(seed, tree):
    return mixed(mixed(np.uint64(seed) + STEP) + np.uint64(tree))


@njit(cache=True, nogil=True)
def best_first(left, potential, most, split):
    """Mark the nodes that growing the best leaf first would split, until there are `most` leaves.

    A node that is not divided yet counts as having no children worth splitting: it is marked, its
    children will be known next time.
    """
    heap = [(-potential[0], np.int64(0))]
    n_leaves = 1
    while len(heap) > 0 and n_leaves < most:
        worth, node = heapq.heappop(heap)
        if worth == -NEVER:
            break
        split[node] = True
        n_leaves += 1
        if left[node] != LEAF:
            for child in range(np.int64(left[node]), np.int64(left[node]) + 2):
                heapq.heappush(heap, (-potential[child], child))


@njit(cache=True, nogil=True)
def write_preorder(left, out):
    """out[i] = node at position i when every node comes before its left, then its right subtree."""
    stack = np.empty(left.shape[0], dtype=np.int32)
    stack[0], height, n = 0, 1, 0
    while height > 0:
        height -= 1
        node = stack[height]
        out[n] = node
        n += 1
        if left[node] >= 0:
            stack[height] = left[node] + 1
            stack[height + 1] = left[node]
            height += 2
    return n


@njit(cache=True, nogil=True)
def add_children(feature, left, sums):
    """From the sums of leaves those of their parents, which have lower numbers."""
    for node in range(feature.shape[0] - 1, -1, -1):
        if feature[node] != LEAF:
            for c in range(sums.shape[1]):
                sums[node, c] = sums[left[node], c] + sums[left[node] + 1, c]
