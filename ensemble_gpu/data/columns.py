"""Many values of a kind as few arrays: lists of records become columns, and columns records.

A record is a named tuple or a dataclass whose type was named to the packer. All records of a list
become one column a field, whose values are packed in the same way:

    None                 nothing
    bool, int, float     an array [n]; integers beyond 64 bits as words [n, words], two's complement
    str                  the distinct ones in the description, and their numbers [n]
    array                an array [n, ..]; where shapes differ all entries, and shapes [n, dims]
    tuple                the lengths [n], and all items as one column
    dict                 one column a key, which all have
    several of these     which kind each is of [n], and one column a kind
    anything else        what a function says that was given for it, one by one

What is not an array goes into a description of plain JSON values. Nothing is code: unpacking makes
values of the types above and of the records that are named, and checks every array on the way.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]

# NumPy's numbers as what they are.
PLAIN = {
    np.bool_: bool, np.int32: int, np.int64: int, np.uint64: int, np.float64: float,
}  # fmt: skip
LEAST, MOST = -(2**63), 2**63 - 1
# The deepest description that is read.
MOST_LEVELS = 12


class NotStorableError(TypeError):
    """A value is of a type that is not packed."""


def fields_of(kind: type) -> list[str]:
    """The fields of a record's type, in order."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(kind._fields)  # type: ignore[attr-defined]


