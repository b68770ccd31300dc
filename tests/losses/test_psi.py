"""From excess risk to excess error: psi, its bounds, and where they are reached (SPEC B10)."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.losses import (
    CLASSIFICATION,
    LogitBoost,
    conditional_risk,
    excess_error_bound,
    is_calibrated,
    optimal_risk,
    psi,
    psi_tilde,
    worst_case,
)
from ensemble_gpu.losses.psi import lower_hull
from tests.losses.shapes import KINKED, LINEAR, RAMP, RISING, SHIFTED, TILTED, searched
from tests.places import DEVICE

T = np.arange(-100, 101) / 100.0
ALL = [*CLASSIFICATION, LogitBoost(), searched("exponential"), RAMP, SHIFTED, TILTED, KINKED]
each = pytest.mark.parametrize("loss", ALL, ids=lambda loss: getattr(loss, "name", loss))


def logit(t: np.ndarray) -> np.ndarray:
    parts = [u * np.log(np.where(u > 0.0, u, 1.0)) for u in (1.0 + t, 1.0 - t)]
    return 0.5 * (parts[0] + parts[1])


PSI = {
    "exponential": lambda t: 1.0 - np.sqrt(1.0 - t * t),
    "logistic": logit,
    "squared": np.square,
    "truncated_squared": np.square,
    "hinge": np.abs,
}


@pytest.mark.parametrize("name", PSI)
@pytest.mark.parametrize("form", ["closed", "searched"])
def test_psi_and_its_inverse_have_their_closed_forms(name, form):
    loss = name if form == "closed" else searched(name)
    np.testing.assert_allclose(psi(loss, T), PSI[name](T), rtol=0.0, atol=1e-10)
    t = np.linspace(0.0, 1.0, 11)
    atol = 1e-7 if form == "closed" else 1e-3  # psi' is 0 at 0; a hull is one of a thousand points
    np.testing.assert_allclose(excess_error_bound(loss, PSI[name](t)), t, rtol=0.0, atol=atol)


def test_the_logit_of_the_lecture_is_one_minus_the_binary_entropy():
    """log2(1 + e^-v) is the logistic loss over ln 2."""
    eta = (1.0 + T[1:-1]) / 2.0
    entropy = -eta * np.log2(eta) - (1.0 - eta) * np.log2(1.0 - eta)
    np.testing.assert_allclose(psi("logistic", T[1:-1]) / np.log(2.0), 1.0 - entropy, atol=1e-10)


@each
def test_psi_is_the_greatest_convex_even_function_below_psi_tilde(loss):
    found, above = psi(loss, T), psi_tilde(loss, T)
    assert found[100] == above[100] == 0.0
    np.testing.assert_array_equal(found, found[::-1])
    assert (found[1:-1] <= 0.5 * (found[:-2] + found[2:]) + 1e-12).all()
    assert (above >= found - 1e-12).all()
    half, both = T[100:], lower_hull(T[100:], above[100:])  # no other convex function fits between
    np.testing.assert_allclose(found[100:], np.interp(half, half[both], above[100:][both]),
                               atol=2e-5)  # fmt: skip


def test_a_hull_is_below_where_psi_tilde_is_not_convex():
    t = np.abs(T)
    np.testing.assert_allclose(psi_tilde(TILTED, T), np.minimum(4.0 * t, 1.0 + 2.0 * t), atol=1e-12)
    np.testing.assert_allclose(psi(TILTED, T), 3.0 * t, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "calibrated"),
    [*((name, True) for name in CLASSIFICATION), (RAMP, True), (SHIFTED, False), (KINKED, False),
     (RISING, False)],
    ids=str,
)  # fmt: skip
def test_calibrated_losses_are_told_from_others(loss, calibrated):
    assert is_calibrated(loss) is calibrated


def random_distributions(rng: np.random.Generator, n: int, points: int):
    """P(x), eta(x) and outputs f(x) on a few points."""
    p = rng.dirichlet(np.ones(points), size=n)
    eta = rng.beta(0.7, 0.7, size=(n, points))
    return p, eta, rng.normal(scale=1.5, size=(n, points))


@each
def test_psi_of_the_excess_error_is_at_most_the_excess_risk(loss):
    p, eta, f = random_distributions(np.random.default_rng(0), 300, 4)
    error = (p * (f * (2.0 * eta - 1.0) <= 0.0) * np.abs(2.0 * eta - 1.0)).sum(axis=1)
    risk = (p * (conditional_risk(loss, eta, f) - optimal_risk(loss, eta))).sum(axis=1)
    assert (psi(loss, error) <= risk + 1e-12).all()
    assert (error <= excess_error_bound(loss, risk) + 1e-3 * (loss not in CLASSIFICATION)
            + 1e-9).all()  # fmt: skip


@each
@pytest.mark.parametrize("t", [0.0, 0.15, 0.5, 0.85, 1.0])
def test_the_two_point_distribution_reaches_the_bound(loss, t):
    case = worst_case(loss, t)
    assert case.probability.sum() == pytest.approx(1.0)
    assert (case.output * (2.0 * case.eta - 1.0) <= 0.0).all()
    error = (case.probability * np.abs(2.0 * case.eta - 1.0)).sum()
    assert error == pytest.approx(t, abs=1e-12)
    assert case.excess_error == pytest.approx(t, abs=1e-12)
    assert case.excess_risk == pytest.approx(psi(loss, t), abs=1e-12)
    if np.isfinite(case.output).all():
        risk = conditional_risk(loss, case.eta, case.output) - optimal_risk(loss, case.eta)
        assert (case.probability * risk).sum() == pytest.approx(case.excess_risk, abs=1e-12)


def test_the_two_points_differ_where_psi_is_a_hull():
    case = worst_case(TILTED, 0.5)
    np.testing.assert_allclose(case.probability, [0.5, 0.5])
    np.testing.assert_allclose(case.eta, [0.5, 1.0])


def noise_constants(p: np.ndarray, eta: np.ndarray, beta: float) -> np.ndarray:
    """The least c with P(0 < |eta - 1/2| <= e) <= c e^beta, of each distribution."""
    distance = np.abs(eta - 0.5)
    below = (p[:, None, :] * (distance[:, None, :] <= distance[:, :, None])).sum(axis=2)
    return (below / distance**beta).max(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["exponential", "hinge", "squared"])
@pytest.mark.parametrize("beta", [0.0, 1.0, 3.0])
def test_bounds_under_the_noise_condition_hold_and_are_never_above_the_others(loss, beta):
    p, eta, f = random_distributions(np.random.default_rng(1), 5, 5)
    eta = np.where(np.abs(eta - 0.5) < 0.02, 0.6, eta)
    sign = 2.0 * eta - 1.0
    wrong = f * sign <= 0.0
    error = (p * wrong * np.abs(sign)).sum(axis=1)
    risk = (p * (conditional_risk(loss, eta, f) - optimal_risk(loss, eta))).sum(axis=1)
    for c, e, r, w in zip(noise_constants(p, eta, beta), error, risk, (p * wrong).sum(axis=1),
                          strict=True):  # fmt: skip
        alpha, C = beta / (beta + 1.0), (2.0 * c) ** (1.0 / (beta + 1.0))
        assert w <= C * e**alpha + 1e-12
        bound = excess_error_bound(loss, r, noise=(c, beta))
        assert e <= bound + 1e-9
        assert bound <= excess_error_bound(loss, r)
        if 0.0 < bound < min(1.0, 2.0 * c, excess_error_bound(loss, r)):
            at = C * bound**alpha * psi(loss, bound ** (1.0 - alpha) / (2.0 * C))
            assert at == pytest.approx(r, rel=1e-6)


def test_little_noise_makes_the_bound_sharper():
    plain = excess_error_bound("exponential", 1e-4)
    assert excess_error_bound("exponential", 1e-4, noise=(0.5, 4.0)) < 0.5 * plain


def test_arrays_of_a_library_come_back_as_such():
    t = DEVICE.put(np.array([0.0, 0.25, 1.0], dtype=np.float32))
    for function in (psi, psi_tilde, excess_error_bound):
        found = function("squared", t)
        DEVICE.check(found, "float32")
        np.testing.assert_allclose(DEVICE.host(found), function("squared", DEVICE.host(t)))
    assert isinstance(psi("squared", 0.5), float)


def test_without_calibration_no_excess_risk_bounds_the_error():
    assert excess_error_bound(RISING, 0.0) == 1.0


def test_bad_input_is_refused_in_words():
    for function in (psi, psi_tilde):
        with pytest.raises(ValueError, match=r"t must be in \[-1, 1\]; got 1\.5"):
            function("hinge", 1.5)
    with pytest.raises(ValueError, match=r"t must be in \[0, 1\]; got -0\.5"):
        worst_case("hinge", -0.5)
    with pytest.raises(ValueError, match=r"excess_risk must be in \[0, inf\]; got -1"):
        excess_error_bound("hinge", -1.0)
    for noise in (1.0, (1.0,), "c"):
        with pytest.raises(ValueError, match=r"noise must be a pair \(c, beta\) or None; got"):
            excess_error_bound("hinge", 0.1, noise=noise)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"c of noise must be .* > 0; got 0"):
        excess_error_bound("hinge", 0.1, noise=(0.0, 1.0))
    with pytest.raises(ValueError, match=r"beta of noise must be .* >= 0; got -1"):
        excess_error_bound("hinge", 0.1, noise=(1.0, -1.0))
    for ask in (is_calibrated, lambda loss: psi(loss, 0.5)):
        with pytest.raises(ValueError, match="'linear' has no minimiser"):
            ask(LINEAR)
