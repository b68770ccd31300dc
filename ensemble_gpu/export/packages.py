"""Packages that only an export needs."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def required(name: str, who: str) -> Any:
    """The module; an ImportError that says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ImportError(
            f"{who} needs the package {name}; install it with pip install 'ensemble_gpu[{name}]'."
        ) from error
