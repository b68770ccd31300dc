"""Kernels compiled without a GPU: needs numba-cuda, the toolkit wheels and CuPy, no simulator."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ensemble_gpu.kernels.cuda import available
from tests.cuda import sass

HERE = Path(__file__).parent


def why_not() -> str | None:
    """What is missing here, with the fix; None where nothing is."""
    if available.simulated():
        return "compiles for real: run without NUMBA_ENABLE_CUDASIM"
    if not available.installed() or find_spec("cupy") is None:
        return "needs numba-cuda and CuPy: pip install 'ensemble_gpu[cuda-proof]'"
    try:
        sass.tool("bin/ptxas"), sass.tool("bin/nvdisasm"), sass.tool("lib/libnvJitLink.so.*")
    except FileNotFoundError as error:
        return str(error)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    for item in items:
        if reason is not None and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


class Built(NamedTuple):
    """Kernels for one compute capability, made in one of the two ways of sass.py."""

    capability: str
    build: str
    kernels: list[sass.Compiled]


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Built]:
    """Compiles each capability once in each way."""

    @cache
    def make(capability: str, build: str) -> Built:
        folder = tmp_path_factory.mktemp(f"sm_{capability}_{build}")
        return Built(capability, build, sass.compiled(capability, folder, build))

    return make


@pytest.fixture(scope="session", params=sass.CAPABILITIES, ids=lambda c: f"sm_{c}")
def plain(request: pytest.FixtureRequest, built: Any) -> Built:
    """Every kernel with every signature of its launcher, by libnvvm and ptxas."""
    return built(request.param, sass.PLAIN)


@pytest.fixture(scope="session", params=sass.CAPABILITIES, ids=lambda c: f"sm_{c}")
def linked(request: pytest.FixtureRequest, built: Any) -> Built:
    """Every kernel, optimised by the linker: what users run."""
    return built(request.param, sass.LINKED)


BUILDS = [(c, build) for c in sass.CAPABILITIES for build in (sass.PLAIN, sass.LINKED)]


@pytest.fixture(scope="session", params=BUILDS, ids=lambda p: f"sm_{p[0]}-{p[1]}")
def kernels(request: pytest.FixtureRequest, built: Any) -> list[sass.Compiled]:
    """Either of the two."""
    return built(*request.param).kernels
