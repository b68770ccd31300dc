"""Bags of rows as integer counts, drawn on the host by a counter-based hash.

Draw i of a tree depends on (seed, tree, i) and on nothing else: not on the array library, the
number of threads or the order in which trees are grown. Every function gives int32 counts [n_rows].
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from ensemble_gpu.kernels.host.hashing import STEP, mix
from ensemble_gpu.kernels.jit import inner, kernel

# Odd constants as in data/sampling.py, one each for seed and tree.
OF_SEED = np.uint64(0xD1B54A32D192ED03)
OF_TREE = np.uint64(0x8CB92BA72F3D8DD7)


@inner
def _start(seed, tree):
    """Where the numbers of a tree begin: `mix(start + i STEP)` is the i-th, i = 0, 1, ..."""
    return mix(mix(np.uint64(seed) * OF_SEED) + np.uint64(tree) * OF_TREE) + STEP


@kernel
def stream(seed, tree):
    """`_start` for Python."""
    return _start(seed, tree)


@register_jitable
def below(x, n):
    """floor(x n / 2^64): uniform on 0 .. n - 1 for a uniform x of 64 bits and n < 2^32."""
    n = np.uint64(n)
    low = (x & np.uint64(0xFFFFFFFF)) * n
    return ((x >> np.uint64(32)) * n + (low >> np.uint64(32))) >> np.uint64(32)


@register_jitable
def unit(x):
    """The upper 53 bits of x as a number in [0, 1)."""
    return np.float64(x >> np.uint64(11)) * 2.0**-53


@kernel
def bootstrap_counts(seed, tree, n_rows, n_draws):
    """How often each row is drawn in `n_draws` draws with replacement."""
    counts = np.zeros(n_rows, dtype=np.int32)
    x = _start(seed, tree)
    for _ in range(n_draws):
        counts[below(mix(x), n_rows)] += 1
        x += STEP
    return counts


@kernel
def subset_counts(seed, tree, n_rows, n_draws):
    """Ones for `n_draws` <= n_rows rows drawn without replacement, zeros for the others.

    Selection sampling: a row is taken with probability (rows to take) / (rows to come), so every
    subset is equally likely (Knuth, The Art of Computer Programming 2, 3.4.2, algorithm S).
    """
    counts = np.zeros(n_rows, dtype=np.int32)
    x = _start(seed, tree)
    wanted = np.uint64(n_draws)
    for i in range(n_rows):
        taken = below(mix(x), n_rows - i) < wanted
        counts[i] = taken
        wanted -= np.uint64(taken)
        x += STEP
    return counts


@kernel
def _add_draws(seed, tree, upper, last, n_draws, counts):
    """counts[row] += draws that fall on the row: the first whose cumulated weight exceeds u.

    A table of n_rows equal parts of [0, total) says where to begin looking: one step on average.
    """
    n_rows = upper.shape[0]
    total = upper[n_rows - 1]
    begin = np.empty(n_rows, dtype=np.int64)
    row = 0
    for part in range(n_rows):
        while row < last and upper[row] <= total * (part / n_rows):
            row += 1
        begin[part] = row
    x = _start(seed, tree)
    for _ in range(n_draws):
        share = unit(mix(x))
        row = begin[min(np.int64(share * n_rows), n_rows - 1)]
        while row > 0 and upper[row - 1] > total * share:
            row -= 1
        while row < last and upper[row] <= total * share:
            row += 1
        counts[row] += 1
        x += STEP


def weighted_counts(seed: int, tree: int, weights: np.ndarray, n_draws: int) -> np.ndarray:
    """As `bootstrap_counts`, each draw with probability in proportion to `weights` >= 0."""
    counts = np.zeros(len(weights), dtype=np.int32)
    shares = weights / weights.max()  # a sum of the largest floats would overflow
    last = int(np.flatnonzero(shares)[-1])
    _add_draws(seed, tree, np.cumsum(shares), last, n_draws, counts)
    return counts


@kernel
def _add_waits(seed, tree, shares, wait):
    """wait[i] = -log(u_i) / w_i; unchanged for rows without weight."""
    x = _start(seed, tree)
    for i in range(shares.shape[0]):
        if shares[i] > 0.0:
            wait[i] = -np.log(1.0 - unit(mix(x))) / shares[i]
        x += STEP


def weighted_subset_counts(seed: int, tree: int, weights: np.ndarray, n_draws: int) -> np.ndarray:
    """As `subset_counts`, drawn one after the other in proportion to the weights of those left.

    Row i waits for -log(u_i) / w_i; the first `n_draws` to arrive are the subset (Efraimidis and
    Spirakis 2006). Rows without weight never arrive: there may be fewer than `n_draws` others.
    """
    wait = np.full(len(weights), np.inf)
    _add_waits(seed, tree, weights / weights.max(), wait)
    first = np.argsort(wait, kind="stable")[:n_draws]
    counts = np.zeros(len(weights), dtype=np.int32)
    counts[first[wait[first] < np.inf]] = 1
    return counts


@kernel
def add_up(rows, drawn, n_rows):
    counts = np.zeros(n_rows, dtype=np.int32)
    for i in range(len(rows)):
        counts[rows[i]] += drawn[i]
    return counts
