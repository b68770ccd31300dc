"""The fixture `library`: torch or JAX with 64-bit numbers, for tests marked interop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(params=["torch", "jax"])
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    from tests.test_interop import Jax, Torch

    if request.param == "torch":
        yield Torch()
        return
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield Jax()
    jax.config.update("jax_enable_x64", before)
