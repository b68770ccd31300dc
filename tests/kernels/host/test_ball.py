"""Quadratic functions in the L1 ball and with an L1 penalty: the conditions of the minimum."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.kernels.host.ball import BALL, PENALTY, minimise

WORK = 10**8


def quadratic(n, seed, alike=0.0):
    """Q of columns that are more or less alike, and c."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(3 * n, n)) + alike * rng.normal(size=(3 * n, 1))
    return A.T @ A / (3 * n), rng.normal(size=n)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alike", [0.0, 10.0])
@pytest.mark.parametrize("radius", [0.1, 1.0, 1e3])
def test_in_the_ball_all_coefficients_have_the_largest_correlation(radius, alike, seed):
    Q, c = quadratic(12, seed, alike)
    a, left = np.zeros(12), c.copy()
    minimise(Q, left, a, BALL, radius, 1e-10, WORK)
    np.testing.assert_allclose(left, c - Q @ a, atol=1e-9)
    norm, C = np.abs(a).sum(), np.abs(left).max()
    assert norm <= radius * (1.0 + 1e-12)
    used = a != 0.0
    if norm < radius * (1.0 - 1e-6):
        assert C < 1e-8
    np.testing.assert_allclose(np.sign(a[used]) * left[used], C, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alike", [0.0, 10.0])
def test_with_a_penalty_all_coefficients_have_the_correlation_alpha(alike, seed):
    Q, c = quadratic(12, seed, alike)
    a, left = np.zeros(12), c.copy()
    minimise(Q, left, a, PENALTY, 0.3, 1e-10, WORK)
    used = a != 0.0
    assert used.any()
    assert np.abs(left).max() <= 0.3 + 1e-8
    np.testing.assert_allclose(left[used], 0.3 * np.sign(a[used]), atol=1e-8)


def test_it_ends_where_the_work_is_used_up():
    Q, c = quadratic(40, 0, 3.0)
    a, left = np.zeros(40), c.copy()
    assert minimise(Q, left, a, BALL, 5.0, 0.0, 2_000) <= 0
    assert a.any()
    assert -c @ a + 0.5 * a @ Q @ a < 0.0
