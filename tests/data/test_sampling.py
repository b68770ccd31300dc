"""The held-out rows of early stopping."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ensemble_gpu.data.sampling import stratified_holdout


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
