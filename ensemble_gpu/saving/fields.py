"""What a field of a class in a file has to be: checks of a value that was read.

A check takes the value and its path, and refuses what it does not allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ensemble_gpu.saving.container import refuse

Check = Callable[[Any, str], None]
LARGEST = 2**31 - 1
PACKAGE = "ensemble_gpu."


def anything(value: Any, path: str) -> None:
    """Whatever a file can hold."""


def wrong(path: str, value: Any, allowed: str) -> None:
    """Refuse a value; a long one is cut."""
    text = repr(value) if not isinstance(value, np.ndarray) else f"{value.dtype} {value.shape}"
    refuse(f"{path} must be {allowed}; got {text[:80]}")


def flag(value: Any, path: str) -> None:
    if type(value) is not bool:
        wrong(path, value, "true or false")


def integer(low: int = 0, high: int = LARGEST) -> Check:
    def check(value: Any, path: str) -> None:
        if type(value) is not int or not low <= value <= high:
            wrong(path, value, f"an integer from {low} to {high}")

    return check


def real(value: Any, path: str) -> None:
    """A float, which may be NaN or infinite."""
    if type(value) is not float and not isinstance(value, np.floating):
        wrong(path, value, "a number")


def finite(value: Any, path: str) -> None:
    real(value, path)
    if not math.isfinite(value):
        wrong(path, value, "a finite number")


def text(*allowed: str) -> Check:
    """A string, one of those allowed where there are any."""

    def check(value: Any, path: str) -> None:
        if type(value) is not str or (allowed and value not in allowed):
            wrong(path, value, f"one of {', '.join(allowed)}" if allowed else "a string")

    return check


def array(ndim: int, *names: str) -> Check:
    """An array of so many dimensions and one of the dtypes."""

    def check(value: Any, path: str) -> None:
        fits = isinstance(value, np.ndarray) and value.dtype.name in names and value.ndim == ndim
        if not fits:
            wrong(path, value, f"an array of {' or '.join(names)} with {ndim} dimension(s)")

    return check


def numbers(ndim: int) -> Check:
    """An array of any numbers."""

    def check(value: Any, path: str) -> None:
        if not (
            isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.ndim == ndim
        ):
            wrong(path, value, f"an array of numbers with {ndim} dimension(s)")

    return check


def labels(value: Any, path: str) -> None:
    """An array [n] of labels of any kind."""
    if not (isinstance(value, np.ndarray) and value.ndim == 1 and len(value)):
        wrong(path, value, "labels")


def optional(check: Check) -> Check:
    def checked(value: Any, path: str) -> None:
        if value is not None:
            check(value, path)

    return checked


def each(check: Check, kind: type = list) -> Check:
    """A list or tuple of such values."""

    def checked(value: Any, path: str) -> None:
        if type(value) is not kind:
            wrong(path, value, f"a {kind.__name__}")
        for k, one in enumerate(value):
            check(one, f"{path}.{k}")

    return checked


def items(*checks: Check) -> Check:
    """A tuple with one value for each check."""

    def checked(value: Any, path: str) -> None:
        if type(value) is not tuple or len(value) != len(checks):
            wrong(path, value, f"a tuple of {len(checks)}")
        for k, (one, check) in enumerate(zip(value, checks, strict=True)):
            check(one, f"{path}.{k}")

    return checked


def mapping(key: Check, item: Check) -> Check:
    """A dict."""

    def checked(value: Any, path: str) -> None:
        if not isinstance(value, Mapping):
            wrong(path, value, "a map")
        for name, one in value.items():
            key(name, path)
            item(one, f"{path}.{name}")

    return checked


def instance(*names: str) -> Check:
    """An object of one of the classes."""

    def check(value: Any, path: str) -> None:
        if type(value).__name__ not in names or not type(value).__module__.startswith(PACKAGE):
            wrong(path, value, f"a {' or '.join(sorted(names))}")

    return check
