"""The hash behind all random choices: splitmix64, number for number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.kernels.host.hashing import STEP, drawn, mixed
from tests import splitmix

WORDS = st.integers(0, 2**64 - 1)
COUNTERS = st.integers(0, 2**32)
# The first numbers of the generator after the state 1234567, as they are published with it.
PUBLISHED = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_the_oracle_gives_the_published_numbers():
    assert splitmix.numbers(1234567, 5) == PUBLISHED


def test_the_published_numbers_are_hashes_of_a_counter():
    with np.errstate(over="ignore"):
        states = np.uint64(1234567) + np.arange(1, 6, dtype=np.uint64) * STEP
    assert [int(mixed(state)) for state in states] == PUBLISHED


@given(WORDS, COUNTERS, COUNTERS)
def test_a_number_of_a_key_and_two_counters_is_two_steps_of_splitmix64(key, a, b):
    first = splitmix.finaliser((key + (a + 1) * splitmix.STEP) & splitmix.M64)
    wanted = splitmix.finaliser((first + (b + 1) * splitmix.STEP) & splitmix.M64)
    assert int(drawn(np.uint64(key), a, b)) == wanted
