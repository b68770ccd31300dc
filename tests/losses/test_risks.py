"""Risks of losses of the margin: closed forms, invariants, custom losses, bad input (SPEC B10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ensemble_gpu.losses import (
    CLASSIFICATION,
    CustomLoss,
    LogitBoost,
    Margin,
    Multinomial,
    conditional_risk,
    minimiser,
    optimal_risk,
    wrong_side_risk,
)
from tests.losses.shapes import LINEAR, RAMP, RISING, SHIFTED, TILTED, searched
from tests.places import DEVICE

ETA = np.linspace(0.0, 1.0, 101)
INNER = ETA[1:-1]


def entropy(eta: np.ndarray) -> np.ndarray:
    terms = [-p * np.log(np.where(p > 0.0, p, 1.0)) for p in (eta, 1.0 - eta)]
    return terms[0] + terms[1]


H = {
    "exponential": lambda eta: 2.0 * np.sqrt(eta * (1.0 - eta)),
    "logistic": entropy,
    "squared": lambda eta: 4.0 * eta * (1.0 - eta),
    "truncated_squared": lambda eta: 4.0 * eta * (1.0 - eta),
    "hinge": lambda eta: 2.0 * np.minimum(eta, 1.0 - eta),
}
A = {
    "exponential": lambda eta: 0.5 * np.log(eta / (1.0 - eta)),
    "logistic": lambda eta: np.log(eta / (1.0 - eta)),
    "squared": lambda eta: 2.0 * eta - 1.0,
    "truncated_squared": lambda eta: 2.0 * eta - 1.0,
    "hinge": lambda eta: np.sign(2.0 * eta - 1.0),
}
each = pytest.mark.parametrize("name", CLASSIFICATION)


@each
@pytest.mark.parametrize("form", ["closed", "searched"])
def test_least_risks_and_minimisers_have_their_closed_forms(name, form):
    loss: Any = name if form == "closed" else searched(name)
    np.testing.assert_allclose(optimal_risk(loss, ETA), H[name](ETA), rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(minimiser(loss, INNER), A[name](INNER), rtol=0.0, atol=1e-10)
    at_zero = float(CLASSIFICATION[name]().value(np.ones(1), np.zeros(1))[0])
    np.testing.assert_allclose(wrong_side_risk(loss, ETA), at_zero, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("loss", [*CLASSIFICATION, LogitBoost(), RAMP, SHIFTED, TILTED])
def test_the_least_risk_is_concave_even_about_a_half_and_the_infimum_at_certainty(loss):
    risk = optimal_risk(loss, ETA)
    assert (risk[1:-1] >= 0.5 * (risk[:-2] + risk[2:]) - 1e-12).all()
    np.testing.assert_allclose(risk, risk[::-1], atol=1e-12)
    v = np.linspace(-60.0, 60.0, 1201)
    infimum = conditional_risk(loss, 1.0, v).min()
    np.testing.assert_allclose(risk[[0, -1]], infimum, atol=1e-12)
    assert (wrong_side_risk(loss, ETA) >= risk - 1e-12).all()


@pytest.mark.parametrize("loss", [RAMP, SHIFTED, TILTED], ids=lambda loss: loss.name)
def test_a_search_finds_what_brute_force_finds(loss):
    a = np.concatenate([np.linspace(-8.0, 8.0, 16001), [-1e9, 1e9]])
    for eta in (0.0, 0.2, 0.5, 0.7, 1.0):
        risks = conditional_risk(loss, eta, a)
        assert optimal_risk(loss, eta) == pytest.approx(risks.min(), abs=1e-6)
        wrong = risks[a * np.sign(2.0 * eta - 1.0) <= 0.0]
        assert wrong_side_risk(loss, eta) == pytest.approx(wrong.min(), abs=1e-6)
        at = minimiser(loss, eta)
        if np.isfinite(at):
            assert conditional_risk(loss, eta, at) == optimal_risk(loss, eta)


def test_minimisers_at_infinity_are_infinite_and_those_of_a_flat_risk_nearest_to_zero():
    np.testing.assert_array_equal(minimiser("exponential", [0.0, 0.5, 1.0]), [-np.inf, 0.0, np.inf])
    np.testing.assert_array_equal(minimiser(RISING, [0.0, 1.0]), [np.inf, -np.inf])
    np.testing.assert_array_equal(minimiser("hinge", [0.0, 0.5, 1.0]), [-1.0, 0.0, 1.0])
    assert optimal_risk("exponential", 1.0) < 1e-200


def test_the_conditional_risk_is_its_formula_for_arrays_that_go_together():
    eta, a = np.array([[0.2], [0.9]]), np.array([-1.0, 0.0, 2.0])
    expected = eta * np.exp(-a) + (1.0 - eta) * np.exp(a)
    np.testing.assert_allclose(conditional_risk("exponential", eta, a), expected, rtol=1e-15)
    assert conditional_risk("log_loss", 0.5, 0.0) == pytest.approx(np.log(2.0))
    assert conditional_risk(Multinomial(), 0.5, 0.0) == pytest.approx(np.log(2.0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("function", [optimal_risk, wrong_side_risk, minimiser])
def test_arrays_of_a_library_come_back_as_such(function, dtype):
    eta = DEVICE.put(np.array([[0.1, 0.5], [0.75, 1.0]], dtype=dtype))
    found = function("squared", eta)
    DEVICE.check(found, dtype)
    np.testing.assert_allclose(DEVICE.host(found), function("squared", DEVICE.host(eta)), rtol=1e-6)
    DEVICE.check(conditional_risk("squared", 0.5, eta), dtype)


def test_many_probabilities_are_taken_in_blocks():
    eta = np.linspace(0.01, 0.99, 5000)
    np.testing.assert_allclose(
        minimiser(searched("squared"), eta), 2.0 * eta - 1.0, rtol=0.0, atol=1e-10
    )


def test_a_margin_loss_without_a_closed_form_is_searched():
    class Mine(Margin):
        name = "mine"
        link_name = "margins"

        def value(self, y, F):
            return np.exp(-y * F)

        def derivatives(self, y, F):
            return -y * np.exp(-y * F), np.exp(-y * F)

    np.testing.assert_allclose(minimiser(Mine(), INNER), A["exponential"](INNER), atol=1e-10)


@pytest.mark.parametrize("function", [optimal_risk, wrong_side_risk, minimiser])
def test_bad_input_is_refused_in_words(function):
    for eta in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"eta must be in \[0, 1\]; got"):
            function("hinge", eta)
    with pytest.raises(ValueError, match=r"loss must be one of .* got 'absolute'"):
        function("absolute", 0.5)
    with pytest.raises(ValueError, match="'linear' has no minimiser: it falls without bound"):
        function(LINEAR, 0.7)
    asymmetric = CustomLoss(
        lambda y, F: (1.0 + y) * F * F, lambda y, F: 2.0 * (1.0 + y) * F, task="classification"
    )
    with pytest.raises(ValueError, match=r"not a function of the margin: l\(-1, -F\) must equal"):
        function(asymmetric, 0.5)
    regression = CustomLoss(lambda y, F: (y - F) ** 2, lambda y, F: 2.0 * (F - y))
    with pytest.raises(ValueError, match="which is for regression"):
        function(regression, 0.5)
    assert np.isfinite(optimal_risk(RISING, 0.5))


def test_an_output_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="a must hold no NaN"):
        conditional_risk("hinge", 0.5, [0.0, float("nan")])
