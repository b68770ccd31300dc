"""Compiled derivatives and values: those of the losses, at ordinary and at extreme outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.cpu.losses import BLOCK, JOINT, KINDS
from ensemble_gpu.kernels.gradient_pass import LossPass
from ensemble_gpu.losses import (
    CLASSIFICATION,
    REGRESSION,
    Absolute,
    Exponential,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredMargin,
)

CPU = CpuEngine(1)
EXTREME = [0.0, -0.0, 1.0, -1.0, 531.9, 532.0, 532.1, -532.0, 699.0, 701.0, -701.0, 1e300, -1e300,
           5e-324, -5e-324, 1e-17, -36.7]  # fmt: skip
WITH_KERNEL: list[Loss] = [
    Logistic(), Exponential(), SquaredMargin(), Squared(), Poisson(), Huber(), Huber(0.03),
]  # fmt: skip


def rows_for(loss: Loss, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Targets in the loss's domain and outputs: random ones of several sizes, then extreme ones."""
    rng = np.random.default_rng(n)
    F = np.concatenate([rng.normal(size=n) * 10.0 ** rng.uniform(-6, 3, n), EXTREME, EXTREME])
    if loss.task == "classification":
        return np.where(np.arange(len(F)) % (len(EXTREME) + 1) < 9, 1.0, -1.0), F
    y = rng.poisson(3.0, len(F)) + 0.5 * (loss.name != "poisson")
    return y.astype(np.float64), F


@pytest.mark.parametrize("loss", WITH_KERNEL, ids=repr)
@pytest.mark.parametrize("n", [0, 1, BLOCK - 34, BLOCK, 3001])
def test_compiled_derivatives_are_those_of_the_loss(loss, n):
    loss = replace(loss, exp=CPU.exp)
    y, F = rows_for(loss, n)
    expected, found = loss.derivatives(y, F), CPU.derivatives(loss, y, F)
    assert loss.kernel in KINDS
    for theirs, ours in zip(expected, found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


EITHER_SIDE: list[Loss] = [Absolute(), Quantile(0.1)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", [*WITH_KERNEL, *EITHER_SIDE], ids=repr)
@pytest.mark.parametrize("n", [0, BLOCK - 34, 20 * BLOCK + 1])
def test_a_look_at_a_round_moves_outputs_and_adds_up_the_loss(loss, n, weighted):
    loss = replace(loss, exp=CPU.exp) if hasattr(loss, "exp") else loss
    y, F = rows_for(loss, n)
    bounded = np.clip(F, -600.0, 600.0)[None, :]  # so that the sum is a number
    rng = np.random.default_rng(0)
    index, table = rng.integers(0, 3, len(y)).astype(np.uint8), rng.normal(size=(1, 3))
    weights = rng.uniform(0.1, 1.0, len(y)) if weighted else None
    given, out = bounded.copy(), np.full_like(bounded, np.nan)
    parts = [
        CpuEngine(threads).loss_pass(LossPass(loss, y, given, out, (index, table), weights))
        for threads in (1, 2)
    ]
    moved = bounded + table[:, index]
    np.testing.assert_array_equal(out, moved)
    np.testing.assert_array_equal(given, bounded)
    np.testing.assert_array_equal(*parts)
    value = loss.value(y, moved[0]) * (1.0 if weights is None else weights)
    np.testing.assert_allclose(parts[0].sum(), value.sum(), rtol=1e-13)


def test_a_look_at_outputs_with_targets_of_their_own_adds_up_all_of_them():
    loss, rng = replace(Logistic(), exp=CPU.exp), np.random.default_rng(0)
    y, F = np.where(rng.random((3, 700)) < 0.5, -1.0, 1.0), rng.normal(size=(3, 700))
    index, table, out = rng.integers(0, 2, 700), rng.normal(size=(3, 2)), np.empty_like(F)
    parts = CPU.loss_pass(LossPass(loss, y, F, out, (index, table)))
    np.testing.assert_array_equal(out, F + table[:, index])
    np.testing.assert_allclose(parts.sum(), loss.value(y, out).sum(), rtol=1e-13)


def test_values_that_a_subclass_writes_are_its_own():
    class Doubled(Logistic):
        def value(self, y, F):
            return 2.0 * super().value(y, F)

    assert Doubled.kernel is None


def test_losses_have_the_kernels_that_there_are():
    named = {**CLASSIFICATION, **{f"{name} of numbers": c for name, c in REGRESSION.items()}}
    kernels = {loss.kernel for loss in named.values()} | {Multinomial.kernel}
    assert kernels - {None} == {*KINDS, JOINT}


def test_derivatives_that_a_subclass_writes_are_its_own():
    class Doubled(Logistic):
        def derivatives(self, y, F):
            g, h = super().derivatives(y, F)
            return 2.0 * g, 2.0 * h

    class Renamed(Logistic):
        name = "renamed"

    assert Doubled.kernel is None
    assert Renamed.kernel == "logistic"
    y, F = np.array([1.0, -1.0]), np.array([0.3, 2.0])
    np.testing.assert_array_equal(
        CPU.derivatives(Doubled(exp=CPU.exp), y, F)[0],
        2.0 * CPU.derivatives(Logistic(exp=CPU.exp), y, F)[0],
    )
