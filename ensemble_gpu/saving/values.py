"""Values of parameters and labels as JSON, and back.

None, True, False, strings, integers and finite floats are themselves, lists are lists. Any other
value is an object whose "type" says what it is:

    {"type": "float", "value": "NaN"}               also "Infinity", "-Infinity"
    {"type": "tuple", "items": [..]}                also "set", "frozenset"
    {"type": "map", "items": [[key, value], ..]}    a dict
    {"type": "scalar", "dtype": "float32", "value": ..}   of NumPy; dates count from 1970
    {"type": "date", "value": "2024-01-31"}         also "datetime", "decimal", "complex", "bytes"
    {"type": "labels", "dtype": "<U5", "items": [..]}     an array of strings, dates or objects
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ensemble_gpu.saving.container import refuse

FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
COLLECTIONS = {"tuple": tuple, "set": set, "frozenset": frozenset}
# Their text, and how to read it.
WRITTEN: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "date": (datetime.date, lambda d: d.isoformat(), datetime.date.fromisoformat),
    "datetime": (datetime.datetime, lambda d: d.isoformat(), datetime.datetime.fromisoformat),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "complex": (complex, repr, complex),
    "bytes": (bytes, lambda b: b.decode("latin-1"), lambda s: s.encode("latin-1")),
}
NUMBERS = {
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64",
}  # fmt: skip
# An array of strings takes the memory of its longest one for each. Where that is more than this
# many characters for each that is there, it is an array of objects instead.
SPARE, SHORT = 16, 16


def plain(value: Any) -> bool:
    """Whether JSON has the value itself."""
    return value is None or type(value) in (bool, int, str) or isinstance(value, np.str_)


def written_float(value: float) -> Any:
    if math.isfinite(value):
        return value
    name = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return {"type": "float", "value": name}


def written_scalar(value: Any) -> Any | None:
    """A value that holds no other; None where it is not one of these."""
    if plain(value):
        return str(value) if isinstance(value, str) else value
    if type(value) is float:
        return written_float(value)
    if isinstance(value, np.generic):
        return _written_generic(value)
    for name, (kind, text, _) in WRITTEN.items():
        if type(value) is kind:
            return {"type": name, "value": text(value)}
    return None


def _written_generic(value: Any) -> Any | None:
    dtype = value.dtype
    if dtype.kind in "mM":
        return {"type": "scalar", "dtype": dtype.str, "value": int(value.view(np.int64))}
    if dtype.name not in NUMBERS:
        return None
    own = written_float(float(value)) if dtype.kind == "f" else value.item()
    return {"type": "scalar", "dtype": dtype.name, "value": own}


def read_scalar(kind: str, entry: dict[str, Any]) -> Any:
    """The value of an object of type float, scalar or one of WRITTEN."""
    value = entry.get("value")
    if kind == "float":
        return _read_float(value)
    if kind == "scalar":
        return _read_generic(entry.get("dtype"), value)
    if not isinstance(value, str) or (len(value) > 1000 and kind != "bytes"):
        refuse(f"a value of type {kind!r} needs a short text")
    try:
        return WRITTEN[kind][2](value)
    except (ValueError, ArithmeticError) as error:
        refuse(f"{value!r} is no value of type {kind!r} ({error})")


def _read_float(value: Any) -> float:
    if not isinstance(value, str) or value not in FLOATS:
        refuse(f"a value of type 'float' has to be one of {', '.join(FLOATS)}; got {value!r}")
    return FLOATS[value]


def _read_generic(dtype: Any, value: Any) -> Any:
    if isinstance(dtype, str) and dtype[1:3] in ("M8", "m8"):
        return _dates([value], dtype)[0]
    if not isinstance(dtype, str) or dtype not in NUMBERS:
        refuse(f"a value of type 'scalar' has dtype {dtype!r}")
    if isinstance(value, dict):
        value = _read_float(value.get("value"))
    if type(value) not in (bool, int, float):
        refuse(f"a value of type 'scalar' is {value!r}")
    try:
        return np.dtype(dtype).type(value)
    except OverflowError as error:
        refuse(f"{value!r} is no {dtype} ({error})")


def _dates(items: list[Any], dtype: str) -> np.ndarray:
    if not all(type(item) is int and -(2**63) <= item < 2**63 for item in items):
        refuse(f"dates of dtype {dtype!r} have to be 64-bit integers")
    try:
        return np.array(items, dtype=np.int64).view(np.dtype(dtype))
    except TypeError as error:
        refuse(f"dtype {dtype!r} is none of dates ({error})")


def written_labels(array: np.ndarray, write: Callable[[Any], Any]) -> dict[str, Any]:
    """An array [n] of strings, dates or objects."""
    kind = array.dtype.kind
    if kind in "mM":
        items = array.view(np.int64).tolist()
        return {"type": "labels", "dtype": array.dtype.str, "items": items}
    items = array.tolist()
    dtype = {"T": "str", "O": "object"}.get(kind) or array.dtype.newbyteorder("<").str
    if kind in "US" and not _compact(items, array.dtype.itemsize // (4 if kind == "U" else 1)):
        dtype = "object"
    return {"type": "labels", "dtype": dtype, "items": [write(item) for item in items]}


def _compact(items: list[Any], width: int) -> bool:
    return len(items) * width <= SPARE * sum(max(SHORT, len(item)) for item in items)


def read_labels(entry: dict[str, Any], read: Callable[[Any], Any]) -> np.ndarray:
    """The array that `written_labels` wrote."""
    dtype, items = entry.get("dtype"), entry.get("items")
    if not isinstance(items, list) or not isinstance(dtype, str):
        refuse("labels need a dtype and a list of items")
    if dtype[1:3] in ("M8", "m8"):
        return _dates(items, dtype)
    items = [read(item) for item in items]
    if dtype == "object":
        out = np.empty(len(items), dtype=object)
        out[:] = items
        return out
    if dtype == "str":
        _check_all(items, str, dtype)
        return np.array(items, dtype=np.dtypes.StringDType())
    return _fixed_width(items, dtype)


def _fixed_width(items: list[Any], dtype: str) -> np.ndarray:
    kind, width = dtype[:2], dtype[2:]
    if kind not in ("<U", "|S") or not (width.isdecimal() and len(width) < 10):
        refuse(f"labels have dtype {dtype!r}")
    _check_all(items, str if kind == "<U" else bytes, dtype)
    if not _compact(items, int(width)):
        refuse(f"labels of dtype {dtype!r} would take far more memory than they need")
    if any(len(item) > int(width) for item in items):
        refuse(f"a label is longer than dtype {dtype!r} holds")
    return np.array(items, dtype=dtype)


def _check_all(items: list[Any], kind: type, dtype: str) -> None:
    if not all(type(item) is kind for item in items):
        refuse(f"labels of dtype {dtype!r} have to be {kind.__name__}")
