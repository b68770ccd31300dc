"""From facts to findings: what is wrong and the exact fix. Pure: no machine is asked here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ensemble_gpu.cli.driver import NO_DEVICE
from ensemble_gpu.cli.facts import Facts

# The floors of pyproject.toml (a test compares).
OLDEST = {
    "numpy": "2",
    "numba": "0.61",
    "array-api-compat": "1.11",
    "array-api-extra": "0.7",
    "scikit-learn": "1.6",
    "threadpoolctl": "3.1",
}
OLDEST_NUMBA_CUDA, NEXT_NUMBA_CUDA = "0.30", "0.31"
LOWEST_CAPABILITY = (7, 5)
# The CUDA versions that there is an extra for, and the first Linux driver of each (NVIDIA's
# release notes of the toolkit).
FIRST_DRIVER = {12: "525", 13: "580"}


@dataclass(frozen=True)
class Finding:
    """A problem and what to do about it; `broken` is false where it is only advice."""

    problem: str
    fix: str
    broken: bool = True


def examine(facts: Facts) -> list[Finding]:
    """All findings, those that other ones follow from first."""
    return [
        *_requirements(facts),
        *_engines(facts),
        *_libraries(facts),
        *_driver(facts),
        *_cupy(facts),
        *_numba_cuda(facts),
        *_devices(facts),
        *_simulator(facts),
    ]


def has_gpu(facts: Facts) -> bool:
    return facts.driver is not None and bool(facts.driver.devices)


def older(version: str, than: str) -> bool:
    """Compare the leading numbers of two versions, as many as `than` has."""
    wanted = [int(n) for n in than.split(".")]
    return _numbers(version)[: len(wanted)] < wanted


def _numbers(version: str) -> list[int]:
    found = re.match(r"\d+(\.\d+)*", version)
    return [int(n) for n in found.group().split(".")] if found else []


def _extra(facts: Facts) -> str:
    """The extra for the driver's CUDA."""
    major = _driver_major(facts) or max(FIRST_DRIVER)
    return (
        f"pip install 'ensemble_gpu[cuda{min(max(major, min(FIRST_DRIVER)), max(FIRST_DRIVER))}]'"
    )


def _requirements(facts: Facts) -> Iterator[Finding]:
    for name, oldest in OLDEST.items():
        version = facts.packages.get(name)
        if version is None:
            yield Finding(f"{name} is not installed.", f"pip install '{name}>={oldest}'")
        elif older(version, oldest):
            yield Finding(
                f"{name} {version} is too old; {oldest} or newer is needed.",
                f"pip install --upgrade '{name}>={oldest}'",
            )


def _engines(facts: Facts) -> Iterator[Finding]:
    if facts.no_compiler:
        yield Finding(
            "NUMBA_DISABLE_JIT is set: numba does not compile, and nothing can run.",
            "unset NUMBA_DISABLE_JIT",
        )
    elif facts.failure:
        yield Finding(
            f"The engines of ensemble_gpu cannot be loaded ({facts.failure}).",
            "pip install --force-reinstall numba llvmlite; if that does not help, please report it",
        )
    elif facts.cache is not None and facts.cache.folder is None:
        yield Finding(
            "There is no folder to keep compiled kernels in: every process compiles them anew, "
            "which takes up to a minute.",
            "set NUMBA_CACHE_DIR to a folder that can be written",
            broken=False,
        )
    elif facts.cache is not None and facts.cache.temporary:
        yield Finding(
            "Neither the package's folder nor the home directory can be written: compiled kernels "
            f"are kept among the temporary files, in {facts.cache.folder}.",
            "none needed as long as temporary files stay; else set NUMBA_CACHE_DIR to a folder "
            "that can be written",
            broken=False,
        )


def _libraries(facts: Facts) -> Iterator[Finding]:
    for name, error in facts.broken.items():
        if name == "cupy" and facts.cupy is not None and facts.cupy.error:
            continue  # said by _cupy
        yield Finding(
            f"{name} is installed but cannot be used ({error}).",
            f"pip install --force-reinstall {name}, or pip uninstall {name} if you do not need it",
        )


def _driver(facts: Facts) -> Iterator[Finding]:
    wants_gpu = facts.cupy is not None or "numba-cuda" in facts.packages
    driver = facts.driver
    if driver is None:
        if facts.hardware:
            yield Finding(
                "There is an NVIDIA GPU in this machine, but no NVIDIA driver.",
                "install the driver of your system (https://www.nvidia.com/drivers; on Ubuntu: "
                "sudo ubuntu-drivers install), restart, and check that nvidia-smi lists the GPU",
                broken=wants_gpu,
            )
        elif wants_gpu:
            yield Finding(
                "CUDA packages are installed, but there is no NVIDIA driver for them to use.",
                "none needed if this machine has no NVIDIA GPU: everything runs on the CPU. In a "
                "container, start it with --gpus all; else install the driver and check nvidia-smi",
                broken=False,
            )
    elif facts.visible_devices is not None and not driver.devices:
        yield Finding(
            f"CUDA_VISIBLE_DEVICES={facts.visible_devices!r} hides every GPU.",
            "unset CUDA_VISIBLE_DEVICES, unless that is what you want",
            broken=False,
        )
    elif driver.error not in (0, NO_DEVICE):
        yield Finding(
            f"The NVIDIA driver does not start (cuInit returned {driver.error}).",
            "restart the machine (a driver that was updated but not yet loaded fails like this) "
            "and check that nvidia-smi runs; if it does not, install the driver again",
        )
    elif not driver.devices:
        yield Finding(
            "There is an NVIDIA driver, but it finds no GPU.",
            "none needed if this machine has no GPU; in a container, start it with --gpus all",
            broken=False,
        )


