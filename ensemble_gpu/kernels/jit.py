"""How compiled functions are declared: `kernel` and `inner`.

    kernel  called from Python; compiled on first use and cached on disk
    inner   called by compiled functions only: no wrappers for Python, no cache of its own

numba keys a cached kernel by the file that it stands in, and so misses an edit in the file of a
function that it calls. Here the key is a digest over the sources of all compiled functions, and it
is part of the files' names: neither an edit nor an upgrade can run old code, and a new kernel
removes the files of its predecessors.

Where numba finds no folder to write to, kernels are kept in one among the temporary files
(kernels/temporary.py), and where there is none either each process compiles for itself.

Division follows NumPy (x / 0 = inf or NaN, i // 0 = 0): no kernel divides by zero and means it, and
the check for it keeps loops from being vectorised.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    UserProvidedCacheLocator,
)

from ensemble_gpu.kernels.linking import PIPELINES
from ensemble_gpu.kernels.temporary import private_folder

if vars(config)["DISABLE_JIT"]:
    raise ImportError(
        "ensemble_gpu needs numba's compiler, which NUMBA_DISABLE_JIT=1 switches off: its kernels "
        "do not run as plain Python. Unset NUMBA_DISABLE_JIT (or set it to 0) before Python starts."
    )

# Folders of kernels/ that hold nothing that is compiled for the host.
APART = frozenset({"cuda", "reference"})
COMMON: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
UNWRAPPED: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_CACHES: list[KernelCache] = []
_UNCACHED: list[Any] = []


@cache
def digest(apart: frozenset[str] = APART) -> str:
    """Of all sources that compiled functions are made of, but for the folders `apart`."""
    root = Path(__file__).parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0] not in apart:
            total.update(name.as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:16]


class _AmongTemporaryFiles(UserProvidedCacheLocator):
    """Where the files of a function are, if they cannot be anywhere else."""

    def __init__(self, py_func: Callable[..., Any], py_file: str) -> None:
        super().__init__(py_func, py_file)
        own = self.get_suitable_cache_subpath(py_file)
        self._cache_path = os.path.join(private_folder() or "", own)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Any:
        if private_folder() is None:
            return None
        return super(UserProvidedCacheLocator, cls).from_function(py_func, py_file)


class _Places(CompileResultCacheImpl):
    _locator_classes = [*CompileResultCacheImpl._locator_classes, _AmongTemporaryFiles]


class KernelCache(FunctionCache):
    """numba's cache of one function, in files that belong to one digest of the sources."""

    _impl_class = _Places

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        name = self._impl.filename_base
        self._others = name.split("-", 1)[0] + "-*.nb[ic]"
        self._name = f"{name}-{digest()}"
        self._cache_file = IndexDataCacheFile(
            cache_path=self.cache_path, filename_base=self._name, source_stamp=digest()
        )

    @property
    def is_temporary(self) -> bool:
        return isinstance(self._impl.locator, _AmongTemporaryFiles)

    def holds(self, signature: Any, context: Any) -> bool:
        """Whether it is compiled for these types; the index is written before the file."""
        context.refresh()
        try:
            index = self._cache_file._load_index()
        except OSError:  # Windows: another process is replacing it
            return False
        name = index.get(self._index_key(signature, context.codegen()))
        return name is not None and Path(self.cache_path, name).exists()

    def files(self) -> list[Path]:
        """The files that hold machine code."""
        return sorted(Path(self.cache_path).glob(f"{self._name}.*.nbc"))

    def save_overload(self, sig: Any, data: Any) -> None:
        for path in Path(self.cache_path).glob(self._others):
            if f"-{digest()}." not in path.name:
                with suppress(OSError):
                    path.unlink()
        super().save_overload(sig, data)


def kernel(function: Callable[..., Any] | None = None) -> Any:
    """Compile a function that Python calls."""
    if function is None:
        return kernel
    compiled = njit(**COMMON, pipeline_class=PIPELINES.get("kernel"))(function)
    try:
        compiled._cache = KernelCache(function)
        _CACHES.append(compiled._cache)
    except RuntimeError:  # no directory can be written: this process compiles for itself alone
        _UNCACHED.append(compiled)
    return compiled


def cache_is_missing() -> bool:
    """Whether kernels are compiled anew in every process, for want of a writable directory."""
    return bool(_UNCACHED)


def temporary_cache() -> str | None:
    """The folder among the temporary files that kernels are kept in; None: they are elsewhere."""
    return private_folder() if any(one.is_temporary for one in _CACHES) else None


def cache_folder() -> str | None:
    """The folder that holds the files of all kernels, in it or below it."""
    folders = [one.cache_path for one in _CACHES]
    return os.path.commonpath(folders) if folders else None


def cached_kernels() -> list[Path]:
    """The files of all that is compiled and in the cache, one a function and types of arguments."""
    return sorted(path for one in _CACHES for path in one.files())


def inner(
    function: Callable[..., Any] | None = None,
    *,
    inline: str = "never",
    forceinline: bool = False,
    fastmath: bool | set[str] = False,
) -> Any:
    """Compile a function that only compiled functions call; with or without options."""
    options: dict[str, Any] = {"inline": inline, "forceinline": forceinline, "fastmath": fastmath}
    declare = njit(**COMMON, **UNWRAPPED, **options, pipeline_class=PIPELINES.get("inner"))
    return declare if function is None else declare(function)
