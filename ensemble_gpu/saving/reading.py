"""JSON and arrays to objects: what `writing.py` has written.

Nothing that is read is trusted. A class is one of the registry; each field passes its check there,
then those of the class itself; an estimator's parts have to fit each other (consistency.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from ensemble_gpu.saving.consistency import CHECKS, check_estimator
from ensemble_gpu.saving.container import refuse
from ensemble_gpu.saving.registry import ESTIMATORS, FITTED, VALUES, class_of
from ensemble_gpu.saving.values import COLLECTIONS, WRITTEN, read_labels, read_scalar

# What a constructor may raise for fields that do not fit.
MISFITS = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
SCALARS = {"float", "scalar", *WRITTEN}
# Words of a RandomState.
KEY = 624


class Reader:
    """Objects whose arrays are those of a file."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays

    def value(self, entry: Any, path: str) -> Any:
        """The value of the JSON that stands at `path`."""
        if isinstance(entry, list):
            return [self.value(one, f"{path}.{k}") for k, one in enumerate(entry)]
        if not isinstance(entry, dict):
            return entry
        kind = entry.get("type")
        if not isinstance(kind, str):
            refuse(f"{path} has no type")
        if kind == "array":
            return self._array(entry, path)
        if kind in SCALARS:
            return read_scalar(kind, entry)
        if kind == "labels":
            return read_labels(entry, lambda item: self.value(item, path))
        if kind in ESTIMATORS:
            return self._estimator(kind, entry, path)
        if kind in VALUES:
            return self._object(kind, entry, path)
        return self._collection(kind, entry, path)

    def _array(self, entry: dict[str, Any], path: str) -> np.ndarray:
        name = entry.get("name")
        if not isinstance(name, str) or name not in self.arrays:
            refuse(f"{path} is array {name!r}, which the file does not have")
        return self.arrays[name]

    def _collection(self, kind: str, entry: dict[str, Any], path: str) -> Any:
        items = entry.get("items")
        if kind == "RandomState":
            return self._random_state(entry, path)
        if not isinstance(items, list):
            refuse(f"{path} is of type {kind!r}, which this version does not know")
        if kind == "repeated":
            return self._repeated(items, entry.get("order"), path)
        if kind == "map":
            return self._map(items, path)
        if kind not in COLLECTIONS:
            refuse(f"{path} is of type {kind!r}, which this version does not know")
        try:
            return COLLECTIONS[kind](self.value(items, path))
        except TypeError as error:
            refuse(f"{path} is no {kind} ({error})")

    def _map(self, items: list[Any], path: str) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for pair in items:
            if not isinstance(pair, list) or len(pair) != 2:
                refuse(f"{path} is a map of what are no pairs")
            key = self.value(pair[0], path)
            try:
                if key in found:
                    refuse(f"{path} has the key {key!r} twice")
                found[key] = self.value(pair[1], f"{path}.{key}")
            except TypeError as error:
                refuse(f"{path} has a key that cannot be one ({error})")
        return found

    def _repeated(self, items: list[Any], order: Any, path: str) -> list[Any]:
        every = self.value(items, path)
        n = len(every)
        if not isinstance(order, list) or not all(type(k) is int and 0 <= k < n for k in order):
            refuse(f"{path} is in no order of its {n} items")
        return [every[k] for k in order]

    def _random_state(self, entry: dict[str, Any], path: str) -> np.random.RandomState:
        key, position = self.value(entry.get("key"), path), entry.get("position")
        fits = isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.shape == (KEY,)
        if not fits or type(position) is not int or not 0 <= position <= KEY:
            refuse(f"{path} is no RandomState")
        if entry.get("has_gauss") not in (0, 1) or type(entry.get("gauss")) is not float:
            refuse(f"{path} is no RandomState")
        found = np.random.RandomState(0)
        found.set_state(("MT19937", key, position, int(entry["has_gauss"]), entry["gauss"]))
        return found

    def _object(self, name: str, entry: dict[str, Any], path: str) -> Any:
        own = VALUES[name]
        known = {"type", *own.fields, *own.derived}
        if entry.keys() - known or own.fields.keys() - own.absent - entry.keys():
            refuse(f"{path} ({name}) needs {', '.join(own.fields)}; got {', '.join(entry)}")
        fields: dict[str, Any] = dict.fromkeys(own.absent)
        for field, check in own.fields.items():
            if field in entry:
                fields[field] = self.value(entry[field], f"{path}.{field}")
                check(fields[field], f"{path}.{field}")
        try:
            made = class_of(name)(**fields)
        except MISFITS as error:
            refuse(f"{path} is no {name} ({error})")
        if name in CHECKS:
            CHECKS[name](made, path)
        for field in own.derived.keys() & entry.keys():
            found = self.value(entry[field], f"{path}.{field}")
            if not _equal(found, getattr(made, own.derived[field])):
                refuse(f"{path}.{field} does not follow from the rest of it")
        return made

    def _estimator(self, name: str, entry: dict[str, Any], path: str) -> Any:
        if entry.keys() != {"type", "params", "fitted"}:
            refuse(f"{path} ({name}) needs params and fitted")
        params, fitted = entry["params"], entry["fitted"]
        if not isinstance(params, dict) or not isinstance(fitted, dict):
            refuse(f"{path} ({name}) needs objects for params and fitted")
        kind, dot = class_of(name), f"{path}." if path else ""
        unknown = params.keys() - inspect.signature(kind).parameters.keys()
        if unknown:
            refuse(f"{name} has no parameter {', '.join(sorted(unknown))}")
        if fitted and ESTIMATORS[name].required - fitted.keys():
            lacks = ", ".join(sorted(ESTIMATORS[name].required - fitted.keys()))
            refuse(f"{path or name} is fitted and lacks {lacks}")
        try:
            made = kind(**{key: self.value(one, f"{dot}{key}") for key, one in params.items()})
        except TypeError as error:
            refuse(f"{path or name} lacks a parameter ({error})")
        for key, one in fitted.items():
            if key not in FITTED:
                refuse(f"{name} has no attribute {key!r}")
            value = self.value(one, f"{dot}{key}")
            FITTED[key](value, f"{dot}{key}")
            setattr(made, key, value)
        check_estimator(made, bool(fitted), path or name)
        return made


def _equal(found: Any, made: Any) -> bool:
    """Whether two objects with arrays for fields are the same, NaN and all."""
    return type(found) is type(made) and all(
        np.array_equal(one, vars(made)[name], equal_nan=True) for name, one in vars(found).items()
    )
