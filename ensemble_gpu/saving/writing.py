"""Objects to JSON and arrays: what `reading.py` reads.

An array of numbers is {"type": "array", "name": ..}, with the name under which the file has it: the
way to it from the estimator, such as model_.nodes.left. An object of a class in the registry is
{"type": its name, ...}, for an estimator with its "params" and what a fit has left, "fitted"; for
any other class with its fields. A list that holds objects several times is {"type": "repeated",
"items": [..], "order": [..]}, each of them once. Values: values.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import is_array, to_numpy
from ensemble_gpu.saving.container import type_name
from ensemble_gpu.saving.registry import (
    ESTIMATORS,
    FITTED,
    RUN_ONLY,
    VALUES,
    name_of,
)
from ensemble_gpu.saving.values import written_labels, written_scalar

WHAT_CAN_BE = (
    "A file holds data and no code: estimators, losses and learners of this package, metrics by "
    "name, numbers, strings, dates and arrays."
)


class CannotBeSavedError(TypeError):
    """A model file has no form for the value."""


class Writer:
    """Collects the arrays of what is written."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def value(self, value: Any, path: str) -> Any:
        """The JSON of a value that stands at `path`."""
        if value is None:
            return None
        scalar = written_scalar(value)
        if scalar is not None:
            return scalar
        if is_array(value):
            return self._array(to_numpy(value), path)
        if isinstance(value, np.random.RandomState):
            return self._random_state(value, path)
        collected = self._collection(value, path)
        if collected is not None:
            return collected
        name = name_of(value)
        if name in ESTIMATORS:
            return self._estimator(name, value, path)
        if name in VALUES:
            return self._object(name, value, path)
        raise _refusal(value, path)

    def _array(self, array: np.ndarray, path: str) -> Any:
        if type_name(array.dtype):
            self.arrays[path] = array
            return {"type": "array", "name": path}
        if array.ndim == 1 and array.dtype.kind in "UTOSmM":
            items = iter(range(len(array)))
            return written_labels(array, lambda item: self.value(item, f"{path}.{next(items)}"))
        raise _refusal(array, path)

    def _collection(self, value: Any, path: str) -> Any | None:
        kind = type(value)
        if kind is list and _repeats(value):
            return self._repeated(value, path)
        if kind in (list, tuple):
            items = [self.value(one, f"{path}.{k}") for k, one in enumerate(value)]
            return items if kind is list else {"type": "tuple", "items": items}
        if kind in (set, frozenset):
            every = sorted(value, key=repr)
            items = [self.value(one, f"{path}.{k}") for k, one in enumerate(every)]
            return {"type": kind.__name__, "items": items}
        if isinstance(value, Mapping):
            pairs = [
                [self.value(key, path), self.value(one, f"{path}.{key}")]
                for key, one in value.items()
            ]
            return {"type": "map", "items": pairs}
        return None

    def _repeated(self, value: list[Any], path: str) -> Any:
        distinct: dict[int, Any] = {}
        for one in value:
            distinct.setdefault(id(one), one)
        number = {key: k for k, key in enumerate(distinct)}
        return {
            "type": "repeated",
            "items": [self.value(one, f"{path}.{k}") for k, one in enumerate(distinct.values())],
            "order": [number[id(one)] for one in value],
        }

    def _random_state(self, value: np.random.RandomState, path: str) -> Any:
        state = value.get_state(legacy=False)
        if state["bit_generator"] != "MT19937":
            raise _refusal(value, path)
        return {
            "type": "RandomState",
            "key": self.value(state["state"]["key"], f"{path}.key"),
            "position": int(state["state"]["pos"]),
            "has_gauss": int(state["has_gauss"]),
            "gauss": float(state["gauss"]),
        }

    def _object(self, name: str, value: Any, path: str) -> Any:
        entry, state = VALUES[name], _state(value)
        found: dict[str, Any] = {"type": name}
        for field in (*entry.fields, *entry.derived):
            own = state[field] if field in state else getattr(value, entry.derived[field])
            if field in entry.absent and own.strides == (0,):
                continue
            found[field] = self.value(own, f"{path}.{field}")
        return found

    def _estimator(self, name: str, value: Any, path: str) -> Any:
        dot = f"{path}." if path else ""
        params = {
            key: None if key in RUN_ONLY else self.value(one, f"{dot}{key}")
            for key, one in value.get_params(deep=False).items()
        }
        state = vars(value)
        fitted = {key: self.value(state[key], f"{dot}{key}") for key in FITTED if key in state}
        return {"type": name, "params": params, "fitted": fitted}


def _repeats(items: list[Any]) -> bool:
    """Whether an object is among the items more than once."""
    own = [id(one) for one in items if name_of(one)]
    return len(set(own)) < len(own)


def _state(value: Any) -> Mapping[str, Any]:
    own = value.__getstate__()
    return own if isinstance(own, dict) else {}


def _refusal(value: Any, path: str) -> CannotBeSavedError:
    about = f"{path}={value!r}"[:120]
    hint = ""
    if path.split(".")[-1] == "loss":
        hint = (
            " Predicting needs only the link, which is kept: estimator.set_params(loss=...) with a "
            "loss by name, and then save, gives a file that predicts the same."
        )
    return CannotBeSavedError(f"{about} cannot be saved. {WHAT_CAN_BE}{hint}")
