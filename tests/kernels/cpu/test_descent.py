"""The pass of gradient boosting over the rows: what array calls give, step by step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.arrays.namespace import locate
from ensemble_gpu.kernels.cpu import engine as cpu_engine
from ensemble_gpu.kernels.cpu.engine import CpuEngine
from ensemble_gpu.kernels.gradient_pass import GradientPass
from ensemble_gpu.kernels.reference.engine import ReferenceEngine
from ensemble_gpu.losses import Hinge, Huber, Logistic, LogitBoost, Multinomial, Poisson
from tests.kernels.cpu.test_losses import WITH_KERNEL

N = 2500


def work_for(loss: Any, n_outputs: int, kind: str, seed: int = 0) -> GradientPass:
    """Rows of a loss, with weights or draws or a move of F, or none of these."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n_outputs, N)) * 1.5
    if isinstance(loss, Multinomial):
        y = rng.integers(0, n_outputs, N)
    elif loss.task == "classification":
        y = np.where(rng.random((n_outputs, N)) < 0.4, -1.0, 1.0)
    else:
        y = rng.poisson(2.0, (n_outputs, N)).astype(np.float64)
    y = y[0] if n_outputs == 1 else y
    work = GradientPass(
        replace(loss, exp=CpuEngine(1).exp), y, F, np.zeros(F.shape, dtype=np.int64),
        (2.0**-6, 2.0**-6), isinstance(loss, Multinomial),
    )  # fmt: skip
    changes: dict[str, dict[str, Any]] = {
        "plain": {},
        "flat": {"flat": True},
        "weights": {"weights": rng.random(N)},
        "draws": {"taken": rng.random(N) < 0.7},
        "both": {"weights": rng.random(N), "taken": rng.random(N) < 0.7},
        "codes": {
            "move": (rng.integers(0, 9, N).astype(np.uint8), rng.normal(size=(n_outputs, 9)))
        },
        "nodes": {"move": (rng.integers(0, 9, N), rng.normal(size=(9, n_outputs)).T)},
    }
    return replace(work, **changes[kind])


def by_array_calls(work: GradientPass) -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """F, packed and the largest |g| and h by the formula."""
    F = work.F if work.move is None else work.F + work.move[1][:, work.move[0]]
    argument = F.T if work.joint else F
    g, h = work.loss.derivatives(
        work.y, argument[0] if work.y.ndim == 1 and not work.joint else argument
    )
    g, h = (a.T if work.joint else a.reshape(F.shape) for a in (g, h))
    h = np.ones_like(h) if work.flat else h
    w = np.ones(N) if work.weights is None else work.weights
    w = w if work.taken is None else w * work.taken
    g, h = g * w, h * w
    upper, lower = np.rint(-g / work.units[0]), np.rint(h / work.units[1])
    packed = upper.astype(np.int64) * 2**32 + lower.astype(np.int64)
    return F, packed, (float(np.abs(g).max()), float(h.max()))


def check(work: GradientPass, engine: CpuEngine) -> None:
    F, packed, tops = by_array_calls(work)
    given = replace(work, F=work.F.copy(), packed=work.packed.copy())
    assert engine.gradient_pass(given) == tops
    np.testing.assert_array_equal(given.F, F)
    np.testing.assert_array_equal(given.packed, packed)


KINDS_OF_WORK = ["plain", "flat", "weights", "draws", "both", "codes", "nodes"]


@pytest.mark.parametrize("kind", KINDS_OF_WORK)
@pytest.mark.parametrize("loss", WITH_KERNEL, ids=repr)
def test_the_pass_is_what_array_calls_give(loss, kind):
    check(work_for(loss, 1, kind), CpuEngine(1))


@pytest.mark.parametrize("kind", KINDS_OF_WORK)
@pytest.mark.parametrize("n_outputs", [2, 3, 7])
def test_outputs_that_share_a_target_are_differentiated_together(n_outputs, kind):
    check(work_for(Multinomial(n_outputs), n_outputs, kind), CpuEngine(1))


@pytest.mark.parametrize("kind", KINDS_OF_WORK)
def test_outputs_may_have_a_target_each(kind):
    check(work_for(Logistic(), 3, kind), CpuEngine(1))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(1)], ids=repr)
def test_threads_share_the_rows(loss, threads, monkeypatch):
    monkeypatch.setattr(cpu_engine, "PASS_PER_THREAD", 10)
    n_outputs = 4 if isinstance(loss, Multinomial) else 1
    check(work_for(loss, n_outputs, "nodes"), CpuEngine(threads))


def test_rows_are_left_unpacked_where_units_are_not_known_or_too_small():
    for units in ((0.0, 0.0), (2.0**-30, 2.0**-30), (2.0**-6, 2.0**-30), (0.0, 1.0)):
        work = replace(work_for(Logistic(), 1, "plain"), units=units)
        tops = CpuEngine(1).gradient_pass(work)
        assert tops == by_array_calls(replace(work, units=(1.0, 1.0)))[2]
        np.testing.assert_array_equal(work.packed, 0)


def test_the_largest_integers_fit_their_halves():
    work = work_for(Huber(1.0), 1, "plain")
    below = 1.0 - 2.0**-18  # of the largest that these units allow
    units = 2.0**-18, 2.0**-17
    F = np.array([[-5.0, 5.0, below, -below]]).repeat(N // 4, axis=1)
    work = replace(work, F=F, y=np.zeros(N), units=units, loss=Huber(below))
    check(work, CpuEngine(1))


def test_a_derivative_that_is_not_finite_shows_in_the_largest():
    for value in (np.nan, np.inf, -np.inf):
        work = work_for(Poisson(), 1, "plain")
        work.y[1234] = value
        top_g, _ = CpuEngine(1).gradient_pass(work)
        assert not np.isfinite(top_g)


def test_what_has_no_kernel_is_left_alone():
    for loss in (Hinge(), LogitBoost()):
        work = work_for(loss, 1, "codes")
        before = work.F.copy()
        assert CpuEngine(1).gradient_pass(work) is None
        np.testing.assert_array_equal(work.F, before)
    joint = replace(work_for(Logistic(), 1, "plain"), joint=True)
    assert CpuEngine(1).gradient_pass(joint) is None
    here = np.zeros(1)
    assert ReferenceEngine(locate(here)).gradient_pass(work_for(Logistic(), 1, "plain")) is None
