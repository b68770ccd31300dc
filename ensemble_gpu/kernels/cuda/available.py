"""Whether the CUDA kernels can be used; importing this file imports neither numba nor CUDA."""

from __future__ import annotations

import os
from importlib.util import find_spec

MISSING_KERNELS = (
    "The arrays are on a GPU but numba-cuda is not installed: the slower reference engine runs on "
    "the GPU instead, with the same model. For the fast kernels: pip install "
    "'ensemble_gpu[cuda12]' or 'ensemble_gpu[cuda13]'."
)


def simulated() -> bool:
    """The CUDA simulator was asked for before numba was imported."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1"


def kernels() -> bool:
    """Whether numba-cuda is installed, or the simulator stands in for a GPU."""
    return simulated() or find_spec("numba_cuda") is not None
