"""Bags of rows as integer counts, drawn on the host by a counter-based hash.

Draw i of a tree depends on (seed, tree, i) and on nothing else: not on the array library, the
number of threads or the order in which trees are grown. Every function gives int32 counts [n_rows].
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ensemble_gpu.kernels.host.hashing import STEP, mixed

# Odd constants as in data/sampling.py, one each for seed and tree.
OF_SEED = np.uint64(0xD1B54A32D192ED03)
OF_TREE = np.uint64(0x8CB92BA72F3D8DD7)


@njit(cache=True, nogil=True)
def stream(seed, tree):
    """Where the numbers of a tree begin: `mixed(stream + i STEP)` is the i-th, i = 0, 1, ..."""
    return mixed(mixed(np.uint64(seed) * OF_SEED) + np.uint64(tree) * OF_TREE) + STEP


@njit(cache=True, nogil=True)
def below(x, n):
    """floor(x n / 2^64): uniform on 0 .. n - 1 for a uniform x of 64 bits and n < 2^32."""
    n = np.uint64(n)
    low = (x & np.uint64(0xFFFFFFFF)) * n
    return ((x >> np.uint64(32)) * n + (low >> np.uint64(32))) >> np.uint64(32)


@njit(cache=True, nogil=True)
def unit(x):
    """The upper 53 bits of x as a number in [0, 1)."""
    return np.float64(x >> np.uint64(11)) * 2.0**-53


@njit(cache=True, nogil=True)
def bootstrap_counts(seed, tree, n_rows, n_draws):
    """How often each row is drawn in `n_draws` draws with replacement."""
    counts = np.zeros(n_rows, dtype=np.int32)
    x = stream(seed, tree)
    for _ in range(n_draws):
        counts[below(mixed(x), n_rows)] += 1
        x += STEP
    return counts


@njit(cache=True, nogil=True)
def subset_counts(seed, tree, n_rows, n_draws):
    """Ones for `n_draws` <= n_rows rows drawn without replacement, zeros for the others.

    Selection sampling: a row is taken with probability (rows to take) / (rows to come), so every
    subset is equally likely (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S).
    """
    counts = np.zeros(n_rows, dtype=np.int32)
    x = stream(seed, tree)
    wanted = np.uint64(n_draws)
    for i in range(n_rows):
        taken = below(mixed(x), n_rows - i) < wanted
        counts[i] = taken
        wanted -= np.uint64(taken)
        x += STEP
    return counts


@njit(cache=True, nogil=True)
def weighted_counts(seed, tree, weights, n_draws):
    """As `bootstrap_counts`, each draw with probability in proportion to `weights` >= 0.

    The draw u in [0, total) falls on the first row whose cumulated weight exceeds it. A table of
    n_rows equal parts of [0, total) says where to begin looking: one step on average.
    """
    n_rows = len(weights)
    counts = np.zeros(n_rows, dtype=np.int32)
    scale = np.max(weights)  # a sum of the largest floats would overflow
    upper = np.cumsum(weights / scale)
    total = upper[-1]
    last = n_rows - 1
    while weights[last] / scale == 0.0:
        last -= 1
    begin = np.empty(n_rows, dtype=np.int64)
    row = 0
    for part in range(n_rows):
        while row < last and upper[row] <= total * (part / n_rows):
            row += 1
        begin[part] = row
    x = stream(seed, tree)
    for _ in range(n_draws):
        share = unit(mixed(x))
        row = begin[min(np.int64(share * n_rows), n_rows - 1)]
        while row > 0 and upper[row - 1] > total * share:
            row -= 1
        while row < last and upper[row] <= total * share:
            row += 1
        counts[row] += 1
        x += STEP
    return counts


@njit(cache=True, nogil=True)
def weighted_subset_counts(seed, tree, weights, n_draws):
    """As `subset_counts`, drawn one after the other in proportion to the weights of those left.

    Row i waits for -log(u_i) / w_i; the first `n_draws` to arrive are the subset (Efraimidis and
    Spirakis 2006). Rows without weight never arrive: there may be fewer than `n_draws` others.
    """
    n_rows = len(weights)
    wait = np.full(n_rows, np.inf)
    scale = np.max(weights)
    x = stream(seed, tree)
    for i in range(n_rows):
        w = weights[i] / scale
        if w > 0.0:
            wait[i] = -np.log(1.0 - unit(mixed(x))) / w
        x += STEP
    counts = np.zeros(n_rows, dtype=np.int32)
    for i in np.argsort(wait, kind="mergesort")[:n_draws]:
        if wait[i] < np.inf:
            counts[i] = 1
    return counts


@njit(cache=True, nogil=True)
def add_up(rows, drawn, n_rows):
    counts = np.zeros(n_rows, dtype=np.int32)
    for i in range(len(rows)):
        counts[rows[i]] += drawn[i]
    return counts
