"""torch and JAX, for tests marked interop; imported when they are used."""

from __future__ import annotations

from typing import Any

import numpy as np


class Torch:
    """torch on the CPU."""

    def put(self, array: Any) -> Any:
        import torch

        return None if array is None else torch.asarray(np.ascontiguousarray(array))

    def check(self, array: Any, dtype: str) -> None:
        import torch

        assert isinstance(array, torch.Tensor)
        assert array.device.type == "cpu"
        assert array.dtype == getattr(torch, dtype)

    def host(self, array: Any) -> np.ndarray:
        return array.numpy()


class Jax:
    """JAX on the CPU, with 64-bit numbers."""

    def put(self, array: Any) -> Any:
        import jax.numpy as jnp

        return None if array is None else jnp.asarray(array)

    def check(self, array: Any, dtype: str) -> None:
        import jax

        assert isinstance(array, jax.Array)
        assert {device.platform for device in array.devices()} == {"cpu"}
        assert array.dtype == dtype

    def host(self, array: Any) -> np.ndarray:
        return np.asarray(array)
