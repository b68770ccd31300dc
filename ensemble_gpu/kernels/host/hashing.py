"""Random numbers from counters: the same on every device, in any order."""

from __future__ import annotations

import numpy as np

from ensemble_gpu.kernels.jit import inner, kernel

# The golden ratio as an odd integer: what splitmix64 adds from number to number.
STEP = np.uint64(0x9E3779B97F4A7C15)


@inner
def mix(x):
    """The finaliser of splitmix64: every bit of x changes half the bits of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def draw(key, a, b):
    """A random number of a key and two counters, uint64."""
    first = mix(key + (a + np.uint64(1)) * STEP)
    return mix(first + (b + np.uint64(1)) * STEP)


@kernel
def mixed(x):
    """`mix` for Python."""
    return mix(x)


@kernel
def drawn(key, a, b):
    """`draw` for Python, of any integers."""
    return draw(key, np.uint64(a), np.uint64(b))
