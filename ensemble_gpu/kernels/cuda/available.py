"""Can the CUDA kernels run here? Safe to import and to ask on any machine."""

from __future__ import annotations

import importlib.util

from numba import config

MISSING_KERNELS = (
    "These arrays are on a CUDA device, but numba-cuda, which compiles the CUDA kernels, is not "
    "installed or finds no usable device: the slow reference engine is used instead. The model "
    "will be the same. To get the kernels: pip install 'ensemble_gpu[cuda12]' or, for CUDA 13, "
    "pip install 'ensemble_gpu[cuda13]'."
)


def simulated() -> bool:
    """Numba's simulator runs the kernels, on NumPy arrays (NUMBA_ENABLE_CUDASIM=1)."""
    return bool(vars(config)["ENABLE_CUDASIM"])


def installed() -> bool:
    """The package numba-cuda is there; numba's own CUDA target is too old for our kernels."""
    return importlib.util.find_spec("numba_cuda") is not None


def kernels() -> bool:
    """The kernels can run: on a device through numba-cuda, or in the simulator."""
    if simulated():
        return True
    if not installed():
        return False
    from ensemble_gpu.kernels.cuda._numba import cuda

    return bool(cuda.is_available())
