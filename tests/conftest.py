"""Fixtures: `xp` and `device` (every namespace and device at hand), `engine`, `library`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from ensemble_gpu import use_engine
from tests.libraries import Jax, Torch
from tests.places import ENGINES, PLACES, Place

# Compilation makes single examples slow, so no deadline; derandomised, so a run can be repeated.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=40, database=None)
settings.load_profile("suite")


@pytest.fixture(params=PLACES, ids=str)
def place(request: pytest.FixtureRequest) -> Place:
    """A namespace together with one of its devices."""
    return request.param


@pytest.fixture
def xp(place: Place) -> Any:
    return place.xp


@pytest.fixture
def device(place: Place) -> Any:
    return place.device


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """The test runs on the named engine."""
    with use_engine(request.param):
        yield request.param


@pytest.fixture(params=["torch", "jax"])
def library(request: pytest.FixtureRequest) -> Iterator[Torch | Jax]:
    """Arrays of another library, with 64-bit numbers; for tests marked interop."""
    if request.param == "torch":
        yield Torch()
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield Jax()
    jax.config.update("jax_enable_x64", before)
