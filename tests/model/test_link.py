"""Probabilities and the log-loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.model.link import log_loss, probabilities
from tests.places import Place

wild = st.one_of(st.sampled_from([0.0, 5.0, -5.0, 300.0, -300.0]), st.floats(-1e4, 1e4, width=32))


@pytest.mark.parametrize("votes", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_the_largest_margin_has_the_largest_probability(votes, dtype, data):
    outputs = data.draw(st.sampled_from([3, 5] if votes else [1, 3, 5]))
    F = data.draw(hnp.arrays(dtype, (4, outputs), elements=wild))
    p = probabilities(F, votes, locate(F))
    margins = np.concatenate([-F, F], axis=1) if outputs == 1 else F
    assert p.dtype == dtype
    assert np.isfinite(p).all()
    np.testing.assert_array_equal(p.argmax(axis=1), margins.argmax(axis=1))
    for i in range(4):  # strictly: no smaller margin ties with the largest
        smaller = margins[i] < margins[i].max()
        assert (p[i, smaller] < p[i].max()).all()


def test_log_loss_is_the_weighted_mean_of_minus_log_p(place: Place):
    F = np.array([[0.3], [-1.0], [2.0]])
    index, weights = np.array([1, 1, 0]), np.array([1.0, 2.0, 0.5])
    p = [1 / (1 + math.exp(-2 * v)) for v in (0.3, -1.0, -2.0)]
    expected = [-math.log(v) for v in p]
    args = place.put(F), place.put(index)
    where = locate(args[0])
    assert log_loss(*args, None, False, where) == pytest.approx(np.mean(expected), rel=1e-12)
    found = log_loss(*args, place.put(weights), False, where)
    assert found == pytest.approx(np.average(expected, weights=weights), rel=1e-12)


def test_log_loss_of_a_certain_mistake_is_finite():
    F = np.array([[900.0]])
    loss = log_loss(F, np.array([0]), None, False, locate(F))
    assert 700 < loss < 2000
