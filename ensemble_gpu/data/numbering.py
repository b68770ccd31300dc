"""The numbers of items among those of all workers: by the keys of their rows.

Items are numbered in order of (key, ...) of their rows, wherever these are. Every worker tells the
others its keys in order, a stretch of the keys at a time, and counts how many items come before its
own: keys of 64 bits are spread evenly, and so are the stretches.
"""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.team import Team

# Rows of all workers in a stretch, about: bounds the memory.
STRETCH = 1 << 22


def numbered(
    keys: np.ndarray, ties: np.ndarray, repeats: np.ndarray | None, team: Team
) -> tuple[np.ndarray, int]:
    """(the number of each row's first item, how many items there are), of all workers.

    Row i has `repeats[i]` items (None: one). Rows are in order of uint64 keys, and of `ties`
    [rows, k] where those are equal.
    """
    n = len(keys)
    order = np.lexsort((*ties.T[::-1], keys))
    keys, ties = keys[order], ties[order]
    sizes = np.ones(n, dtype=np.int64) if repeats is None else repeats[order].astype(np.int64)
    before = np.concatenate([[0], np.cumsum(sizes)])
    bits = (team.count(n) // STRETCH).bit_length()
    ends = [n]
    if bits:
        stretch = keys >> np.uint64(64 - bits)
        ends = np.searchsorted(stretch, np.arange(1 << bits), side="right").tolist()
    first = before[:-1].copy()
    low = 0
    for high in ends:
        first[low:high] += _before_others(
            keys[low:high], ties[low:high], before[low : high + 1], team
        )
        low = high
    out = np.empty(n, dtype=np.int64)
    out[order] = first
    return out, team.count(int(before[-1]))


def _before_others(
    keys: np.ndarray, ties: np.ndarray, before: np.ndarray, team: Team
) -> np.ndarray:
    """Items of other workers that come before each row of a stretch.

    `before` are this worker's items before each of its rows, and after the last.
    """
    rank, found = team.reduce.rank, np.zeros(len(keys), dtype=np.int64)
    every, items = team.reduce.gather(keys), team.reduce.gather(before)
    others = [k for k in range(len(every)) if k != rank]
    meet = team.any(any(bool(np.isin(every[k], keys).any()) for k in others))
    rows = team.reduce.gather(ties) if meet else []
    for k in others:
        found += items[k][np.searchsorted(every[k], keys)]
        if meet:
            found += _among_equals(keys, ties, every[k], rows[k], np.diff(items[k]))
    return found


def _among_equals(
    keys: np.ndarray, ties: np.ndarray, others: np.ndarray, their_ties: np.ndarray,
    sizes: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Items of rows with the same key and lesser ties; both are in order of keys."""
    out = np.zeros(len(keys), dtype=np.int64)
    mine, theirs = np.isin(keys, others), np.isin(others, keys)
    keys, ties = keys[mine], ties[mine]
    others, their_ties, sizes = others[theirs], their_ties[theirs], sizes[theirs]
    both = np.concatenate([keys, others])
    order = np.lexsort((*np.concatenate([ties, their_ties]).T[::-1], both))
    counted = np.concatenate([np.zeros(len(keys), dtype=np.int64), sizes])[order]
    up_to = np.empty(len(both), dtype=np.int64)
    up_to[order] = np.cumsum(counted)
    smaller = np.concatenate([[0], np.cumsum(sizes)])[np.searchsorted(others, keys)]
    out[mine] = up_to[: len(keys)] - smaller
    return out
