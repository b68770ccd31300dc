"""What is true of this machine: gathered once, judged in findings.py, printed in doctor.py."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from ensemble_gpu import __version__
from ensemble_gpu.cli import driver as nvidia
from ensemble_gpu.cli.driver import Driver

PACKAGES = (
    "numpy",
    "numba",
    "numba-cuda",
    "cuda-bindings",
    "array-api-compat",
    "array-api-extra",
    "threadpoolctl",
    "scikit-learn",
    "array-api-strict",
    "torch",
    "jax",
)


@dataclass(frozen=True)
class Namespace:
    """An installed array library: where its arrays can be, and the engine that they get."""

    name: str
    place: str
    engine: str


@dataclass(frozen=True)
class Cupy:
    """What CuPy says; `error` is why it cannot be imported."""

    runtime: tuple[int, int] | None = None
    sees_gpu: bool = False
    error: str | None = None


@dataclass(frozen=True)
class KernelCache:
    """Where compiled kernels are kept; `temporary`: for want of another folder, None: nowhere."""

    folder: str | None
    temporary: bool = False


@dataclass(frozen=True)
class Facts:
    """The machine and the environment.

    `packages` holds installed versions by name, `cupy_wheels` every installed build of CuPy
    with its version, `driver` None where there is none, `hardware` whether an NVIDIA GPU is on
    the bus (None: cannot be told), `kernels` whether numba-cuda finds a GPU (None: not
    installed), `broken` libraries that are installed and cannot be used, with the error;
    `no_compiler` whether numba was told not to compile, `cache` where it keeps what it compiles,
    `failure` what this package's own engines raise.
    """

    version: str
    python: str
    system: str
    packages: Mapping[str, str]
    cupy_wheels: Mapping[str, str] = field(default_factory=dict)
    cupy: Cupy | None = None
    driver: Driver | None = None
    driver_release: str | None = None
    hardware: bool | None = None
    visible_devices: str | None = None
    kernels: bool | None = None
    simulator: bool = False
    namespaces: tuple[Namespace, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    no_compiler: bool = False
    cache: KernelCache | None = None
    failure: str | None = None


def gather() -> Facts:
    """Ask the machine. Nothing is allocated on a GPU but one number per namespace."""
    from ensemble_gpu.kernels.cuda import available

    failure, cache = _own_engine()
    namespaces, broken = ([], {}) if failure else _namespaces()
    found, kernels = available.installed(), None
    if found:
        try:
            kernels = available.kernels()
        except Exception as error:  # whatever a half-installed numba-cuda raises is the answer
            kernels, broken["numba-cuda"] = False, _one_line(error)
    return Facts(
        version=__version__,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages=_versions(PACKAGES),
        cupy_wheels=_cupy_wheels(),
        cupy=_ask_cupy(),
        driver=nvidia.read_driver(nvidia.load()),
        driver_release=nvidia.driver_release(),
        hardware=nvidia.hardware_present(),
        visible_devices=os.environ.get("CUDA_VISIBLE_DEVICES"),
        kernels=kernels,
        simulator=available.simulated(),
        namespaces=tuple(namespaces),
        broken=broken,
        no_compiler=_no_compiler(),
        cache=cache,
        failure=failure,
    )


def _no_compiler() -> bool:
    try:
        from numba import config
    except Exception:  # a finding of its own
        return False
    return bool(vars(config)["DISABLE_JIT"])


def _own_engine() -> tuple[str | None, KernelCache | None]:
    """Load the CPU engine: what it raises, and where it keeps its kernels."""
    try:
        from ensemble_gpu.kernels.cpu import engine  # noqa: F401
        from ensemble_gpu.kernels.jit import cache_folder, cache_is_missing, temporary_cache
    except Exception as error:  # whatever it is, it is to be told
        return _one_line(error), None
    if cache_is_missing():
        return None, KernelCache(None)
    return None, KernelCache(cache_folder(), temporary_cache() is not None)


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    out = {}
    for name in names:
        try:
            out[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return out


def _cupy_wheels() -> dict[str, str]:
    """cupy, cupy-cuda12x, cupy-cuda13x, ...: they overwrite each other's files."""
    wheels = {}
    for distribution in metadata.distributions():
        name = (distribution.name or "").lower().replace("_", "-")
        if re.fullmatch(r"cupy(-(cuda|rocm)[0-9x-]+)?", name):
            wheels[name] = distribution.version
    return dict(sorted(wheels.items()))


def _ask_cupy() -> Cupy | None:
    if importlib.util.find_spec("cupy") is None:
        return None
    try:
        with warnings.catch_warnings():  # CuPy warns of double installations: a finding here
            warnings.simplefilter("ignore")
            cupy = importlib.import_module("cupy")
        runtime = nvidia.cuda_version(cupy.cuda.runtime.runtimeGetVersion())
        return Cupy(runtime, bool(cupy.cuda.is_available()))
    except Exception as error:  # a broken CuPy raises whatever its libraries raise
        return Cupy(error=_one_line(error))


def _namespaces() -> tuple[list[Namespace], dict[str, str]]:
    """Every installed array library with the engine of a tiny array, and those that fail."""
    found, broken = [], {}
    for module, arrays in (
        ("numpy", _numpy),
        ("torch", _torch),
        ("jax", _jax),
        ("cupy", _cupy),
        ("array_api_strict", _strict),
    ):
        if importlib.util.find_spec(module) is None:
            continue
        name = module.replace("_", "-")
        try:
            found += [Namespace(name, place, _engine(x)) for place, x in arrays().items()]
        except Exception as error:  # one broken library must not hide the others
            broken[name] = _one_line(error)
    return found, broken


def _engine(x: Any) -> str:
    from ensemble_gpu.arrays.namespace import locate
    from ensemble_gpu.kernels.select import engine_for

    with warnings.catch_warnings():  # the fallback's warning is said in words of our own
        warnings.simplefilter("ignore")
        return engine_for(locate(x)).name


def _numpy() -> dict[str, Any]:
    import numpy as np

    return {"host": np.zeros(1)}


def _torch() -> dict[str, Any]:
    import torch

    out = {"cpu": torch.zeros(1)}
    if torch.cuda.is_available():
        out["cuda"] = torch.zeros(1, device="cuda")
    return out


def _jax() -> dict[str, Any]:
    import jax

    return {d.platform: jax.device_put(0.0, d) for d in jax.devices()[:1]}


def _cupy() -> dict[str, Any]:
    import cupy

    return {"cuda": cupy.zeros(1)} if cupy.cuda.is_available() else {}


def _strict() -> dict[str, Any]:
    import array_api_strict

    return {"every device": array_api_strict.zeros(1)}


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"
