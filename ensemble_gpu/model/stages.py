"""Which rounds a staged prediction stops at, and what belongs to a round.

A round is a stump or a tree, or several of them: `ends[t]` of them are in rounds 0 ... t.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence

import numpy as np


def checked_ends(ends: np.ndarray | None, n: int) -> np.ndarray | None:
    """The ends of rounds as a read-only array; the last one is n, the number of stumps or trees."""
    if ends is None:
        return None
    own = np.array(ends, dtype=np.int64)
    if own.ndim != 1 or (np.diff(own, prepend=0) <= 0).any() or (own[-1] if len(own) else 0) != n:
        raise ValueError(f"ends must ascend to {n}, the number of stumps or trees; got {ends!r}.")
    own.flags.writeable = False
    return own


def joined_ends(ends: np.ndarray | None, joined: np.ndarray) -> np.ndarray:
    """The ends of rounds that are joined into larger ones: joined[t] of them are in 0 ... t."""
    return joined if ends is None else ends[np.asarray(joined, dtype=np.int64) - 1]


def last_of(ends: np.ndarray | None, n_rounds: int) -> int:
    """How many stumps or trees the first n rounds have."""
    return n_rounds if ends is None or n_rounds == 0 else int(ends[n_rounds - 1])


def stages(rounds: Sequence[int] | None, n_rounds: int) -> list[tuple[int, int]]:
    """(previous, next) numbers of rounds or trees, checked; None: all of them one by one."""
    if rounds is None:
        return [(t, t + 1) for t in range(n_rounds)]
    if not isinstance(rounds, Iterable):
        raise TypeError(f"rounds must be a list of integers; got {rounds!r}.")
    before = 0
    pairs: list[tuple[int, int]] = []
    for after in rounds:
        if isinstance(after, bool) or not isinstance(after, numbers.Integral):
            raise TypeError(f"rounds must hold integers; got {after!r}.")
        if not before <= after <= n_rounds:
            raise ValueError(
                f"rounds must ascend from 0 to {n_rounds}, the rounds of the model; got {after!r} "
                f"after {before!r}."
            )
        pairs.append((before, int(after)))
        before = int(after)
    return pairs
