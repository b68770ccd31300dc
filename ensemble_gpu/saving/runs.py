"""Checkpoints as files: a model file, and beside the model what makes its run go on.

The word "run" of the metadata is JSON, and its arrays have names that begin with "run.". A reader
of models passes both by.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from ensemble_gpu.saving.container import Container, dumped, parsed, pieces, unpacked
from ensemble_gpu.saving.document import NO_MODEL, Document, check_words, written
from ensemble_gpu.saving.files import RUN, replace_file
from ensemble_gpu.saving.writing import CannotBeSavedError, Writer


def write_run(
    path: Path, estimator: Any, run: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """An estimator as it is, and its run.

    No file holds code. A parameter that is code (a loss or metric of the user's own) has its
    default in the file, as predicting needs none of it. Where the model itself holds code, the run
    alone is written: it can be resumed, and not loaded.
    """
    import ensemble_gpu

    version = ensemble_gpu.__version__
    try:
        document = written(_without_code(estimator), version)
    except CannotBeSavedError as error:
        document = Document(NO_MODEL, "", version, str(error), {})
    model = document.packed()
    named = {f"{RUN}.{name}": array for name, array in arrays.items()}
    replace_file(
        path,
        pieces(Container({**model.metadata, RUN: dumped(run)}, {**model.arrays, **named})),
    )


def _without_code(estimator: Any) -> Any:
    """The estimator, or a copy with defaults for parameters that cannot be saved."""
    code = [name for name, value in estimator.get_params(deep=False).items() if _is_code(value)]
    if not code:
        return estimator
    known, other = inspect.signature(type(estimator)).parameters, copy(estimator)
    for name in code:
        setattr(other, name, known[name].default)
    return other


def _is_code(value: Any) -> bool:
    if value is None or isinstance(value, bool | int | float | str):
        return False
    try:
        Writer().value(value, "parameter")
    except CannotBeSavedError:
        return True
    return False


def read_run(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The run of a file, and its arrays."""
    container = unpacked(Path(path).read_bytes())
    check_words(container.metadata)
    if RUN not in container.metadata:
        raise ValueError(
            f"{os.fspath(path)!r} holds a model and no run to resume: `save` has written it, and "
            "not a Checkpoint."
        )
    run = parsed(container.metadata[RUN], "the run")
    if not isinstance(run, dict):
        raise ValueError(f"{os.fspath(path)!r} has a run that is no JSON object.")
    start = len(RUN) + 1
    arrays = {
        name[start:]: array for name, array in container.arrays.items()
        if name.startswith(f"{RUN}.")
    }  # fmt: skip
    return run, arrays
