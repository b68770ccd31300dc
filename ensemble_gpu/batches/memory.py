"""Memory for codes: of the process, or of a file."""

from __future__ import annotations

import math
import os
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from ensemble_gpu.kernels.cpu.memory import scratch_array


class Codebook:
    """New arrays in files at a path that must not exist; no path: in memory.

    A file has its room on the disk when it is made, so that a full disk is an error here. It has no
    name any more once it is mapped, and vanishes with the array. A system that cannot do that
    (Windows) removes it after the array.
    """

    def __init__(self, path: Any) -> None:
        self.path = None if path is None else Path(path)
        if self.path is None:
            return
        if self.path.exists():
            raise FileExistsError(
                f"codes_path must be a file that does not exist; got {str(path)!r}, which does."
            )
        if not self.path.absolute().parent.is_dir():
            raise FileNotFoundError(
                f"codes_path must be in a folder that exists; got {str(path)!r}."
            )

    def __call__(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        if self.path is None or 0 in shape:
            return scratch_array(shape, dtype)
        path = self._free_path(self.path)
        size = math.prod(shape) * np.dtype(dtype).itemsize
        with open(path, "xb") as file:
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.truncate(size)
            except OSError as error:
                os.unlink(path)
                raise OSError(
                    error.errno, f"codes_path needs {size:,} bytes: {error.strerror}", str(path)
                ) from error
        mapped = np.memmap(path, dtype=dtype, mode="r+", shape=shape)
        try:
            os.unlink(path)
        except PermissionError:
            weakref.finalize(mapped._mmap, _remove, path)  # type: ignore[attr-defined]
        return np.asarray(mapped)

    @staticmethod
    def _free_path(path: Path) -> Path:
        """Where an earlier array has the name still, another one beside it."""
        number = 1
        free = path
        while free.exists():
            free, number = path.with_name(f"{path.name}.{number}"), number + 1
        return free


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
