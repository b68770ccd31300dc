"""Everything that is CuPy's alone. Importing this file imports neither CuPy nor CUDA."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np

INSTALL = (
    "install the package with CUDA support, pip install 'ensemble_gpu[cuda12]' or "
    "'ensemble_gpu[cuda13]' (the major version that nvidia-smi shows), or use device='cpu'."
)


def why_unavailable() -> str | None:
    """None where a GPU can be used through CuPy, else a sentence with the fix."""
    if find_spec("cupy") is None:
        return f"CuPy is not installed: {INSTALL}"
    try:
        import cupy
    except ImportError as error:
        return f"CuPy cannot be imported ({error}): {INSTALL}"
    if not cupy.cuda.is_available():
        return (
            "CuPy finds no usable GPU (no NVIDIA driver or no device): install the driver and "
            "check nvidia-smi, or use device='cpu'."
        )
    return None


def available() -> bool:
    """Whether there is a GPU that CuPy can use."""
    return why_unavailable() is None


def to_gpu(array: np.ndarray) -> Any:
    """A host array, copied once to the current GPU."""
    import cupy

    return cupy.asarray(array)
