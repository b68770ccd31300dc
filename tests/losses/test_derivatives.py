"""Derivatives are those of the value, on every library, at every margin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ensemble_gpu.losses import Logistic, LogitBoost, Loss, Multinomial
from tests.losses.cases import ALL, CUSTOM, MARGINS, far_rows, rows_of
from tests.places import Place

each_loss = pytest.mark.parametrize("loss", [*ALL, CUSTOM], ids=lambda loss: loss.name)


def differences(loss: Loss, y: Any, F: np.ndarray, place: Any, step: float) -> tuple:
    """First and second central differences of the value, one output at a time."""
    first, second = np.empty_like(F), np.empty_like(F)

    def value(F: np.ndarray) -> np.ndarray:
        return place.host(loss.value(y, place.put(F)))

    for k in range(F.shape[1] if F.ndim == 2 else 1):
        at = (slice(None), k) if F.ndim == 2 else slice(None)
        move = np.zeros_like(F)
        move[at] = step
        low, middle, high = value(F - move), value(F), value(F + move)
        first[at] = (high - low) / (2.0 * step)
        second[at] = (high - 2.0 * middle + low) / step**2
    return first, second


def check_differences(loss: Loss, place: Any) -> None:
    rows = rows_of(loss)
    y, F = place.put(rows.y), place.put(rows.F)
    g, h = loss.derivatives(y, F)
    np.testing.assert_array_equal(place.host(loss.gradient(y, F)), place.host(g))
    first, _ = differences(loss, y, rows.F, place, 1e-5)
    _, second = differences(loss, y, rows.F, place, 1e-3)
    true = np.full(rows.F.shape, True)
    if isinstance(loss, LogitBoost):  # elsewhere the working response is cut
        true = 1.0 / (1.0 + np.exp(-2.0 * rows.y * rows.F)) >= 0.25
    np.testing.assert_allclose(place.host(g)[true], first[true], rtol=1e-7, atol=1e-9)
    if loss.has_hessian:
        np.testing.assert_array_equal(place.host(loss.hessian(y, F)), place.host(h))
        np.testing.assert_allclose(place.host(h), second, rtol=2e-6, atol=3e-6)
    else:
        np.testing.assert_array_equal(place.host(h), 1.0)


@each_loss
def test_derivatives_are_the_differences_of_the_value(loss, place: Place):
    check_differences(loss, place)


@pytest.mark.interop
@each_loss
def test_derivatives_are_the_differences_of_the_value_there(loss, library):
    check_differences(loss, library)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_derivatives_have_the_bits_of_numpy(loss, place: Place):
    rows = rows_of(loss)
    found = loss.derivatives(place.put(rows.y), place.put(rows.F))
    for here, there in zip(loss.derivatives(rows.y, rows.F), found, strict=True):
        place.check(there, "float64")
        np.testing.assert_array_equal(here.view(np.int64), place.host(there).view(np.int64))


@pytest.mark.interop
@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_a_common_exponential_gives_the_bits_of_numpy(loss, library):
    def common(x: Any) -> Any:
        return library.put(np.exp(library.host(x)))

    rows = rows_of(loss)
    found = replace(loss, exp=common).derivatives(library.put(rows.y), library.put(rows.F))
    for here, there in zip(loss.derivatives(rows.y, rows.F), found, strict=True):
        np.testing.assert_array_equal(here.view(np.int64), library.host(there).view(np.int64))


def check_far(loss: Loss, dtype: str, place: Any) -> None:
    rows = far_rows(loss, dtype)
    y, F = place.put(rows.y), place.put(rows.F)
    for found in (loss.value(y, F), *loss.derivatives(y, F), loss.inverse_link(F)):
        place.check(found, dtype)
        assert np.isfinite(place.host(found)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_outputs_of_1000_are_finite_and_keep_their_data_type(loss, dtype, place: Place):
    check_far(loss, dtype, place)


@pytest.mark.interop
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_outputs_of_1000_are_finite_and_keep_their_data_type_there(loss, dtype, library):
    check_far(loss, dtype, library)


@each_loss
def test_convex_losses_lie_below_their_chords(loss):
    assert loss.convex
    rows = rows_of(loss)
    other = np.roll(rows.F, 13, axis=0) * 1.7
    chord = 0.5 * loss.value(rows.y, rows.F) + 0.5 * loss.value(rows.y, other)
    middle = loss.value(rows.y, 0.5 * rows.F + 0.5 * other)
    assert (middle <= chord * (1.0 + 1e-12) + 1e-12).all()


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.curvature], ids=lambda x: x.name)
def test_curvature_bounds_the_second_derivative_and_is_reached(loss):
    rows = rows_of(loss)
    F = np.concatenate([rows.F, np.zeros_like(rows.F[:1])])
    y = np.concatenate([rows.y, rows.y[:1]])
    largest = loss.hessian(y, F).max()
    assert largest <= loss.curvature
    if not isinstance(loss, Multinomial):
        assert largest == loss.curvature


def test_multinomial_curvature_is_the_largest_eigenvalue_of_the_whole_hessian():
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.dirichlet([0.3, 0.3, 0.3], size=500), [[0.5, 0.5, 0.0]]])
    whole = np.einsum("ij,jk->ijk", p, np.eye(3)) - p[:, :, None] * p[:, None, :]
    largest = np.linalg.eigvalsh(whole).max()
    assert largest == pytest.approx(Multinomial.curvature, abs=1e-12)


def test_margin_losses_take_any_shape():
    for loss in MARGINS:
        rows = rows_of(loss)
        plain = loss.derivatives(rows.y, rows.F)
        shaped = loss.derivatives(rows.y.reshape(4, -1), rows.F.reshape(4, -1))
        for a, b in zip(plain, shaped, strict=True):
            np.testing.assert_array_equal(a, b.ravel())


def test_logistic_derivatives_are_relatively_exact_at_every_margin():
    v = np.linspace(-500.0, 500.0, 2001)
    g, h = Logistic().derivatives(np.ones_like(v), v)
    log_q = -np.logaddexp(0.0, v)
    np.testing.assert_allclose(np.log(-g), log_q, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(np.log(h), log_q - np.logaddexp(0.0, -v), rtol=1e-13, atol=1e-15)


def test_logitboost_leaf_is_half_the_weighted_mean_of_the_cut_response():
    rng = np.random.default_rng(1)
    y, F = np.where(rng.random(50) < 0.5, -1.0, 1.0), rng.normal(size=50) * 2.0
    g, h = LogitBoost().derivatives(y, F)
    p = 1.0 / (1.0 + np.exp(-2.0 * F))
    z, w = ((y + 1.0) / 2.0 - p) / (p * (1.0 - p)), p * (1.0 - p)  # as published
    assert np.abs(z).max() > 4.0
    expected = 0.5 * np.average(np.clip(z, -4.0, 4.0), weights=w)
    assert -g.sum() / h.sum() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["hinge", "absolute", "quantile"])
def test_a_loss_without_second_derivative_says_so(name):
    loss = next(loss for loss in ALL if loss.name == name)
    rows = rows_of(loss)
    with pytest.raises(NotImplementedError, match=f"{name}.*has no second derivative"):
        loss.hessian(rows.y, rows.F)


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: loss.name)
def test_every_exponential_of_the_derivatives_goes_through_exp(loss):
    asked: list[np.ndarray] = []

    def exp(x: np.ndarray) -> np.ndarray:
        asked.append(x)
        return np.exp(x)

    rows = far_rows(loss, "float64")
    replace(loss, exp=exp).derivatives(rows.y, rows.F)
    uses = {"exponential", "logistic", "logitboost", "multinomial", "poisson"}
    assert len(asked) == (loss.name in uses)
    assert all(x.max() <= 600.0 for x in asked)
