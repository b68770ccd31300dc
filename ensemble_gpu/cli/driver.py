"""What the NVIDIA driver says, asked directly.

Through the driver's own library, so that the answer does not depend on what is installed in the
Python environment: that is what is being examined.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
KERNEL_MODULE = Path("/proc/driver/nvidia/version")
PCI_DEVICES = Path("/sys/bus/pci/devices")
NVIDIA, DISPLAY = "0x10de", "0x03"

# cuda.h: enum CUdevice_attribute
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
NO_DEVICE = 100


@dataclass(frozen=True)
class Device:
    """One GPU."""

    name: str
    capability: tuple[int, int]
    memory: int


@dataclass(frozen=True)
class Driver:
    """The driver: the newest CUDA that it runs, its devices, and why it would not start.

    `error` is the code of cuInit: 0 fine, 100 no device.
    """

    cuda: tuple[int, int]
    devices: tuple[Device, ...] = ()
    error: int = 0


def load() -> Any | None:
    """The driver's library, or None where no driver is installed."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def read_driver(library: Any | None) -> Driver | None:
    """Versions and devices through the CUDA driver API; no context is made."""
    if library is None:
        return None
    version = ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    cuda = cuda_version(version.value)
    error = int(library.cuInit(0))
    if error:
        return Driver(cuda, (), error)
    count = ctypes.c_int(0)
    library.cuDeviceGetCount(ctypes.byref(count))
    return Driver(cuda, tuple(_device(library, i) for i in range(count.value)))


def _device(library: Any, ordinal: int) -> Device:
    handle = ctypes.c_int(0)
    library.cuDeviceGet(ctypes.byref(handle), ordinal)
    name = ctypes.create_string_buffer(256)
    library.cuDeviceGetName(name, 256, handle)
    memory = ctypes.c_size_t(0)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    numbers = []
    for attribute in (CAPABILITY_MAJOR, CAPABILITY_MINOR):
        value = ctypes.c_int(0)
        library.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
        numbers.append(value.value)
    return Device(name.value.decode(errors="replace"), (numbers[0], numbers[1]), memory.value)


def cuda_version(number: int) -> tuple[int, int]:
    """13020 is CUDA 13.2."""
    return number // 1000, number % 1000 // 10


def driver_release(path: Path = KERNEL_MODULE) -> str | None:
    """Release of the kernel module, such as 580.65.06; None where it cannot be read."""
    try:
        words = path.read_text().split()
    except OSError:
        return None
    return next((w for w in words if w.count(".") >= 1 and w.replace(".", "").isdigit()), None)


def hardware_present(devices: Path = PCI_DEVICES) -> bool | None:
    """An NVIDIA display controller is on the PCI bus; None where that cannot be told."""
    if not devices.is_dir():
        return None
    for device in devices.iterdir():
        try:
            vendor = (device / "vendor").read_text().strip()
            kind = (device / "class").read_text().strip()
        except OSError:
            continue
        if vendor == NVIDIA and kind.startswith(DISPLAY):
            return True
    return False
