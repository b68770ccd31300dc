"""Values are scikit-learn's; links are undone by their inverses; targets outside are refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
)

from ensemble_gpu.losses import (
    Absolute,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    LogitBoost,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredMargin,
    TruncatedSquared,
)
from tests.losses.cases import ALL, CUSTOM, rows_of, some_targets
from tests.places import Place


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    return rng.normal(size=80), rng.normal(size=80)


@pytest.mark.parametrize(
    ("loss", "metric"),
    [
        (Squared(), mean_squared_error),
        (Absolute(), mean_absolute_error),
        (Quantile(0.2), lambda y, F: mean_pinball_loss(y, F, alpha=0.2)),
        (Quantile(0.9), lambda y, F: mean_pinball_loss(y, F, alpha=0.9)),
        (Huber(1e6), lambda y, F: 0.5 * mean_squared_error(y, F)),
        (Huber(1e-6), lambda y, F: 1e-6 * mean_absolute_error(y, F)),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
def test_values_are_the_metric_of_scikit_learn(loss, metric, rows):
    assert loss.value(*rows).mean() == pytest.approx(metric(*rows), rel=1e-5)


def test_poisson_is_half_the_deviance_up_to_terms_of_y():
    y, _ = some_targets(Poisson())
    a, b = np.random.default_rng(0).normal(size=(2, len(y)))
    found = np.mean(Poisson().value(y, a) - Poisson().value(y, b))
    deviances = [mean_poisson_deviance(y, np.exp(F)) for F in (a, b)]
    assert found == pytest.approx(0.5 * (deviances[0] - deviances[1]), rel=1e-12)


@pytest.mark.parametrize("loss", [Logistic(), LogitBoost()], ids=lambda loss: loss.name)
def test_logistic_losses_are_the_log_loss_of_their_probabilities(loss):
    y, F = rows_of(loss).y, rows_of(loss).F
    expected = log_loss(y, loss.inverse_link(F))
    assert loss.value(y, F).mean() == pytest.approx(expected, rel=1e-12)


def test_multinomial_is_the_log_loss_of_its_probabilities():
    loss = Multinomial()
    y, F = rows_of(loss).y, rows_of(loss).F
    p = loss.inverse_link(F)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    assert loss.value(y, F).mean() == pytest.approx(log_loss(y, p), rel=1e-12)


def test_margin_losses_have_their_formulas():
    y, F = rows_of(Hinge()).y, rows_of(Hinge()).F
    v = y * F
    formulas = {
        Exponential(): np.exp(-v),
        Logistic(): np.log(1.0 + np.exp(-v)),
        LogitBoost(): np.log(1.0 + np.exp(-2.0 * v)),
        SquaredMargin(): (1.0 - v) ** 2,
        TruncatedSquared(): np.where(v < 1.0, (1.0 - v) ** 2, 0.0),
        Hinge(): np.where(v < 1.0, 1.0 - v, 0.0),
    }
    for loss, expected in formulas.items():
        np.testing.assert_allclose(loss.value(y, F), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("loss", [*ALL, CUSTOM], ids=lambda loss: loss.name)
def test_the_inverse_link_undoes_the_link(loss, place: Place):
    mean = np.array([0.001, 0.1, 0.5, 0.75, 0.999])
    if isinstance(loss, Multinomial):
        mean = np.array([[0.2, 0.3, 0.5], [0.01, 0.98, 0.01]])
    found = loss.inverse_link(loss.link(place.put(mean)))
    place.check(found, "float64")
    np.testing.assert_allclose(place.host(found), mean, rtol=1e-13)


@pytest.mark.parametrize(
    ("loss", "link"),
    [
        (Exponential(), lambda F: 1.0 / (1.0 + np.exp(-2.0 * F))),
        (LogitBoost(), lambda F: 1.0 / (1.0 + np.exp(-2.0 * F))),
        (Logistic(), lambda F: 1.0 / (1.0 + np.exp(-F))),
        (Hinge(), lambda F: np.clip((1.0 + F) / 2.0, 0.0, 1.0)),
        (Poisson(), np.exp),
        (Squared(), lambda F: F),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
def test_means_have_their_formulas(loss, link):
    F = np.linspace(-5.0, 5.0, 41)
    np.testing.assert_allclose(loss.inverse_link(F), link(F), rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("loss", [*ALL, CUSTOM], ids=lambda loss: loss.name)
def test_targets_of_the_domain_pass(loss):
    loss.check_target(some_targets(loss)[0])


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (Logistic(), np.array([0.0, 1.0]), r"y must hold -1 and \+1 .*'logistic'; got \[0.0\]"),
        (Multinomial(), np.array([0.5, 1.0]), "y must hold integer classes 0, 1.*got dtype float"),
        (Multinomial(3), np.array([0, 3]), r"y must hold .* 0 \.\.\. 2; got values from 0 to 3"),
        (Squared(), np.array([0.0, np.nan]), "y contains NaN or infinity; loss 'squared'"),
        (Poisson(), np.array([1.0, -2.0]), "y must be >= 0 .*lowest value given is -2"),
        (Poisson(), np.zeros(3), "y must be >= 0 with a positive sum .*all values given are 0"),
    ],
)
def test_other_targets_are_refused(loss, y, message):
    with pytest.raises(ValueError, match=message):
        loss.check_target(y)
