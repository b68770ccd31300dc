"""Classification calibration (MATHS 8): H-(eta) > H(eta), minimisers and psi, by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.losses import CustomLoss, Margin, Multinomial
from tests.losses.cases import MARGINS, REGRESSIONS

each_margin = pytest.mark.parametrize("loss", MARGINS, ids=lambda loss: loss.name)
ETAS = [0.05, 0.3, 0.45, 0.5, 0.6, 0.9]
A = np.linspace(-6.0, 6.0, 24001)


def phi(loss, a):
    return loss.value(np.ones_like(a), a)


def conditional_risk(loss, eta: float, a: np.ndarray) -> np.ndarray:
    """C_eta(a) = eta phi(a) + (1 - eta) phi(-a)."""
    return eta * phi(loss, a) + (1.0 - eta) * phi(loss, -a)


def is_calibrated(loss) -> bool:
    """The least risk on the wrong side exceeds the least of all, for every eta but 1/2."""
    gaps = []
    for eta in ETAS:
        if eta != 0.5:
            risk = conditional_risk(loss, eta, A)
            gaps.append(risk[A * (2.0 * eta - 1.0) <= 0.0].min() - risk.min())
    return bool(min(gaps) > 1e-4)


@each_margin
def test_the_flag_is_what_brute_force_finds(loss):
    assert loss.calibrated is is_calibrated(loss)


@each_margin
def test_convex_and_falling_at_zero(loss):
    """For convex phi calibration is phi'(0) < 0."""
    slope = loss.gradient(np.ones(1), np.zeros(1))[0]
    assert loss.convex
    assert loss.calibrated is bool(slope < 0.0)


def test_brute_force_tells_a_loss_that_is_not_calibrated():
    flat = CustomLoss(
        lambda y, F: np.maximum(-y * F - 0.5, 0.0),
        lambda y, F: np.where(y * F < -0.5, -y, 0.0),
        task="classification",
        convex=True,
        calibrated=False,
    )
    assert is_calibrated(flat) is flat.calibrated


@each_margin
@pytest.mark.parametrize("eta", ETAS)
def test_the_minimiser_has_the_least_risk(loss: Margin, eta):
    at = conditional_risk(loss, eta, np.array([loss.minimiser(eta)]))[0]
    assert at <= conditional_risk(loss, eta, A).min() + 1e-12


@each_margin
@pytest.mark.parametrize("t", [-0.9, -0.4, 0.0, 0.2, 0.7])
def test_psi_has_its_formula(loss: Margin, t):
    """psi(t) = phi(0) - H((1 + t)/2)."""
    logistic = 0.5 * ((1.0 + t) * np.log(1.0 + t) + (1.0 - t) * np.log(1.0 - t))
    expected = {
        "exponential": 1.0 - np.sqrt(1.0 - t * t),
        "logistic": logistic,
        "logitboost": logistic,
        "squared": t * t,
        "truncated_squared": t * t,
        "hinge": abs(t),
    }[loss.name]
    eta = (1.0 + t) / 2.0
    least = conditional_risk(loss, eta, np.array([loss.minimiser(eta)]))[0]
    assert phi(loss, np.zeros(1))[0] - least == pytest.approx(expected, abs=1e-14)


def test_multinomial_is_calibrated_and_regression_has_no_such_notion():
    assert Multinomial.calibrated is True
    assert all(loss.calibrated is None for loss in REGRESSIONS)
