"""Which rounds a staged prediction stops at."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence


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
