"""Fixtures: `xp` and `device` (every namespace and device at hand), `engine`, `library`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Test processes share the cores already: threads of scikit-learn's OpenMP would wait for each
# other. Before anything imports it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Which kernel runs must not depend on what another process has compiled so far.
os.environ["ENSEMBLE_GPU_COMPILE"] = "now"

from ensemble_gpu import use_engine
from tests.libraries import Jax, Torch
from tests.places import ENGINES, PLACES, Place

HERE = Path(__file__).parent

# Compilation makes single examples slow, so no deadline; derandomised, so a run can be repeated.
settings.register_profile("suite", deadline=None, derandomize=True, max_examples=25, database=None)
settings.load_profile("suite")


# They take long. Where two processes share the files (`make test`) they begin with these, so that
# none of them is left to one process at the end: the record first, which compiles nearly all
# kernels, while the other process is busy with what compiles for itself or has kernels of its own.
# No file fits a model when it is imported: both processes would compile the kernels, at once.
LONG = (
    "record/test_record.py",
    "kernels/test_jit.py",
    "trees/test_identity.py",
    "boosting/test_bit_identity.py",
    "bagging/test_bagging_sklearn.py",
    "boosting/test_sklearn.py",
    "test_public.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {HERE / name: place for place, name in enumerate(LONG)}
    assert all(path.exists() for path in places)
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: not in the inner loop (make test-fast)")
    config.addinivalue_line("markers", "long: in a run of their own (make test-long)")


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
