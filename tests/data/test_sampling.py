"""The held-out rows of early stopping, and the rows that a round of boosting draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.data.sampling import drawn_rows, stratified_holdout
from tests.splitmix import M64, STEP, finaliser


@given(
    st.lists(st.integers(1, 60), min_size=2, max_size=4),
    st.floats(0.01, 0.9),
    st.integers(0, 2**31 - 1),
)
def test_every_class_keeps_a_row_and_gives_its_share(sizes, fraction, seed):
    index = np.repeat(np.arange(len(sizes)), sizes)
    if all(size == 1 for size in sizes):
        with pytest.raises(ValueError, match="validation_fraction"):
            stratified_holdout(index, len(sizes), fraction, seed)
        return
    chosen = stratified_holdout(index, len(sizes), fraction, seed)
    assert (np.diff(chosen) > 0).all()
    for c, size in enumerate(sizes):
        held = int((index[chosen] == c).sum())
        assert held < size
        assert held == min(max(1, round(fraction * size)), size - 1)


def test_one_seed_gives_one_sample_and_another_seed_another():
    index = np.repeat([0, 1], 100)
    first = stratified_holdout(index, 2, 0.2, 7)
    np.testing.assert_array_equal(first, stratified_holdout(index, 2, 0.2, 7))
    assert not np.array_equal(first, stratified_holdout(index, 2, 0.2, 8))


# Of the first forty rows those that seed 7 draws in round 3 with probability 0.3.
DRAWN = [3, 14, 15, 18, 21, 22, 24, 26, 27, 32, 35, 38]


def oracle(seed: int, round_: int, rows: range, share: float) -> list[bool]:
    """A hash of (seed, round, row) below the share of 2^64."""
    state = seed * 0xD1B54A32D192ED03 + round_ * 0x8CB92BA72F3D8DD7
    return [finaliser((state + row * STEP) & M64) < int(share * 2**64) for row in rows]


@given(
    st.integers(0, 2**31 - 1),
    st.integers(0, 10**6),
    st.integers(0, 10**9),
    st.floats(1e-6, 1.0, exclude_max=True),
)
def test_drawn_rows_are_those_of_splitmix64_in_plain_integers(seed, round_, first, share):
    rows = range(first, first + 200)
    found = drawn_rows(seed, round_, slice(first, first + 200), share, locate(np.zeros(1)))
    assert found.tolist() == oracle(seed, round_, rows, share)


def test_the_rows_drawn_from_a_seed_stay_the_same_for_good(place):
    found = drawn_rows(7, 3, slice(0, 40), 0.3, locate(place.put(np.zeros(1))))
    place.check(found, "bool")
    assert np.flatnonzero(place.host(found)).tolist() == DRAWN


def test_the_share_of_drawn_rows_is_the_one_asked_for():
    drawn = drawn_rows(0, 0, slice(0, 100_000), 0.2, locate(np.zeros(1)))
    assert abs(drawn.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 100_000)
