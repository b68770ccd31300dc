"""The same document as JSON for people: arrays are lists under their names.

    {"format": .., "schema": .., "kind": .., "fingerprint": .., "version": ..,
     "object": .., "arrays": {name: {"dtype": "F64", "shape": [..], "data": [..]}}}

Floats are written with as many digits as tell them apart from all others. NaN and infinities, for
which JSON has no words, are "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from ensemble_gpu.saving.container import (
    DTYPES,
    MOST_DIMENSIONS,
    parsed,
    refuse,
    type_name,
)
from ensemble_gpu.saving.document import Document, check_words
from ensemble_gpu.saving.values import FLOATS, written_float


def to_text(document: Document) -> str:
    """The whole document, an array a line."""
    arrays = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(_listed(array), allow_nan=False)}"
        for name, array in document.arrays.items()
    )
    words = json.dumps(document.words, indent=1)[:-2]
    root = json.dumps(document.root, indent=1, allow_nan=False, ensure_ascii=False)
    return f'{words},\n "object": {root},\n "arrays": {{\n{arrays}\n }}\n}}\n'


def from_text(text: str | bytes) -> Document:
    """The document of `to_text`."""
    found = parsed(text, "the file")
    if not isinstance(found, dict):
        refuse("it is no JSON object")
    check_words(found)
    arrays = found.get("arrays")
    if not isinstance(arrays, dict) or "object" not in found:
        refuse("it needs an object and arrays")
    own = {name: _read(name, entry, len(text)) for name, entry in arrays.items()}
    kind, fingerprint, version = (found[name] for name in ("kind", "fingerprint", "version"))
    return Document(kind, fingerprint, version, found["object"], own)


def _listed(array: np.ndarray) -> dict[str, Any]:
    flat = array.reshape(-1).tolist()
    if array.dtype.kind == "f":
        flat = [one if math.isfinite(one) else written_float(one)["value"] for one in flat]
    return {"dtype": type_name(array.dtype), "shape": list(array.shape), "data": flat}


def _read(name: str, entry: Any, most: int) -> np.ndarray:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data"}:
        refuse(f"array {name!r} needs dtype, shape and data alone")
    dtype, shape, data = entry["dtype"], entry["shape"], entry["data"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        refuse(f"array {name!r} has dtype {dtype!r}, and may have {', '.join(DTYPES)}")
    sizes = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
    if not sizes or not all(type(n) is int and 0 <= n <= most for n in shape):
        refuse(f"array {name!r} has no shape")
    if not isinstance(data, list) or len(data) != math.prod(shape):
        refuse(f"array {name!r} needs a list of as many numbers as its shape says")
    kind = np.dtype(DTYPES[dtype])
    types = {"b": (bool,), "f": (int, float)}.get(kind.kind, (int,))
    if kind.kind == "f":
        data = [FLOATS.get(one, one) if isinstance(one, str) else one for one in data]
    if not all(type(one) in types for one in data):
        refuse(f"array {name!r} of {dtype} holds something else")
    try:
        array = np.array(data, dtype=kind).reshape(shape)
    except (OverflowError, ValueError) as error:
        refuse(f"array {name!r} of {dtype} holds something else ({error})")
    array.flags.writeable = False
    return array