class Packer:
    """Packs values; `names` are those of the records' types.

    `write(value, path)` gives the JSON of any other value, which keeps arrays of its own.
    """

    def __init__(
        self, records: Mapping[str, type], write: Callable[[Any, str], Any] | None = None
    ) -> None:
        self.write = write
        self.names = {kind: name for name, kind in records.items()}
        self.arrays: Arrays = {}

    def __call__(self, path: str, values: Sequence[Any]) -> dict[str, Any]:
        """The description of values, whose arrays have names that begin with `path`."""
        kinds = {PLAIN.get(kind, kind) for kind in set(map(type, values))}
        if not kinds:
            return {"kind": "none"}
        if len(kinds) > 1:
            return self._mixed(path, values, kinds)
        (kind,) = kinds
        if kind in self.names:
            return self._records(path, values, kind)
        pack = {
            type(None): self._none, bool: self._numbers, int: self._integers, float: self._numbers,
            str: self._text, np.ndarray: self._array, tuple: self._tuple, dict: self._dict,
        }.get(kind)  # fmt: skip
        return self._others(path, values) if pack is None else pack(path, values)

    def _others(self, path: str, values: Sequence[Any]) -> dict[str, Any]:
        if self.write is None:
            kind = type(values[0])
            raise NotStorableError(f"{kind.__module__}.{kind.__qualname__} is not stored as data")
        written = [self.write(value, f"{path}.{k}") for k, value in enumerate(values)]
        return {"kind": "other", "values": written}

    def _none(self, path: str, values: Sequence[Any]) -> dict[str, Any]:
        return {"kind": "none"}

    def _mixed(self, path: str, values: Sequence[Any], kinds: set[type]) -> dict[str, Any]:
        order = sorted(kinds, key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")
        number = {kind: k for k, kind in enumerate(order)}
        which = [number[PLAIN.get(type(value), type(value))] for value in values]
        self.arrays[f"{path}.which"] = np.array(which, dtype=np.uint8)
        parts = [
            self(f"{path}.{k}", [v for v, own in zip(values, which, strict=True) if own == k])
            for k in range(len(order))
        ]
        return {"kind": "mixed", "of": parts}

    def _records(self, path: str, values: Sequence[Any], kind: type) -> dict[str, Any]:
        names = fields_of(kind)
        if issubclass(kind, tuple):
            columns: Any = zip(*values, strict=True)
        else:
            columns = ([getattr(value, name) for value in values] for name in names)
        own = {
            name: self(f"{path}.{name}", list(column))
            for name, column in zip(names, columns, strict=True)
        }
        return {"kind": "record", "name": self.names[kind], "of": own}

    def _numbers(self, path: str, values: Sequence[Any]) -> dict[str, Any]:
        self.arrays[path] = np.array(values)
        return {"kind": "bool" if self.arrays[path].dtype == np.bool_ else "float"}

    def _integers(self, path: str, values: Sequence[Any]) -> dict[str, Any]:
        least, most = min(values), max(values)
        if least >= LEAST and most <= MOST:
            self.arrays[path] = np.array(values, dtype=np.int64)
            return {"kind": "int"}
        words = 1 + max(int(least).bit_length(), int(most).bit_length()) // 64
        data = b"".join(int(v).to_bytes(8 * words, "little", signed=True) for v in values)
        self.arrays[path] = np.frombuffer(data, dtype="<u8").reshape(-1, words)
        return {"kind": "wide"}

    def _text(self, path: str, values: Sequence[str]) -> dict[str, Any]:
        distinct = sorted(set(values))
        number = {text: k for k, text in enumerate(distinct)}
        self.arrays[path] = np.array([number[text] for text in values], dtype=np.int64)
        return {"kind": "text", "values": distinct}

    def _array(self, path: str, values: Sequence[np.ndarray]) -> dict[str, Any]:
        if len({(a.dtype, a.ndim) for a in values}) > 1:
            raise NotStorableError("arrays of several types or dimensions in one column")
        shapes = {a.shape for a in values}
        if values[0].dtype.kind not in "biuf":
            raise NotStorableError(f"an array of dtype {values[0].dtype} is not stored as data")
        if len(shapes) == 1:
            (shape,) = shapes
            flat = np.concatenate(values) if shape else np.array(values)
            self.arrays[path] = flat.reshape(len(values), *shape)
            return {"kind": "array"}
        self.arrays[path] = np.concatenate([a.reshape(-1) for a in values])
        self.arrays[f"{path}.shapes"] = np.array([a.shape for a in values], dtype=np.int64)
        return {"kind": "ragged"}

    def _tuple(self, path: str, values: Sequence[tuple]) -> dict[str, Any]:
        self.arrays[f"{path}.lengths"] = np.array([len(v) for v in values], dtype=np.int64)
        return {"kind": "tuple", "of": self(path, [item for v in values for item in v])}

    def _dict(self, path: str, values: Sequence[dict]) -> dict[str, Any]:
        keys = list(values[0])
        if any(list(value) != keys for value in values):
            raise NotStorableError("dicts of several keys in one column")
        own = {key: self(f"{path}.{key}", [value[key] for value in values]) for key in keys}
        return {"kind": "dict", "of": own}


class Unpacker:
    """Makes values of what a packer has left; a description that does not fit is a ValueError."""

    def __init__(
        self,
        records: Mapping[str, type],
        arrays: Mapping[str, np.ndarray],
        read: Callable[[Any, str], Any] | None = None,
    ) -> None:
        self.records, self.arrays, self.read = records, arrays, read

    def __call__(self, path: str, told: Any, n: int, level: int = 0) -> list[Any]:
        """The n values that `told` describes."""
        kind = told.get("kind") if isinstance(told, dict) else None
        if not isinstance(kind, str) or level > MOST_LEVELS:
            raise ValueError(f"{path!r} is described by {str(told)[:80]!r}")
        read: Callable[..., list[Any]] | None = getattr(self, f"_{kind}", None)
        if read is None:
            raise ValueError(f"{path!r} is of the unknown kind {kind!r}")
        return read(path, told, n, level + 1)

    def _found(self, path: str, n: int, kinds: str, dims: int | None = 1) -> np.ndarray:
        array = self.arrays.get(path)
        if array is None:
            raise ValueError(f"array {path!r} is missing")
        fits = array.ndim == dims if dims is not None else array.ndim > 0
        if not fits or len(array) != n or array.dtype.kind not in kinds:
            raise ValueError(f"array {path!r} is of dtype {array.dtype} and shape {array.shape}")
        return array

    def _parts(self, path: str, told: dict, kind: type) -> Any:
        parts = told.get("of")
        if not isinstance(parts, kind):
            raise ValueError(f"{path!r} does not say what it is made of")
        return parts

    def _none(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        return [None] * n

    def _bool(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        return self._found(path, n, "b").tolist()

    def _int(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        return self._found(path, n, "i").tolist()

    def _float(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        return self._found(path, n, "f").tolist()

    def _wide(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        words = self._found(path, n, "u", 2)
        return [int.from_bytes(own.tobytes(), "little", signed=True) for own in words]

    def _other(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        values = told.get("values")
        if self.read is None or not isinstance(values, list) or len(values) != n:
            raise ValueError(f"{path!r} does not hold {n} values")
        return [self.read(value, f"{path}.{k}") for k, value in enumerate(values)]

    def _text(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        values, at = told.get("values"), self._found(path, n, "i")
        if not isinstance(values, list) or not all(isinstance(v, str) for v in values):
            raise ValueError(f"{path!r} does not say which texts there are")
        self._check_range(path, at, 0, len(values))
        return [values[k] for k in at.tolist()]

    def _array(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        # copies: compiled code tells arrays that can be written to from others
        return list(np.array(self._found(path, n, "biuf", None)))

    def _ragged(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        shapes = self._found(f"{path}.shapes", n, "i", 2)
        flat = self.arrays.get(path)
        if flat is None or flat.ndim != 1:
            raise ValueError(f"array {path!r} is missing, or has several dimensions")
        self._check_range(f"{path}.shapes", shapes, 0, self._longest + 1)
        sizes = [math.prod(shape) for shape in shapes.tolist()]
        if sum(sizes) != len(flat):
            raise ValueError(f"array {path!r} has {len(flat)} entries, and its shapes {sum(sizes)}")
        own, out, at = np.array(flat), [], 0
        for shape, size in zip(shapes.tolist(), sizes, strict=True):
            out.append(own[at : at + size].reshape(shape))
            at += size
        return out

    def _tuple(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        lengths = self._found(f"{path}.lengths", n, "i")
        self._check_range(f"{path}.lengths", lengths, 0, self._longest + 1)
        items = iter(self(path, told.get("of"), self._total(path, lengths), level))
        return [tuple(_next(items, length)) for length in lengths.tolist()]

    @property
    def _longest(self) -> int:
        """Items that there can be at the most: every array has fewer entries."""
        return 64 * (1 + sum(array.size for array in self.arrays.values()))

    def _total(self, path: str, lengths: np.ndarray) -> int:
        total = sum(lengths.tolist())
        if total > self._longest:
            raise ValueError(f"array '{path}.lengths' asks for {total} items")
        return total

    def _dict(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        parts = self._parts(path, told, dict)
        columns = [self(f"{path}.{key}", own, n, level) for key, own in parts.items()]
        keys = list(parts)
        return [dict(zip(keys, row, strict=True)) for row in zip(*columns, strict=True)]

    def _record(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        parts, name = self._parts(path, told, dict), told.get("name")
        kind = self.records.get(name) if isinstance(name, str) else None
        if kind is None or list(parts) != fields_of(kind):
            raise ValueError(f"{path!r} is a record {name!r} with the fields {list(parts)}")
        columns = [self(f"{path}.{key}", own, n, level) for key, own in parts.items()]
        make: Any = kind
        return [make(*row) for row in zip(*columns, strict=True)]

    def _mixed(self, path: str, told: dict, n: int, level: int) -> list[Any]:
        which, parts = self._found(f"{path}.which", n, "u"), self._parts(path, told, list)
        self._check_range(f"{path}.which", which, 0, len(parts))
        counts = np.bincount(which, minlength=len(parts)).tolist()
        columns = [iter(self(f"{path}.{k}", own, counts[k], level)) for k, own in enumerate(parts)]
        return [next(columns[k]) for k in which.tolist()]

    def _check_range(self, path: str, array: np.ndarray, least: int, end: int) -> None:
        if array.size and not (int(array.min()) >= least and int(array.max()) < end):
            raise ValueError(f"array {path!r} holds a number below {least} or from {end} on")


def _next(items: Iterator[Any], n: int) -> list[Any]:
    return [next(items) for _ in range(n)]
