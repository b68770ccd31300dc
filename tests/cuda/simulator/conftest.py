"""The CUDA engine under numba's simulator: needs NUMBA_ENABLE_CUDASIM=1 and its own process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ensemble_gpu.kernels.cuda import available
from ensemble_gpu.kernels.cuda.simulator import faithful_simulator

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if available.simulated():
        return
    reason = "needs the simulator: NUMBA_ENABLE_CUDASIM=1 python -m pytest tests/cuda/simulator"
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(autouse=True)
def _faithful() -> Iterator[None]:
    with faithful_simulator():
        yield
