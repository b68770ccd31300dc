"""Shapley values of trees on the CPU: one walk down and up a tree for the rows of all lanes.

With f_e = z_e (1 - t) + o_e t of the edge e, and w the weights of the quadrature, the way down has

    P(t) = w prod over the features on the way of f_e,  e the last edge of the feature

(an edge below its twin e' divides by f_e' and multiplies by f_e), and the way up adds up v P of the
leaves below each edge to S(t). Edge e then adds

    sum_t S(t) (g_e(t) - g_e'(t)),    g_e = (o_e - z_e) / f_e

to the value of its feature (g_e' = 0 without a twin): the terms of e that the edges below it take
back are those of leaves for which it is not the last of its feature. g_e is (1 - z) / (z (1 - t) +
t) where x passes, else -1 / (1 - t): only whether x passes the edge, and its twin, is the row's
own. Linear TreeSHAP (Yu et al. 2022) walks in the same way, with other polynomials.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.lanes import (
    ALL,
    LANES,
    add,
    at_most,
    at_most_or_missing,
    load,
    multiply,
    repeat,
    store,
    where,
)
from ensemble_gpu.kernels.cpu.sharing import share
from ensemble_gpu.kernels.cpu.threads import Run
from ensemble_gpu.kernels.jit import inner, kernel
from ensemble_gpu.kernels.path_shares import PathShares, quadrature
from ensemble_gpu.kernels.tree_protocol import LEAF, PackedForest

# Cells of X and of the values that a thread holds at once, and rows: the more, the rarer are the
# factors of a tree computed.
MOST_CELLS, MOST_ROWS = 1 << 20, 1 << 10


class Nodes(NamedTuple):
    """Trees as in PackedForest, with the ways to their nodes as in PathShares."""

    roots: np.ndarray
    feature: np.ndarray
    threshold: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    subset: np.ndarray
    subsets: np.ndarray
    values: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    twin: np.ndarray
    share: np.ndarray
    points: np.ndarray


class Sizes(NamedTuple):
    """Of what a thread needs: nodes and points of a tree, and its depth, at most."""

    rows: int
    nodes: int
    points: int
    depth: int


@inner
def _factors(nodes, start, end, at, down, up):
    """What the edges of a tree multiply P by, and S, at the points `at`; [node, case, point].

    Cases: x passes the edge; it passes the twin only (or there is none); neither.
    """
    for node in range(start + 1, end):
        z, twin, i = nodes.share[node], nodes.twin[node], node - start
        before = 1.0 if twin < 0 else nodes.share[twin]
        for q in range(at.shape[0]):
            t = at[q]
            old, old_gain = 1.0, 0.0
            if twin >= 0:
                old = before * (1.0 - t) + t
                old_gain = (1.0 - before) / old
            passes = z * (1.0 - t) + t
            down[i, 0, q] = passes / old
            down[i, 1, q] = z * (1.0 - t) / old
            down[i, 2, q] = z / before if before > 0.0 else 0.0
            up[i, 0, q] = (1.0 - z) / passes - old_gain
            up[i, 1, q] = -1.0 / (1.0 - t) - old_gain


@inner
def _in_set(nodes, node, x, at):
    """The set of lanes whose category goes left."""
    bits, row = np.int64(0), nodes.subset[node]
    width = 64 * nodes.subsets.shape[1]
    for lane in range(LANES):
        goes = nodes.missing_left[node]
        code = x[at + lane]
        if code >= 0.0 and code < width:
            c = np.int64(code)
            goes = (nodes.subsets[row, c // 64] >> np.uint64(c % 64)) & np.uint64(1) != 0
        bits |= np.int64(goes) << lane
    return bits


@inner
def _goes_left(nodes, node, x):
    """The set of lanes that a test sends left."""
    at = np.int64(nodes.feature[node]) * LANES
    if nodes.subset[node] >= 0:
        return _in_set(nodes, node, x, at)
    if nodes.missing_left[node]:
        return at_most_or_missing(load(x, at), nodes.threshold[node])
    return at_most(load(x, at), nodes.threshold[node])


@inner
def _walk(nodes, start, end, weights, down, up, x, P, S, passing, left, phi):
    """phi[feature, output] += the values of a tree for the rows x[feature], LANES of them.

    P[depth, point] and S[depth, output, point] are those of the nodes on the way, `passing[depth]`
    the lanes that pass a node's edge, `left[depth]` those that it sends left.
    """
    K, Q = nodes.values.shape[1], weights.shape[0]
    wide = Q * LANES
    for q in range(Q):
        store(P, q * LANES, repeat(weights[q]))
    for node in range(start, end):
        d = np.int64(nodes.depth[node])
        if node > start:
            i, twin = node - start, nodes.twin[node]
            goes = left[d - 1]
            if nodes.left[nodes.parent[node]] != node:
                goes = ALL ^ goes
            old = passing[nodes.depth[twin]] if twin >= 0 else np.int64(ALL)
            own = goes & old
            passing[d] = own
            for q in range(Q):
                factor = where(own, down[i, 0, q], repeat(down[i, 1, q]))
                if twin >= 0:
                    factor = where(ALL ^ old, down[i, 2, q], factor)
                at = d * wide + q * LANES
                store(P, at, multiply(load(P, at - wide), factor))
        if nodes.feature[node] != LEAF:
            left[d] = _goes_left(nodes, node, x)
            continue
        for k in range(K):
            value = repeat(nodes.values[node, k])
            for q in range(Q):
                own_P = load(P, d * wide + q * LANES)
                store(S, (d * K + k) * wide + q * LANES, multiply(value, own_P))
        _climb(nodes, node, start, Q, up, S, passing, phi)


@inner
def _climb(nodes, node, start, Q, up, S, passing, phi):
    """From a leaf up to the first node that has another child to come."""
    K, wide = nodes.values.shape[1], Q * LANES
    while node > start:
        parent, twin, i = nodes.parent[node], nodes.twin[node], node - start
        d, first = np.int64(nodes.depth[node]), nodes.left[parent] == node
        own = passing[d]
        old = passing[nodes.depth[twin]] if twin >= 0 else np.int64(ALL)
        for k in range(K):
            at = (np.int64(nodes.feature[parent]) * K + k) * LANES
            here = (d * K + k) * wide
            above = here - K * wide
            total = load(phi, at)
            for q in range(Q):
                gain = where(own, up[i, 0, q], repeat(up[i, 1, q]))
                if twin >= 0:
                    gain = where(ALL ^ old, 0.0, gain)
                total = add(total, multiply(load(S, here + q * LANES), gain))
            store(phi, at, total)
            if first:
                for q in range(Q):
                    store(S, above + q * LANES, load(S, here + q * LANES))
            else:
                for q in range(Q):
                    both = add(load(S, above + q * LANES), load(S, here + q * LANES))
                    store(S, above + q * LANES, both)
        if first:
            return
        node = np.int64(parent)


@inner
def _load_rows(X, start, stop, x):
    """x[block, feature, lane] of rows; NaN beyond the last."""
    for b in range(x.shape[0]):
        for lane in range(LANES):
            row = start + b * LANES + lane
            for f in range(X.shape[1]):
                x[b, f * LANES + lane] = X[row, f] if row < stop else np.nan


@inner
def _chunk(X, nodes, sizes, places, weights, start, stop, out):
    """out[row, feature, output] of the rows start ... stop - 1."""
    p, K = X.shape[1], nodes.values.shape[1]
    blocks = (stop - start + LANES - 1) // LANES
    x = np.empty((blocks, p * LANES))
    phi = np.zeros((blocks, p * K * LANES))
    _load_rows(X, start, stop, x)
    down = np.empty((sizes.nodes, 3, sizes.points))
    up = np.empty((sizes.nodes, 2, sizes.points))
    P = np.empty((sizes.depth + 1) * sizes.points * LANES)
    S = np.empty((sizes.depth + 1) * K * sizes.points * LANES)
    passing = np.zeros(sizes.depth + 1, dtype=np.int64)
    left = np.zeros(sizes.depth + 1, dtype=np.int64)
    for t in range(nodes.roots.shape[0]):
        first, Q = nodes.roots[t], nodes.points[t]
        end = nodes.roots[t + 1] if t + 1 < nodes.roots.shape[0] else nodes.feature.shape[0]
        if end - first == 1:
            continue
        _factors(nodes, first, end, places[Q, :Q], down, up)
        for b in range(blocks):
            _walk(nodes, first, end, weights[Q, :Q], down, up, x[b], P, S, passing, left, phi[b])
    for row in range(start, stop):
        own, lane = phi[(row - start) // LANES], (row - start) % LANES
        for f in range(p):
            for k in range(K):
                out[row, f, k] = own[(f * K + k) * LANES + lane]


@inner
def _chunks(worker, first, last, X, nodes, sizes, places, weights, out):
    for chunk in range(first, last):
        start = chunk * sizes.rows
        _chunk(
            X, nodes, sizes, places, weights, start, min(start + sizes.rows, X.shape[0]), out
        )  # fmt: skip


@kernel
def _shapley(crew, X, nodes, sizes, places, weights, out):
    n_chunks = (X.shape[0] + sizes.rows - 1) // sizes.rows
    share(crew, n_chunks, _chunks, (X, nodes, sizes, places, weights, out))


def _frozen(array: np.ndarray, dtype: type) -> np.ndarray:
    """In one piece and read-only: one compiled kernel serves all input."""
    own: np.ndarray = np.ascontiguousarray(array, dtype=dtype).view()
    own.flags.writeable = False
    return own


def shapley_values(X: np.ndarray, forest: PackedForest, shares: PathShares, run: Run) -> np.ndarray:
    """[n, features, outputs]; the divisor and the intercept of the forest are not applied."""
    (n, p), K = X.shape, forest.values.shape[1]
    out = np.zeros((n, p, K))
    if n == 0 or len(forest.roots) == 0:
        return out
    points = int(shares.points.max())
    places, weights = np.zeros((2, points + 1, points))
    for Q in np.unique(shares.points).tolist():
        places[Q, :Q], weights[Q, :Q] = quadrature(Q)
    ends = np.append(forest.roots[1:], len(forest.feature))
    rows = min(MOST_ROWS, MOST_CELLS // (p * (K + 1)), n // (4 * run.threads))
    rows = max(LANES, -(-rows // LANES) * LANES)
    nodes, depth = int((ends - forest.roots).max()), int(shares.depth.max())
    own = Nodes(
        forest.roots, forest.feature, forest.threshold, forest.missing_left, forest.left,
        forest.subset, forest.subsets, _frozen(forest.values, np.float64), shares.parent,
        shares.depth, shares.twin, shares.share, shares.points,
    )  # fmt: skip
    sizes = Sizes(rows, nodes, points, depth)
    run.call(_shapley, _frozen(X, np.float64), own, sizes, places, weights, out)
    return out
