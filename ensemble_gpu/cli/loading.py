"""Models from files, for the commands that take one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ensemble_gpu
from ensemble_gpu.cli.errors import BadInput, one_line
from ensemble_gpu.cli.readers import STANDARD
from ensemble_gpu.saving.files import from_bytes


def loaded(path: str, device: str | None = None) -> Any:
    """The estimator of a file (`-`: standard input), to predict on a device."""
    try:
        if path == STANDARD:
            found = from_bytes(sys.stdin.buffer.read())
        elif not Path(path).exists():
            raise BadInput(f"there is no model {path!r}")
        else:
            found = ensemble_gpu.load(path)
    except ValueError as error:
        raise BadInput(f"{path} is no model: {one_line(error)}") from error
    if not hasattr(found, "predict"):
        raise BadInput(f"{path} holds a {type(found).__name__}; the command needs an estimator")
    if device is not None and "device" in found.get_params():
        found.set_params(device=device)
    return found