def _cupy(facts: Facts) -> Iterator[Finding]:
    wheels = [f"{name} {version}" for name, version in facts.cupy_wheels.items()]
    if len(wheels) > 1:
        yield Finding(
            f"Several builds of CuPy are installed over each other: {', '.join(wheels)}.",
            f"pip uninstall -y {' '.join(facts.cupy_wheels)}, then {_extra(facts)}",
        )
    if facts.cupy is None:
        if has_gpu(facts):
            half = "numba-cuda" in facts.packages
            yield Finding("CuPy is not installed: no GPU is used.", _extra(facts), broken=half)
        return
    if facts.cupy.error:
        yield Finding(
            f"CuPy cannot be imported ({facts.cupy.error}).",
            f"pip uninstall -y {' '.join(facts.cupy_wheels) or 'cupy'}, then {_extra(facts)}",
        )
    elif _too_new(facts, major := (facts.cupy.runtime or (0, 0))[0]):
        yield Finding(
            f"CuPy is built for CUDA {major}, but the driver runs CUDA {_driver_major(facts)} at "
            "most.",
            _fix_major(facts, major, " ".join(facts.cupy_wheels) or "cupy"),
        )
    elif has_gpu(facts) and not facts.cupy.sees_gpu:
        yield Finding(
            "The driver has a GPU, but CuPy cannot use it.",
            'python -c "import cupy; cupy.show_config()" says more; then pip uninstall -y '
            f"{' '.join(facts.cupy_wheels) or 'cupy'} and {_extra(facts)}",
        )


def _driver_major(facts: Facts) -> int:
    """The newest CUDA major version that the driver runs; 0 without a driver."""
    return facts.driver.cuda[0] if facts.driver else 0


def _too_new(facts: Facts, major: int) -> bool:
    """A package for that CUDA cannot run here. (Drivers do run older versions.)"""
    return has_gpu(facts) and major > _driver_major(facts)


def _fix_major(facts: Facts, major: int, packages: str) -> str:
    release = FIRST_DRIVER.get(major)
    update = f"update the driver to {release} or newer" if release else "update the driver"
    if _driver_major(facts) < min(FIRST_DRIVER):
        return update
    return f"{update}, or pip uninstall -y {packages} and {_extra(facts)}"


def _numba_cuda(facts: Facts) -> Iterator[Finding]:
    version = facts.packages.get("numba-cuda")
    if version is None:
        if has_gpu(facts) and facts.cupy is not None:
            yield Finding(
                "numba-cuda, which compiles the CUDA kernels, is not installed: CuPy arrays get "
                "the slow reference engine.",
                _extra(facts),
            )
        return
    wanted = f"'numba-cuda>={OLDEST_NUMBA_CUDA},<{NEXT_NUMBA_CUDA}'"
    if older(version, OLDEST_NUMBA_CUDA):
        yield Finding(
            f"numba-cuda {version} is too old; {OLDEST_NUMBA_CUDA} is needed.",
            f"pip install --upgrade {wanted}",
        )
        return
    if not older(version, NEXT_NUMBA_CUDA):
        yield Finding(
            f"numba-cuda {version} is newer than what the kernels are tested with "
            f"({OLDEST_NUMBA_CUDA}).",
            f"if anything fails: pip install {wanted}",
            broken=False,
        )
    bindings = facts.packages.get("cuda-bindings", "0")
    if _too_new(facts, major := _numbers(bindings)[0]):
        yield Finding(
            f"numba-cuda is installed for CUDA {major} (cuda-bindings {bindings}), but the driver "
            f"runs CUDA {_driver_major(facts)} at most.",
            _fix_major(facts, major, "cuda-bindings"),
        )
    elif has_gpu(facts) and facts.kernels is False and "numba-cuda" not in facts.broken:
        yield Finding(
            "The driver has a GPU, but numba-cuda cannot use it: the slow reference engine runs.",
            f'python -c "from numba import cuda; cuda.detect()" says more; then {_extra(facts)}',
        )


def _devices(facts: Facts) -> Iterator[Finding]:
    devices = facts.driver.devices if facts.driver else ()
    good = [i for i, d in enumerate(devices) if d.capability >= LOWEST_CAPABILITY]
    for i, device in enumerate(devices):
        if device.capability >= LOWEST_CAPABILITY:
            continue
        needed, has = (".".join(map(str, c)) for c in (LOWEST_CAPABILITY, device.capability))
        use = f"CUDA_VISIBLE_DEVICES={','.join(map(str, good))} leaves it out"
        yield Finding(
            f"GPU {i} ({device.name}) has compute capability {has}; the kernels need {needed} "
            "(Turing, 2018) or higher.",
            use if good else "use device='cpu'; the CPU engine gives the same model",
            broken=not good,
        )


def _simulator(facts: Facts) -> Iterator[Finding]:
    if facts.simulator and has_gpu(facts):
        yield Finding(
            "NUMBA_ENABLE_CUDASIM is set: the simulator runs the kernels instead of the GPU.",
            "unset NUMBA_ENABLE_CUDASIM",
        )
