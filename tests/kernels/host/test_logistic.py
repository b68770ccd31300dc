"""Log-loss of two classes and its slopes: a compiled pass against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from ensemble_gpu.kernels.host.logistic import BLOCK_ROWS, LARGEST_LOSS, log_loss_and_slopes

NONE = np.zeros(0)


def expected(F, sign, w, s):
    m = 2.0 * F * sign
    v = s * m
    e = np.exp(-np.abs(v))
    wrong = np.where(v > 0, e, 1.0) / (1.0 + e)
    loss = np.minimum(np.logaddexp(0.0, -v), LARGEST_LOSS)
    both, turn = e / (1.0 + e) ** 2, 2.0 * wrong - 1.0
    l1, l2, l3 = -w * m * wrong, w * m**2 * both, w * m**3 * both * turn
    l4 = w * m**4 * both * (turn**2 - 2.0 * both)
    sums = w * loss, l1, l2, l3, l4, w * m
    return [a.sum() for a in sums]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [1e-6, 1.0, 40.0, 3_000.0])
@pytest.mark.parametrize("n", [1, BLOCK_ROWS - 1, BLOCK_ROWS, 3 * BLOCK_ROWS + 7])
def test_sums_are_those_of_numpy(n, size, weighted):
    generator = np.random.default_rng(n)
    F, sign = size * generator.normal(size=n), generator.choice([-1.0, 1.0], n)
    w = generator.uniform(0.1, 1.0, n) if weighted else np.full(n, 1.0 / n)
    found = log_loss_and_slopes(F, sign, w if weighted else NONE, 1.0 / n, 0.7)
    np.testing.assert_allclose(found, expected(F, sign, w, 0.7), rtol=1e-12, atol=1e-15)


def test_many_rows_do_not_overflow():
    """The logarithms of 1 + e are those of products of at most 1,000 factors."""
    n = 1_000 * BLOCK_ROWS + 5_000
    F, sign = np.full(n, 1e-9), np.ones(n)
    loss = log_loss_and_slopes(F, sign, NONE, 1.0 / n, 1.0)[0]
    assert loss == pytest.approx(np.log(2.0), rel=1e-8)
