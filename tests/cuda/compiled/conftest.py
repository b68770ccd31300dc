"""Kernels compiled without a GPU: needs numba-cuda, the toolkit wheels and CuPy, no simulator."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

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
        sass.tool("ptxas"), sass.tool("nvdisasm")
    except FileNotFoundError as error:
        return str(error)
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    for item in items:
        if reason is not None and HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", params=sass.CAPABILITIES, ids=lambda c: f"sm_{c}")
def kernels(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[sass.Compiled]:
    """Every kernel with every signature of its launcher, for one compute capability."""
    return sass.compiled(request.param, tmp_path_factory.mktemp(f"sm_{request.param}"))
