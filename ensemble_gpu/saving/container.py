"""The safetensors layout: named arrays and strings in one piece of bytes.

    8 bytes           n, the length of the header: unsigned, little-endian
    n bytes           a JSON object, padded with spaces so that the arrays begin at a multiple of 8
                        "__metadata__": {string: string}
                        name: {"dtype": "F64", "shape": [..], "data_offsets": [begin, end]}
    the rest          the arrays, little-endian, in C order; offsets count from here

Arrays lie one after the other without a gap, those of the widest type first, so that each begins at
a multiple of its item's size. Reading copies nothing: an array is a view of the bytes.

Every number in a header may be wrong or hostile. Before an array is made its name, type, shape and
offsets are known to fit each other and the length of the bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
    "BOOL": "|b1",
}  # fmt: skip
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
METADATA = "__metadata__"
# The longest header that is read.
MOST_HEADER = 100_000_000
MOST_DIMENSIONS = 8


@dataclass(frozen=True)
class Container:
    """Strings and read-only arrays, by name."""

    metadata: Mapping[str, str]
    arrays: Mapping[str, np.ndarray]


def refuse(text: str) -> NoReturn:
    """The file is not what it has to be."""
    raise ValueError(f"not a model file of this package: {text}.")


def dumped(value: Any) -> str:
    """JSON without NaN and infinity, which it has no words for."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parsed(text: str | bytes, what: str) -> Any:
    """JSON in which no object has a name twice."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        refuse(f"{what} is not JSON ({error})")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def type_name(dtype: np.dtype) -> str | None:
    """What a file calls a data type, in either byte order; None where it has no name for it."""
    return NAMES.get(dtype.newbyteorder("<")) if dtype.kind in "biuf" else None


def pieces(container: Container) -> Iterator[bytes | memoryview]:
    """The bytes of a file, part by part."""
    order = sorted(container.arrays.items(), key=lambda item: (-item[1].itemsize, item[0]))
    header: dict[str, Any] = {METADATA: dict(container.metadata)}
    at, arrays = 0, []
    for name, array in order:
        own = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        header[name] = {
            "dtype": type_name(own.dtype), "shape": list(array.shape),
            "data_offsets": [at, at + own.nbytes],
        }  # fmt: skip
        at += own.nbytes
        arrays.append(own)
    text = dumped(header).encode()
    text += b" " * (-len(text) % 8)
    if len(text) > MOST_HEADER:
        raise ValueError(
            f"the header would have {len(text)} bytes, and may have {MOST_HEADER} at the most."
        )
    yield len(text).to_bytes(8, "little")
    yield text
    for own in arrays:
        yield own.reshape(-1).view(np.uint8).data


def header_length(first: bytes, n_bytes: int) -> int:
    """The length that the first 8 bytes of a file of n bytes tell."""
    if len(first) < 8:
        refuse(f"it has {len(first)} bytes, and its header's length alone would take 8")
    n = int.from_bytes(first[:8], "little")
    if n > n_bytes - 8:
        refuse(f"its header would have {n} bytes, and the file has {n_bytes}")
    if n > MOST_HEADER:
        refuse(f"its header has {n} bytes, and may have {MOST_HEADER} at the most")
    return n


def header_of(text: bytes) -> tuple[dict[str, str], dict[str, Any]]:
    """Metadata, and what is said of the arrays."""
    header = parsed(text, "the header")
    if not isinstance(header, dict):
        refuse("the header is no JSON object")
    metadata = header.pop(METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        refuse(f"{METADATA} has to hold strings")
    return metadata, header


def unpacked(buffer: bytes | memoryview) -> Container:
    """Metadata and arrays of a whole file; the arrays are views of the buffer."""
    view = memoryview(buffer)
    n = header_length(bytes(view[:8]), len(view))
    metadata, entries = header_of(bytes(view[8 : 8 + n]))
    body = view[8 + n :]
    return Container(metadata, _arrays(entries, body, len(view)))


def _arrays(entries: dict[str, Any], body: memoryview, most: int) -> dict[str, np.ndarray]:
    arrays, spans = {}, []
    for name, entry in entries.items():
        dtype, shape, begin, end = _checked(name, entry, most)
        if end > len(body):
            refuse(f"array {name!r} ends at {end}, and the arrays have {len(body)} bytes")
        spans.append((begin, end, name))
        count = math.prod(shape)
        array = np.frombuffer(body, dtype, count, begin) if count else np.empty(0, dtype)
        if not array.flags.aligned:
            array = array.copy()
        if dtype.kind == "b" and count and array.view(np.uint8).max() > 1:
            refuse(f"array {name!r} of BOOL holds bytes other than 0 and 1")
        array = array.reshape(shape)
        array.flags.writeable = False
        arrays[name] = array
    at = 0
    for begin, end, name in sorted(spans):
        if begin != at:
            refuse(f"array {name!r} begins at {begin}, and the one before it ends at {at}")
        at = end
    if at != len(body):
        refuse(f"the arrays end at {at}, and the file has {len(body)} bytes for them")
    return arrays


def _checked(name: str, entry: Any, most: int) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """Type, shape and offsets of an array, which fit each other; no dimension is above `most`."""
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        refuse(f"array {name!r} needs dtype, shape and data_offsets alone")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        refuse(f"array {name!r} has dtype {dtype!r}, and may have {', '.join(DTYPES)}")
    if not _counts(shape, most) or len(shape) > MOST_DIMENSIONS:
        refuse(f"array {name!r} has no shape of at most {MOST_DIMENSIONS} sizes up to {most}")
    if not _counts(offsets, most) or len(offsets) != 2:
        refuse(f"array {name!r} has no two data_offsets from 0 to {most}")
    kind = np.dtype(DTYPES[dtype])
    begin, end = offsets
    takes = math.prod(shape) * kind.itemsize
    if end - begin != takes:
        refuse(
            f"array {name!r} of {dtype} {shape} takes {takes} bytes, and has those from {begin} to "
            f"{end}"
        )
    return kind, tuple(shape), begin, end


def _counts(found: Any, most: int) -> bool:
    return isinstance(found, list) and all(type(n) is int and 0 <= n <= most for n in found)
