"""The entries of nodes and their children in the arrays of a tree: compiled, for there are many."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.host.criteria import mean_response
from ensemble_gpu.kernels.host.hashing import STEP, draw, mix
from ensemble_gpu.kernels.host.records import ABOVE, BIN, FEATURE, HAS_MISSING, MISSING_LEFT
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.tree_protocol import LEAF, NEVER


class NodeArrays(NamedTuple):
    """The arrays of a tree that grows, one entry a node; trees/grow.py says of what."""

    feature: np.ndarray
    bin: np.ndarray
    above: np.ndarray
    missing_left: np.ndarray
    subset: np.ndarray
    left: np.ndarray
    sums: np.ndarray
    n_rows: np.ndarray
    depth: np.ndarray
    gain: np.ndarray
    bounds: np.ndarray
    key: np.ndarray


@inner
def list_open(first, stop, tree, least, max_depth, labelled, out):
    """Those of nodes first ... stop - 1 that are large enough, not too deep, not pure by label."""
    m, sums = 0, tree.sums
    for node in range(first, stop):
        ready = tree.n_rows[node] >= least and (max_depth < 0 or tree.depth[node] < max_depth)
        if ready and labelled:
            total, largest = np.int64(0), np.int64(0)
            for s in range(sums.shape[1]):
                total += sums[node, s]
                largest = max(largest, sums[node, s])
            ready = largest < total
        out[m] = node
        m += ready
    return m


@inner
def write_children(
    nodes, record, split_subset, left_sums, n_left, gains, kind, l2, signs, first, tree
):
    """Write down the splits of nodes, and their children at `first`, `first` + 1, ...

    Missing values go to the fuller side where the node had none to learn from. A monotone split
    puts a bound in the middle of its children's values between them.
    """
    sums, bounds, subset, n_rows = tree.sums, tree.bounds, tree.subset, tree.n_rows
    for i in range(nodes.shape[0]):
        node, a = nodes[i], first + 2 * i
        b = a + 1
        tree.feature[node], tree.bin[node] = record[i, FEATURE], record[i, BIN]
        tree.above[node] = record[i, ABOVE]
        if record[i, HAS_MISSING] == 1:
            tree.missing_left[node] = record[i, MISSING_LEFT] == 1
        else:
            tree.missing_left[node] = 2 * n_left[i] >= n_rows[node]
        tree.left[node], tree.gain[node] = a, gains[i]
        for w in range(subset.shape[1]):
            subset[node, w] = split_subset[i, w]
            subset[a, w] = 0
            subset[b, w] = 0
        for s in range(sums.shape[1]):
            sums[a, s] = left_sums[i, s]
            sums[b, s] = sums[node, s] - left_sums[i, s]
        n_rows[a], n_rows[b] = n_left[i], n_rows[node] - n_left[i]
        for child in range(a, b + 1):
            tree.feature[child], tree.bin[child], tree.above[child] = LEAF, -1, 0
            tree.missing_left[child], tree.left[child] = False, LEAF
            tree.depth[child], tree.gain[child] = tree.depth[node] + 1, 0.0
            for w in range(bounds.shape[1]):
                bounds[child, w] = bounds[node, w]
            tree.key[child] = draw(tree.key[node], np.uint64(0), np.uint64(child - a))
        sign = signs[record[i, FEATURE]]
        if sign != 0:
            middle = 0.5 * (mean_response(kind, l2, sums[a]) + mean_response(kind, l2, sums[b]))
            low, high = (a, b) if sign > 0 else (b, a)
            bounds[low, 1] = middle
            bounds[high, 0] = middle


@inner
def write_features(keys, p, start, out):
    """out[i] = features start ... of node i's own order of all p, ascending."""
    n = start + out.shape[1]
    order, swapped = np.empty(p, dtype=np.int64), np.empty(n, dtype=np.int64)
    for j in range(p):
        order[j] = j
    for i in range(keys.shape[0]):
        for j in range(n):
            at = j + np.int64(draw(keys[i], np.uint64(1), np.uint64(j)) % np.uint64(p - j))
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


# The same for Python.


@kernel
def open_nodes(first, stop, tree, least, max_depth, labelled, out):
    return list_open(first, stop, tree, least, max_depth, labelled, out)


@kernel
def fork(nodes, record, subset, left_sums, n_left, gains, kind, l2, signs, first, tree):
    write_children(nodes, record, subset, left_sums, n_left, gains, kind, l2, signs, first, tree)


@kernel
def draw_features(keys, p, start, out):
    write_features(keys, p, start, out)


@kernel
def root_key(seed, tree):
    return mix(mix(np.uint64(seed) + STEP) + np.uint64(tree))


@inner
def leaves_from(root_worth, root_key):
    """The leaves of a tree that is not split yet, for `split_best`: a heap, the best first.

    Of equal ones the nearest to the root is the best, then the one most to the left: its place is
    sum_d 2^-d over the turns to the right, d levels below the root, as far as a float tells places
    apart; then its key. None of these depends on the order in which nodes came to be.
    """
    return [(-root_worth, 0, 0.0, root_key, np.int64(0))]


@inner
def split_best(heap, left, key, potential):
    """Take the best leaf, a node, from the heap; its children come instead where it has any."""
    _, depth, place, _, node = heapq.heappop(heap)
    if left[node] != LEAF:
        for side in range(2):
            child, there = np.int64(left[node]) + side, place + side * 0.5 ** (depth + 1)
            heapq.heappush(heap, (-potential[child], depth + 1, there, key[child], child))
    return node


@inner
def split_known(heap, n_leaves, left, key, potential, most, marked):
    """Split and mark the best leaf of all while it has children, until there are `most` leaves.

    What is marked stays so whatever comes later. Returns how many leaves there are then.
    """
    while n_leaves < most and len(heap) > 0:
        if heap[0][0] == -NEVER or left[heap[0][4]] == LEAF:
            break
        marked[split_best(heap, left, key, potential)] = True
        n_leaves += 1
    return n_leaves


@inner
def list_next(heap, n_leaves, left, key, potential, most, out):
    """Leaves to divide next, out[:m], at most as many as there is room for; m. The heap is lost.

    A node that is not divided yet counts as having no children worth splitting: they will be known
    next time.
    """
    m = 0
    while n_leaves < most and m < out.shape[0] and len(heap) > 0:
        if heap[0][0] == -NEVER:
            break
        node = split_best(heap, left, key, potential)
        n_leaves += 1
        if left[node] == LEAF:
            out[m] = node
            m += 1
    return m


@kernel
def best_first(left, key, potential, most, split):
    """split[node] = the number of leaves once the node is split, growing the best leaf first."""
    heap, n_leaves = leaves_from(potential[0], key[0]), 1
    while n_leaves < most and len(heap) > 0:
        if heap[0][0] == -NEVER:
            break
        n_leaves += 1
        split[split_best(heap, left, key, potential)] = n_leaves


@kernel
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


@kernel
def add_subtrees(left, right, sums):
    """Add to each node [node, column] what is below it; children have higher numbers."""
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] != LEAF:
            for c in range(sums.shape[1]):
                sums[node, c] += sums[left[node], c] + sums[right[node], c]
