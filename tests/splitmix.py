"""splitmix64 in integers without a limit: the oracle of everything that is drawn by a hash."""

from __future__ import annotations

M64 = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def finaliser(x: int) -> int:
    """How splitmix64 makes a random number of its state."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & M64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & M64
    return x ^ (x >> 31)


def numbers(state: int, n: int) -> list[int]:
    """The first n numbers of splitmix64 after this state."""
    return [finaliser((state + i * STEP) & M64) for i in range(1, n + 1)]
