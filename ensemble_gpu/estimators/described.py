"""Parameters as plain values that a file can hold and another fit can be compared with.

What is code (a loss or metric of the user's own) is known by its name: two functions of one name
are taken for the same. Arrays are known by their digest, estimators by their class, as their own
parameters are compared one by one.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ensemble_gpu.arrays.namespace import is_array, to_numpy
from ensemble_gpu.data.digests import array_digest, digest

# What may differ wherever it occurs: no number of a model depends on it.
FREE_EVERYWHERE = {"device", "n_jobs"}
FREE = {"n_estimators", "callbacks", "warm_start"}


def binding_parameters(estimator: Any, free: set[str]) -> dict[str, Any]:
    """All parameters that are not free, which later fits must share; None for a generator."""
    found = {}
    for name, value in estimator.get_params(deep=True).items():
        last = name.split("__")[-1]
        if name in free or last in FREE_EVERYWHERE:
            continue
        if last == "random_state" and not isinstance(value, numbers.Integral):
            value = None  # its state is kept instead
        found[name] = value
    return found


def described_parameters(estimator: Any) -> dict[str, Any]:
    """All parameters that may not differ where a fit is resumed."""
    return {name: described(value) for name, value in binding_parameters(estimator, FREE).items()}


def described(value: Any) -> Any:
    """None, bool, int, float or str; a list of such; or a dict of such that says what it is."""
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.generic):
        return described(value.item())
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": repr(value)}
    if isinstance(value, list | tuple):
        return [described(one) for one in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((described(one) for one in value), key=repr)}
    if isinstance(value, Mapping):
        return {"map": sorted(([described(k), described(v)] for k, v in value.items()), key=repr)}
    if is_array(value):
        return _described_array(to_numpy(value))
    return _described_object(value)


def _described_array(array: np.ndarray) -> Any:
    if array.dtype.kind in "biuf":
        return {"array": array_digest(array), "shape": list(array.shape)}
    return [described(one) for one in array.ravel().tolist()]


def _described_object(value: Any) -> Any:
    kind = value if isinstance(value, type) or hasattr(value, "__qualname__") else type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if kind is value:
        return {"code": name}
    model = getattr(value, "model_", None)
    if hasattr(value, "get_params"):
        known = getattr(model, "fingerprint", None)
        return {"estimator": name} if known is None else {"estimator": name, "model": known()}
    if dataclasses.is_dataclass(value):
        own = {f.name: described(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"object": name, "fields": own}
    return {"object": name}


def differences(
    then: Mapping[str, Any],
    now: Mapping[str, Any],
    then_resolved: Mapping[str, Any],
    now_resolved: Mapping[str, Any],
) -> list[str]:
    """What has changed: of parameters that are resolved when a fit begins, what they became."""
    found = []
    for name in {**then, **now, **now_resolved}:
        if name in now_resolved:
            old, new = then_resolved.get(name), now_resolved[name]
        else:
            old, new = then.get(name), now.get(name)
        if old != new:
            found.append(f"{name} was {shown(old)} and is {shown(new)}")
    return found


def shown(value: Any) -> str:
    """A described value as a message says it."""
    if isinstance(value, dict):
        if "array" in value:
            return f"an array of shape {tuple(value['shape'])} ({value['array'][:6]})"
        own, fields = next(iter(value.values()), ""), value.get("fields")
        if fields:
            return f"{own}({', '.join(f'{k}={shown(v)}' for k, v in fields.items())})"
        return str(own)
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    return repr(value)


def labels_digest(labels: Iterable[Any] | None) -> str | None:
    """Of labels or names of any type; None where there are none."""
    return None if labels is None else digest(*(repr(one).encode() for one in labels))
