"""Files: written whole or not at all, read by a memory map, checked before they are believed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from ensemble_gpu.saving.container import header_length, header_of, parsed, pieces, unpacked
from ensemble_gpu.saving.document import Document, check_words, read, unpacked_document, written
from ensemble_gpu.saving.text import from_text, to_text

SUFFIXES = (".safetensors", ".json")
# The word of a checkpoint (runs.py), which says how to go on.
RUN = "run"
# Smaller files are read at once: a map costs more than it saves.
SMALL = 1 << 16


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a model, to a file.

    The file holds data and no code: parameters, labels, categories, names of features, the history
    and the model, to the last bit. `load` makes the estimator again. Callbacks belong to a run and
    are not kept; nor are the rounds that a warm start of boosting would go on from.

    Parameters
    ----------
    estimator : an estimator of this package, its members too; or a model, such as `model_`
    path : a name that ends with .safetensors, or .json for people
        Written to a temporary file beside it, which then takes its place: there is never half a
        file.

    Raises
    ------
    TypeError
        Where something in it is code: a loss or metric of functions, an estimator of another
        package.
    """
    import ensemble_gpu

    path = Path(path)
    as_text = _is_text(path)
    document = written(estimator, ensemble_gpu.__version__)
    parts: Iterable[Any] = [to_text(document).encode()] if as_text else pieces(document.packed())
    replace_file(path, parts)


def load(path: str | os.PathLike[str], *, verify: bool = True, in_place: bool = True) -> Any:
    """The estimator or model that `save` wrote, with the same fingerprint and the same predictions.

    Everything in the file is checked first, and nothing in it is ever executed. Loading takes at
    most 64 times the length of its header besides the arrays, which are where the file is.

    Parameters
    ----------
    path : a file of `save`
    verify : bool, default=True
        Compute the fingerprint of the model, and compare it with that in the file. Without,
        structure and ranges are checked still.
    in_place : bool, default=True
        Large arrays stay in the file, which is mapped into memory: it may be replaced, as `save`
        does it, but must not be overwritten while the model is in use. False reads all of it.

    Raises
    ------
    ValueError
        Where the file is not one of `save`, is damaged, or is of a newer version.
    """
    return read(_document(Path(path), in_place), verify)


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a file holds, without its arrays.

    Returns
    -------
    dict with format, schema, kind (the class), fingerprint, version (of the package that wrote it),
    params, and the shape of every array
    """
    path = Path(path)
    if _is_text(path):
        document = from_text(path.read_bytes())
        words, root = document.words, document.root
        shapes: dict[str, Any] = {
            name: list(array.shape) for name, array in document.arrays.items()
        }
    else:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            n = header_length(file.read(8), size)
            metadata, entries = header_of(file.read(n))
        check_words(metadata)
        root = parsed(metadata.get("json", "null"), "the object")
        words = {name: value for name, value in metadata.items() if name not in ("json", RUN)}
        shapes = {
            name: entry.get("shape") for name, entry in entries.items() if isinstance(entry, dict)
        }
    params = root.get("params", {}) if isinstance(root, dict) else {}
    return {**words, "params": params, "arrays": shapes}


def from_bytes(data: bytes, *, verify: bool = True) -> Any:
    """What `load` gives for a .safetensors file of these bytes."""
    return read(unpacked_document(unpacked(data)), verify)


def to_bytes(estimator: Any) -> bytes:
    """The bytes of the .safetensors file that `save` writes."""
    import ensemble_gpu

    return b"".join(pieces(written(estimator, ensemble_gpu.__version__).packed()))


def _document(path: Path, in_place: bool) -> Document:
    if _is_text(path):
        return from_text(path.read_bytes())
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size <= SMALL or not in_place:
            return unpacked_document(unpacked(file.read()))
        return unpacked_document(
            unpacked(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
        )


def _is_text(path: Path) -> bool:
    if path.suffix not in SUFFIXES:
        raise ValueError(f"path must end with {' or '.join(SUFFIXES)}; got {str(path)!r}.")
    return path.suffix == ".json"


def replace_file(path: Path, parts: Iterable[Any]) -> None:
    """Write the parts to a temporary file in the same folder, and give it the name.

    It has the permissions of the file that it replaces; a new one those of any new file.
    """
    temporary = path.with_name(f".{path.name}.{token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        with suppress(OSError):
            temporary.chmod(path.stat().st_mode & 0o777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
