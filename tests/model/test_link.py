"""The table of links, probabilities and the log-loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.model.link import LINKS, log_loss, probabilities
from tests.places import Place

wild = st.one_of(st.sampled_from([0.0, 5.0, -5.0, 300.0, -300.0]), st.floats(-1e4, 1e4, width=32))


@pytest.mark.parametrize("link", ["margins", "votes", "logistic", "linear"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_the_largest_margin_has_the_largest_probability(link, dtype, data):
    widths = {"votes": [3, 5], "logistic": [1]}.get(link, [1, 3, 5])
    F = data.draw(hnp.arrays(dtype, (4, data.draw(st.sampled_from(widths))), elements=wild))
    outputs, p = F.shape[1], probabilities(F, link, locate(F))
    margins = np.concatenate([-F, F], axis=1) if outputs == 1 else F
    assert p.dtype == dtype
    assert ((p >= 0.0) & (p <= 1.0)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=8 * np.finfo(dtype).eps)
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
    assert log_loss(*args, None, "margins", where) == pytest.approx(np.mean(expected), rel=1e-12)
    found = log_loss(*args, place.put(weights), "margins", where)
    assert found == pytest.approx(np.average(expected, weights=weights), rel=1e-12)


def test_log_loss_of_a_certain_mistake_is_finite():
    F = np.array([[900.0]])
    loss = log_loss(F, np.array([0]), None, "margins", locate(F))
    assert 700 < loss < 2000


ONE = np.array([-5.0, -1.0, -0.3, 0.0, 0.3, 1.0, 5.0])
OF_ONE = {
    "margins": 1.0 / (1.0 + np.exp(-2.0 * ONE)),
    "logistic": 1.0 / (1.0 + np.exp(-ONE)),
    "linear": np.clip(0.5 + 0.5 * ONE, 0.0, 1.0),
}


@pytest.mark.parametrize("link", OF_ONE)
def test_the_probability_of_one_output_is_its_formula(place: Place, link):
    F = place.put(ONE[:, None])
    p = probabilities(F, link, locate(F))
    place.check(p, "float64")
    expected = np.stack([1.0 - OF_ONE[link], OF_ONE[link]], axis=1)
    np.testing.assert_allclose(place.host(p), expected, rtol=1e-12, atol=1e-14)


def test_the_probabilities_of_several_outputs_are_their_formulas(place: Place):
    F = np.array([[0.2, -0.4, 0.9], [0.0, 0.5, 0.1]])
    there = place.put(F)
    for link, shares in {
        "margins": 1.0 / (1.0 + np.exp(-2.0 * F)), "votes": np.exp(F), "linear": 1.0 + F,
    }.items():  # fmt: skip
        p = place.host(probabilities(there, link, locate(there)))
        np.testing.assert_allclose(p, shares / shares.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_linear_probability_is_never_zero(outputs, dtype):
    """So that its logarithm is finite, as for the other links."""
    F = np.array([[-1e6] * outputs, [1e6] * outputs, [0.0] * outputs], dtype=dtype)
    F[:, 0] *= -1.0
    p = probabilities(F, "linear", locate(F))
    assert (p > 0.0).all()
    assert np.isfinite(np.log(p)).all()


def test_many_rows_have_the_probabilities_of_few(place: Place):
    """NumPy takes rows in blocks."""
    F = np.random.default_rng(0).normal(size=(20_000, 1))
    for link in OF_ONE:
        many = place.put(F)
        p = place.host(probabilities(many, link, locate(many)))
        few = place.put(F[9_000:9_010])
        alone = place.host(probabilities(few, link, locate(few)))
        np.testing.assert_array_equal(p[9_000:9_010], alone)


OF_CLASSES = [name for name, link in LINKS.items() if link.probabilities is not None]


@pytest.mark.parametrize("link", [name for name in OF_CLASSES if name != "votes"])
@given(F=hnp.arrays(np.float64, 7, elements=st.floats(-1e4, 1e4)))
def test_the_probability_of_the_second_class_is_the_mean(link, F):
    p = probabilities(F[:, None], link, locate(F))[:, 1]
    np.testing.assert_allclose(p, LINKS[link].mean(F, np.exp), rtol=1e-12, atol=1e-15)


@given(F=hnp.arrays(np.float64, (3, 4), elements=st.floats(-1e4, 1e4)))
def test_the_probabilities_of_votes_are_their_means(F):
    p = probabilities(F, "votes", locate(F))
    np.testing.assert_allclose(p, LINKS["votes"].mean(F, np.exp), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("link", LINKS)
def test_the_output_of_a_mean_has_that_mean(place: Place, link):
    mean = place.put(np.array([[0.125, 0.25, 0.625], [0.125, 0.375, 0.5]]))  # rows of sum 1
    F = LINKS[link].output(mean)
    place.check(F, "float64")
    again = place.host(LINKS[link].mean(F, locate(F).xp.exp))
    np.testing.assert_allclose(again, place.host(mean), rtol=1e-14)


@pytest.mark.parametrize("link", ["identity", "log"])
def test_links_of_numbers_have_no_probabilities(link):
    F = np.zeros((2, 1))
    with pytest.raises(ValueError, match=f"link must be one of .*'margins'.*; got '{link}'"):
        probabilities(F, link, locate(F))
