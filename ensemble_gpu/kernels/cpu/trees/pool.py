"""Sums of large nodes, kept for their children: those of one child come from its sibling's.

A task is a pair of siblings, or the root: the smaller one's rows are added up (pool_sums.py), what
they leave of the parent's sums is the larger one's, and both are searched (pool_search.py). Here
are the slots that hold sums, and the tasks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemble_gpu.kernels.cpu.memory import scratch_array
from ensemble_gpu.kernels.cpu.trees.meetings import n_listed
from ensemble_gpu.kernels.cpu.trees.rows import FEATURES
from ensemble_gpu.kernels.host.records import FoundArrays
from ensemble_gpu.kernels.jit import inner

# Rows whose codes are fetched at once: they stay in the second-level cache while tiles take turns.
# FETCHED times 2^PACK_BITS < 2^31: neither half of the sums of packed values can overflow.
FETCHED = 4096
# Sums are kept where at least one in so many features is tried.
TRIED = 4
# Columns of a task: rows start ... stop - 1 are added up in `slot` and taken from slot `minus` (-1:
# from none); `small` and `large` are the nodes' places in the block (-1: not looked at).
START, STOP, SLOT, MINUS, SMALLER, LARGER, TASK = range(7)


class Pool(NamedTuple):
    """Sums cells[slot, feature, :, code] = (x 2^shift + rows, y); see `Counting`.

    `free[:n_free[0]]` are the slots that nobody has; slot[node] is a node's (-1: none),
    inherited[node] what a left child may have of its parent. `route[place]` says which of the
    found belong to a node of the block (-1: none, its rows are searched). `found` has an entry for
    every task, sibling and part of the tiles. `fetched`, `scratch` and `partial`, sums of its share
    of a task, are a worker's; the last two are zero before and after.
    """

    cells: np.ndarray
    free: np.ndarray
    n_free: np.ndarray
    slot: np.ndarray
    inherited: np.ndarray
    route: np.ndarray
    tasks: np.ndarray
    found: FoundArrays
    fetched: np.ndarray
    scratch: np.ndarray
    partial: np.ndarray
    keep_rows: int


def pool_for(
    cells: np.ndarray, n_nodes: int, block: int, found: FoundArrays, workers: int, keep_rows: int
) -> Pool:
    n_slots, n_tiles = len(cells), cells.shape[1] // FEATURES
    return Pool(
        cells,
        np.arange(n_slots - 1, -1, -1),
        np.array([n_slots]),
        scratch_array((n_nodes,), np.int64),
        scratch_array((n_nodes,), np.int64),
        np.empty(block, dtype=np.int64),
        np.empty((n_slots, TASK), dtype=np.int64),
        found,
        np.empty((workers, n_tiles, FETCHED), dtype=np.uint64),
        np.zeros((workers, FEATURES * 256), dtype=np.int64),
        np.zeros((workers if workers > 1 else 0, *cells.shape[1:]), dtype=np.int64),
        keep_rows,
    )


@inner
def release(pool, slot):
    """Nobody needs the slot any more."""
    pool.free[pool.n_free[0]] = slot
    pool.n_free[0] += 1


@inner
def _claim(pool):
    pool.n_free[0] -= 1
    return pool.free[pool.n_free[0]]


@inner(forceinline=True)
def release_unclaimed(pool, first, stop):
    """Nodes first ... stop - 1 were looked at; no child asked for some sums."""
    for node in range(first, stop):
        if pool.inherited[node] >= 0:
            release(pool, pool.inherited[node])
            pool.inherited[node] = -1


@inner(forceinline=True)
def plan(pool, nodes, m, ranges, features, p):
    """Tasks for the sums of the large ones among the m nodes of a block; how many.

    Sums are of all p features: a node that tries few of them (TRIED) goes without.
    """
    tasks, route, slots, inherited = pool.tasks, pool.route, pool.slot, pool.inherited
    starts, stops, keep_rows = ranges[0], ranges[1], pool.keep_rows
    n, i = 0, 0
    while i < m:
        left = nodes[i] - (nodes[i] + 1) % 2 if nodes[i] > 0 else nodes[i]
        # places of the siblings in the block; -1: not there
        a, b = np.int64(-1), np.int64(-1)
        if nodes[i] == left:
            a = i
            i += 1
        if left > 0 and i < m and nodes[i] == left + 1:
            b = i
            i += 1
        kept, inherited[left] = inherited[left], -1
        small, large, smaller, larger = a, b, left, left + 1
        if left == 0 or stops[left] - starts[left] > stops[larger] - starts[larger]:
            small, large, smaller, larger = b, a, left + 1, left
        if small >= 0:
            route[small], slots[smaller] = -1, -1
        if large >= 0:
            route[large], slots[larger] = -1, -1
        enough = large >= 0 and stops[larger] - starts[larger] >= keep_rows
        if enough:
            own = large if features.shape[0] > 1 else 0
            enough = TRIED * n_listed(features, own) >= p
        # the larger one alone from its rows, or both from the smaller one's
        alone = enough and kept < 0 and pool.n_free[0] > 0
        both = enough and kept >= 0 and pool.n_free[0] > 0
        if alone or both:
            slot = _claim(pool)
            added = smaller if both else larger
            tasks[n, START], tasks[n, STOP] = starts[added], stops[added]
            tasks[n, SLOT], tasks[n, MINUS] = slot, kept
            tasks[n, SMALLER], tasks[n, LARGER] = small if both else large, large if both else -1
            route[large], slots[larger] = 2 * n + both, kept if both else slot
            if both and small >= 0:
                route[small], slots[smaller] = 2 * n, slot
            n += 1
        elif kept >= 0:
            release(pool, kept)
    return n


@inner(forceinline=True)
def release_borrowed(pool, n):
    """Slots that served only to make a larger sibling's sums."""
    for i in range(n):
        if pool.tasks[i, SMALLER] < 0:
            release(pool, pool.tasks[i, SLOT])
