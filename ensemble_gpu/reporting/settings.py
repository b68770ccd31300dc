"""Parameters of an estimator as text."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

PLAIN = bool | int | float | str | None


def settings(estimator: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Parameters that are not the defaults, and all of them."""
    given = estimator.get_params(deep=False)
    defaults = {
        name: one.default for name, one in inspect.signature(type(estimator)).parameters.items()
    }
    every = [(name, described(value)) for name, value in given.items()]
    chosen = [
        (name, text)
        for name, text in every
        if text != described(defaults.get(name, inspect._empty))
    ]
    return chosen, every


def described(value: Any) -> str:
    """A parameter as text that is the same in every process: no addresses of objects."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(described, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{described(k)}: {described(v)}' for k, v in value.items())}}}"
    if hasattr(value, "get_params"):
        chosen = ", ".join(f"{name}={text}" for name, text in settings(value)[0])
        return f"{type(value).__name__}({chosen})"
    if hasattr(value, "shape"):
        return f"array of shape {tuple(value.shape)}"
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    return type(value).__name__
