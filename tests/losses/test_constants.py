"""The best constant has the least mean loss, and is finite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from ensemble_gpu.losses import (
    Absolute,
    Exponential,
    Huber,
    Logistic,
    LogitBoost,
    Multinomial,
    Poisson,
    Quantile,
)
from tests.losses.cases import ALL, CUSTOM, MARGINS, some_targets

each_loss = pytest.mark.parametrize("loss", [*ALL, CUSTOM], ids=lambda loss: loss.name)


@pytest.mark.slow
@each_loss
@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_best_constant_has_the_least_mean_loss(loss, weighted):
    y, weights = some_targets(loss)
    weights = weights if weighted else None
    outputs = 3 if isinstance(loss, Multinomial) else 1

    def mean_loss(c: np.ndarray) -> float:
        F = np.full((len(y), outputs), c) if outputs > 1 else np.full(len(y), c)
        return float(np.average(loss.value(y, F), weights=weights))

    if outputs > 1:
        best = minimize(mean_loss, np.zeros(outputs), tol=1e-12).fun
    else:
        wide = (y.min() - 1.0, y.max() + 1.0)
        grid = np.linspace(*wide, 4001)
        start = grid[np.argmin([mean_loss(c) for c in grid])]
        near = (start - 0.1, start + 0.1)
        best = minimize_scalar(mean_loss, bounds=near, options={"xatol": 1e-12}).fun
    found = loss.best_constant(y, weights)
    assert found.shape == (outputs,)
    assert found.dtype == np.float64
    assert mean_loss(found if outputs > 1 else found[0]) <= best * (1.0 + 1e-12) + 1e-12


@each_loss
def test_best_constant_does_not_depend_on_the_scale_of_the_weights(loss):
    y, weights = some_targets(loss)
    expected = loss.best_constant(y, weights)
    for scale in (2.0**-1000, 2.0**1000):
        np.testing.assert_array_equal(loss.best_constant(y, weights * scale), expected)


@each_loss
def test_whole_weights_count_rows(loss):
    y, _ = some_targets(loss)
    times = np.random.default_rng(0).integers(0, 4, size=len(y))
    repeated = loss.best_constant(np.repeat(y, times), None)
    found = loss.best_constant(y, times.astype(np.float64))
    np.testing.assert_allclose(found, repeated, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", MARGINS, ids=lambda loss: loss.name)
def test_one_class_only_gives_a_bounded_constant_of_its_sign(loss):
    for sign in (-1.0, 1.0):
        c = loss.best_constant(np.full(5, sign), None)[0]
        assert np.isfinite(c)
        assert 1.0 <= sign * c < 40.0


@pytest.mark.parametrize("scale", [1, 2])
def test_log_odds_of_the_share(scale):
    y = np.array([1.0, 1.0, 1.0, -1.0])
    for loss in {1: [Logistic()], 2: [Exponential(), LogitBoost()]}[scale]:
        assert loss.best_constant(y, None)[0] == pytest.approx(np.log(3.0) / scale, rel=1e-15)


def test_an_empty_class_has_a_finite_output():
    c = Multinomial(4).best_constant(np.array([0, 1, 1]), None)
    assert c.shape == (4,)
    np.testing.assert_allclose(c[:2], np.log([1 / 3, 2 / 3]), rtol=1e-14)
    np.testing.assert_allclose(c[2:], -52.0 * np.log(2.0))


def test_counts_of_zero_have_a_finite_constant():
    assert np.isfinite(Poisson().best_constant(np.zeros(4), None)).all()


@pytest.mark.parametrize(
    ("tau", "weights", "expected"),
    [
        (0.5, None, 2.0),  # the lower of the two in the middle
        (0.25, None, 1.0),
        (0.26, None, 2.0),
        (0.99, None, 9.0),
        (0.5, [1.0, 1.0, 1.0, 9.0], 9.0),
        (0.5, [0.0, 3.0, 1.0, 2.0], 2.0),
        (0.01, [0.0, 0.0, 1.0, 0.0], 3.0),  # rows without weight are as if absent
    ],
)
def test_weighted_quantile_is_the_lowest_that_reaches_its_share(tau, weights, expected):
    y = np.array([9.0, 1.0, 3.0, 2.0])
    by_row = None if weights is None else np.array(weights)[[3, 0, 2, 1]]
    assert Quantile(tau).best_constant(y, by_row)[0] == expected
    if tau == 0.5:
        assert Absolute().best_constant(y, by_row)[0] == expected


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e12])
def test_huber_lies_between_mean_and_median(offset):
    y = np.array([0.0, 1.0, 2.0, 3.0, 1000.0]) + offset
    assert Huber(1e5).best_constant(y, None)[0] == pytest.approx(y.mean(), rel=1e-12)
    # rows 0 ... 3 inside, the outlier adds delta: 4 c = 6 + delta
    found = Huber(2.0).best_constant(y, None)[0]
    assert found == pytest.approx(2.0 + offset, rel=1e-12, abs=1e-12)
    assert Huber(1e-3).best_constant(y, None)[0] == pytest.approx(2.0 + offset, abs=1e-3)


@pytest.mark.parametrize(
    "loss", [Absolute(), Huber(), Quantile(0.3), CUSTOM], ids=lambda loss: loss.name
)
def test_equal_targets_are_the_constant(loss):
    assert loss.best_constant(np.full(3, -7.5), None)[0] == -7.5
